#!/bin/sh
# Installs attest, the command line of the attestation service, without npm:
#   curl -fsSL .../install-attest.sh | sh -s -- --version X --dir ~/.local/bin
# `npm run pack` fills in the next three lines. Nothing is installed whose SHA-256 differs.
VERSION=''
SHA256=''
URL=''

set -eu

usage() {
  cat <<EOF
Installs attest $VERSION, or replaces the version that this script installed before.

Usage: install-attest.sh [--version X] [--dir DIR] [--file TARBALL]

  --version X     fail unless this is the script of version X
  --dir DIR       folder of the program, in PATH (default: ~/.local/bin); its files go into DIR/.attest
  --file TARBALL  install this attestation-service-cli-$VERSION.tgz, without the network
  --help          show this

ATTEST_DOWNLOAD_URL: where the tarball is (default: ${URL:-none})
Needs Node 20.19 or newer, tar, sha256sum or shasum, and without --file curl or wget.
Exit codes: 0 installed, 1 failed and nothing changed, 2 invalid arguments.
EOF
}

fail() {
  printf 'install-attest: %s\n' "$1" >&2
  exit "${2:-1}"
}

has() { command -v "$1" >/dev/null 2>&1; }

check_node() {
  has node || fail 'attest needs Node 20.19 or newer, and there is no node in PATH: https://nodejs.org/en/download'
  found=$(node --version 2>/dev/null) || fail "$(command -v node) does not run"
  version=${found#v}
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  case "$major:$minor" in *[!0-9:]* | :* | *:) fail "$(command -v node) has no version of Node: $found" ;; esac
  if [ "$major" -lt 20 ] || { [ "$major" -eq 20 ] && [ "$minor" -lt 19 ]; }; then
    fail "attest needs Node 20.19 or newer; $(command -v node) is $found"
  fi
}

check_tools() {
  has tar || fail 'tar is missing: install it'
  has sha256sum || has shasum || fail 'sha256sum and shasum are missing: install one of them'
  [ -n "$file" ] || has curl || has wget || fail 'curl and wget are missing: install one of them, or use --file'
}

download() {
  if has curl; then curl -fsSL -o "$2" "$1"; else wget -q -O "$2" "$1"; fi
}

sha256_of() {
  if has sha256sum; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# The tarball, once it is the one that this script is for.
get_tarball() {
  packed=attestation-service-cli-$VERSION.tgz
  if [ -n "$file" ]; then
    tarball=$file
    [ -f "$tarball" ] || fail "$tarball is not a file"
  else
    from=${ATTEST_DOWNLOAD_URL:-$URL}
    [ -n "$from" ] || fail 'this script names no address: set ATTEST_DOWNLOAD_URL, or use --file'
    tarball=$new/$packed
    download "$from/$packed" "$tarball" || fail "$from/$packed cannot be downloaded"
  fi
  sum=$(sha256_of "$tarball")
  [ "$sum" = "$SHA256" ] || fail "$tarball is not $packed: its SHA-256 is $sum, expected $SHA256"
}

runs() { [ "$("$1" --version 2>/dev/null)" = "$VERSION" ]; }

# Whether the link is to a program of this tarball that runs. Files that another build on this machine may use are not
# replaced by the same.
is_installed() {
  old=$(readlink "$link" || true)
  case "$old" in ".attest/$name."*) runs "$link" ;; *) false ;; esac
}

# Unpacks into a new folder, tries the program there, and replaces the link in one step.
install() {
  if ! mkdir -p "$dir/.attest" 2>/dev/null || [ ! -w "$dir" ] || [ ! -w "$dir/.attest" ]; then
    fail "$dir cannot be written: use --dir"
  fi
  dir=$(cd "$dir" && pwd)
  link=$dir/attest
  name=$VERSION.$(printf '%.12s' "$SHA256")
  if is_installed; then return; fi
  case "$old" in
    .attest/*/package/dist/attest/main.js) ;;
    *) if [ -e "$link" ] || [ -n "$old" ]; then fail "$link is not from this script: remove it, or use --dir"; fi ;;
  esac
  new=$(mktemp -d "$dir/.attest/$name.XXXXXX") || fail "$dir/.attest cannot be written: use --dir"
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  get_tarball
  tar -x -z -o -f "$tarball" -C "$new" || fail "$tarball cannot be unpacked into $new"
  [ "$tarball" = "$file" ] || rm -f "$tarball"
  program=$new/package/dist/attest/main.js
  chmod -R u=rwX,go=rX "$new"
  chmod 755 "$program"
  runs "$program" || fail "$program does not run"
  ln -s ".attest/${new##*/}/package/dist/attest/main.js" "$new/link"
  trap '' INT TERM HUP
  if is_installed; then return; fi
  mv -f "$new/link" "$link"
  trap - EXIT
  [ -z "$old" ] || rm -rf "${dir:?}/${old%%/package/*}" || true
}

main() {
  dir=${HOME:+$HOME/.local/bin}
  file=''
  wanted=$VERSION
  while [ $# -gt 0 ]; do
    case "$1" in
      --help | -h) usage && exit 0 ;;
      --version | --dir | --file) [ -n "${2:-}" ] || fail "$1 needs a value; --help shows the usage" 2 ;;
      *) fail "unknown argument $1; --help shows the usage" 2 ;;
    esac
    case "$1" in
      --version) wanted=${2#v} ;;
      --dir) dir=$2 ;;
      --file) file=$2 ;;
    esac
    shift 2
  done
  [ -n "$SHA256" ] || fail 'this is not the packed script: npm run pack writes that to dist/packages/' 2
  [ "$wanted" = "$VERSION" ] || fail "this script installs $VERSION, not $wanted: use that of release $wanted" 2
  [ -n "$dir" ] || fail 'HOME is not set: use --dir' 2
  check_node
  check_tools
  install
  printf 'attest %s is in %s\n' "$VERSION" "$dir"
  # shellcheck disable=SC2016
  case ":$PATH:" in *":$dir:"*) ;; *) printf 'Add it to PATH: export PATH="%s:$PATH"\n' "$dir" ;; esac
}

# Last and in braces, so that a script that was cut off does nothing.
{ main "$@"; }
