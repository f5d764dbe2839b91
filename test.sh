#!/usr/bin/env bash
# Builds blockdraft and runs its tests; see --help. Quiet while all is well, the whole log when something fails.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
  cat <<'TEXT'
usage: ./test.sh [fast|asan|tsan]
  (nothing)  optimized build, the whole suite
  fast       optimized build, the tests labelled "fast" (about a minute)
  asan       the whole suite under AddressSanitizer and UndefinedBehaviorSanitizer
  tsan       the whole suite under ThreadSanitizer
Installs missing Debian packages, builds into build/<preset>, keeps logs there.
TEXT
}

preset=cpu-release
run=()
select=()
case "${1:-}" in
  "") ;;
  fast) select=(--label-regex '^fast$') ;;
  asan) preset=cpu-debug ;;
  tsan)
    preset=tsan
    # ThreadSanitizer needs its shadow memory where address randomization may have put something else.
    if setarch "$(uname -m)" -R true 2>/dev/null; then run=(setarch "$(uname -m)" -R); fi
    ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
if [ $# -gt 1 ]; then usage >&2; exit 2; fi

jobs=$(nproc)
folder=build/$preset
mkdir -p "$folder"

# step LOG TEXT COMMAND...: one line, and the log only if the command fails.
step() {
  local log=$folder/$1.log text=$2
  shift 2
  echo "$text"
  "$@" >"$log" 2>&1 || { cat "$log"; echo "failed: $text (log: $log)" >&2; exit 1; }
}

configure=(cmake --preset "$preset" -D BLOCKDRAFT_BUILD_TESTS=ON)
if command -v ccache >/dev/null; then configure+=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

tools/install_dependencies.sh
step configure "configuring preset $preset" "${configure[@]}"
step build "building in $folder with $jobs jobs" cmake --build "$folder" -j "$jobs"
step test "running the tests${1:+ ($1)}" "${run[@]}" \
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "${select[@]}"

# Cases that skipped themselves, each reason once: the line after GoogleTest's "file:line: Skipped".
skipped=$(awk '/: Skipped$/ { getline; print }' "$folder/Testing/Temporary/LastTest.log" | sort | uniq -c)
if [ -n "$skipped" ]; then printf 'skipped cases:\n%s\n' "$skipped"; fi
sed -n '/tests passed, /,$p' "$folder/test.log"
