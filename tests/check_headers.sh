#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles each public header by itself as C17 and as C++17, without a warning, with every compiler
# that is installed. The initialiser macros are used in both languages too.
#
#   check_headers.sh INCLUDE_FOLDER
set -euo pipefail

include=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-Wall -Wextra -Wpedantic -Werror)
compiled=0

# compile LANGUAGE COMPILER FILE
compile() {
    "$2" -x "$1" -std="${1}17" "${warnings[@]}" -fsyntax-only -I"$include" "$3"
    compiled=$((compiled + 1))
}

cat >"$work/macros.c" <<'EOF'
#include <pdx/pdx.h>

int main(void)
{
    struct pdx_region_opts region = PDX_REGION_OPTS_INIT;
    struct pdx_submit_opts submit = PDX_SUBMIT_OPTS_INIT;
    struct pdx_layout_desc layout = PDX_LAYOUT_DESC_INIT;
    struct pdx_route_opts route = PDX_ROUTE_OPTS_INIT;
    struct pdx_state_type type = PDX_STATE_TYPE_INIT;

    return region.size != sizeof(region) || submit.size != sizeof(submit) ||
           layout.size != sizeof(layout) || route.size != sizeof(route) ||
           type.size != sizeof(type);
}
EOF

for header in "$include"/pdx/*.h; do
    # Twice: the guard holds.
    printf '#include <pdx/%s>\n#include <pdx/%s>\n' "${header##*/}" "${header##*/}" \
        >"$work/alone_$(basename "$header" .h).c"
done

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for file in "$work"/*.c; do
        compile c "$compiler" "$file"
    done
done
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    for file in "$work"/*.c; do
        compile c++ "$compiler" "$file"
    done
done

# Every initialiser macro of the headers is in the program above.
while read -r macro; do
    grep -q "= $macro;" "$work/macros.c" || {
        echo "check_headers: add $macro to the program of this script" >&2
        exit 1
    }
done < <(sed -n 's/^#define \(PDX_[A-Z_]*_INIT\).*/\1/p' "$include"/pdx/*.h)

echo "$compiled compilations without a warning"
[ "$compiled" -gt 0 ]
