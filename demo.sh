#!/usr/bin/env bash
# Builds blockdraft and shows it on the demo pair: text streams with drafting, then the proof that it is the same text.
set -euo pipefail
cd "$(dirname "$0")"

folder=build/cpu-release
target=demo/pycode-14m
drafter=demo/pycode-14m-dflash
prompt='class LinkedList:
    """A singly linked list."""

    def __init__(self):
'

mkdir -p "$folder"
log=$folder/demo.log
quiet() { "$@" >"$log" 2>&1 || { cat "$log"; echo "failed: $* (log: $log)" >&2; exit 1; }; }

configure=(cmake --preset cpu-release)
if command -v ccache >/dev/null; then configure+=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

tools/install_dependencies.sh
echo "building the command line in $folder (the first time takes minutes)"
quiet "${configure[@]}"
quiet cmake --build "$folder" -j "$(nproc)" --target blockdraft-cli

printf '\n%s continues this, with drafts of %s:\n%s' "$target" "$drafter" "$prompt"
"$folder/bin/blockdraft" generate --target "$target" --drafter "$drafter" --prompt "$prompt" --max-tokens 96

printf '\n\nThe same text, decoded plainly and with drafts:\n'
"$folder/bin/blockdraft" check --target "$target" --drafter "$drafter" --prompt "$prompt" --max-tokens 96
