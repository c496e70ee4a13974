#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The pdx command from outside: what it prints where, and its exit status.
# usage: check_command.sh PDX
set -u
pdx=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
[ -x "$pdx" ] || {
    echo "$pdx is no program"
    exit 1
}

fail() {
    echo "$*"
    sed 's/^/  out: /' "$dir/out"
    sed 's/^/  err: /' "$dir/err"
    failures=$((failures + 1))
}

# run STATUS ARG... - runs pdx and compares its exit status.
run() {
    want=$1
    shift
    what="pdx $*"
    "$pdx" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ $got -eq "$want" ] || fail "$what: exit status $got, not $want"
}

# out TEXT, err TEXT - a line of the last run's output has it.
out() {
    grep -qF -e "$1" "$dir/out" || fail "$what: no \"$1\" on standard output"
}
err() {
    grep -qF -e "$1" "$dir/err" || fail "$what: no \"$1\" on standard error"
}

# Refused: one sentence on standard error and nothing else.
refused() {
    run 2 "$@"
    [ ! -s "$dir/out" ] || fail "$what: something on standard output"
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "$what: not one line on standard error"
}

run 2
err "usage: pdx COMMAND"
run 0 help
out "usage: pdx COMMAND"
run 0 --help
run 0 --version
out "libpdx"
refused nonsense
err 'there is no command "nonsense"'
refused help nonsense

for command in decode prefill demo models doctor version; do
    run 0 help $command
    out "usage: pdx $command"
    run 0 $command --help
    refused $command --nonsense
    err "there is no option --nonsense"
done

run 0 models
for model in DeepSeek-V3.2 Gemma-3-27B gpt-oss-120b Jamba-1.5-Mini Llama-3.1-70B Nemotron-H-8B \
    Qwen3-Next-80B-A3B; do
    out "$model"
done
out "73.7 MiB/request"
run 0 models --tp 16
out 'tensor "conv_b" of its mamba has 8 groups'
out "40.0 KiB"
run 0 models --help
out "Qwen3NextForCausalLM"
run 0 models --tp 2 qwen3-next-80b-a3b
out "conv_q"
echo '{"architectures": ["LlamaForCausalLM"]}' >"$dir/config.json"
refused models "$dir/config.json"
err 'config.json: key "num_hidden_layers" is missing'
refused models --tp 3 Llama-3.1-70B
err "TP size 3 cannot split"

# Output that is lost is no success; streams that are closed go to no socket.
what="pdx models >/dev/full"
"$pdx" models >/dev/full 2>"$dir/err"
[ $? -eq 1 ] || fail "$what: exit status is not 1"
err "cannot write to standard output"
what="pdx doctor without streams"
"$pdx" doctor --bind 127.0.0.1:0 <&- >&- 2>&- || fail "$what: exit status is not 0"

# Options of demo that decode refuses before prefill has started.
refused demo --io select
err "--io is auto"
refused demo --mem 1
err "option --mem"

run 0 doctor --bind 127.0.0.1:0
out "congestion control"
out "waits with"
out "127.0.0.1:"
refused doctor --bind nowhere

if [ $failures -gt 0 ]; then
    echo "$failures problems"
    exit 1
fi
