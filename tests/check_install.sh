#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into an empty folder and uses it as a stranger would: a small program outside
# the tree finds the library by pkg-config, links it shared and then static, and runs; so does the
# installed pdx command.
#
#   check_install.sh BUILD_FOLDER
set -euo pipefail

build=$1
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"
pc=$(find "$work/root" -name pdx.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

cat >"$work/user.c" <<'EOF'
#include <pdx/pdx.h>
#include <stdio.h>

int main(void)
{
    struct pdx_engine *engine;
    struct pdx_error why;

    if (pdx_engine_create(NULL, &engine, &why) < 0)
        return fprintf(stderr, "%s\n", why.text), 1;
    printf("%s %zu\n", pdx_version(), pdx_engine_desc(engine, NULL, 0));
    return pdx_engine_destroy(engine) < 0;
}
EOF

# What the program must print first.
version=$(pkg-config --modversion pdx)

# expect_version COMMAND... - its output names the version.
expect_version() {
    local said
    said=$("$@")
    case $said in
    *"$version"*) ;;
    *)
        echo "check_install: '$*' said '$said', expected version $version" >&2
        exit 1
        ;;
    esac
}

# shellcheck disable=SC2046  # pkg-config prints words
"$cc" -std=c17 -Wall -Wextra -Werror -o "$work/shared" "$work/user.c" $(pkg-config --cflags --libs pdx)
# Not grep -q: it would leave before ldd has said all, which then dies of the broken pipe.
LD_LIBRARY_PATH=$lib ldd "$work/shared" | grep "libpdx.so.* => $lib/" >/dev/null
LD_LIBRARY_PATH=$lib expect_version "$work/shared"

# The command finds the library next to it, without LD_LIBRARY_PATH.
expect_version "$(find "$work/root" -path '*/bin/pdx')" version

# Without the shared library the same flags must give a program that needs none.
find "$lib" -name 'libpdx.so*' -delete
# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -Werror -o "$work/static" "$work/user.c" \
    $(pkg-config --cflags --libs --static pdx)
expect_version "$work/static"

echo "version $version: shared, static and command"
