#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need, those that are missing only.
#   tools/install_dependencies.sh       build and tests
#   tools/install_dependencies.sh ci    the formatter and the benchmark library too
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git
  nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev libpcre2-dev libutf8proc-dev
  libgtest-dev libgmock-dev zlib1g-dev
)
case "${1:-}" in
  "") ;;
  ci) packages+=(clang-format libbenchmark-dev) ;;
  *) echo "usage: ${0##*/} [ci]" >&2; exit 2 ;;
esac

# Any Python will do for the checks, wherever it comes from.
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || packages+=(python3)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "dependencies: no apt-get here; install what these Debian packages hold: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || state=none
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "dependencies: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "dependencies: run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { # quiet; the log is shown when it fails
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -qq -y "$@" \
    >"$log" 2>&1 </dev/null || { cat "$log" >&2; echo "dependencies: apt-get $1 failed" >&2; exit 1; }
}
echo "dependencies: installing ${missing[*]}"
apt update
apt install --no-install-recommends "${missing[@]}"
