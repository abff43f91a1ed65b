#!/bin/sh
# Downloads a release of unghost, compares its SHA-256 sum, and only then puts the program in place. It starts nothing.
#
#   less install.sh && sudo UNGHOST_BASE_URL=https://… sh install.sh
#
# UNGHOST_VERSION   the release (default: the one this script came with)
# UNGHOST_BASE_URL  required: where archives and SHA256SUMS are (file:///path works too)
# UNGHOST_SHA256    the archive's sum, where you have it from elsewhere: then SHA256SUMS is not trusted. Without it the sum
#                   comes from the same place as the archive: it shows a whole download, not who made it
# UNGHOST_BIN_DIR   where the program goes (default /usr/local/bin)
set -eu

main() {
  version="${UNGHOST_VERSION:-0.1.0}"
  base="${UNGHOST_BASE_URL:-}"
  [ -n "$base" ] || fail "UNGHOST_BASE_URL is not set: the URL of the release's archives and SHA256SUMS"
  bin_dir="${UNGHOST_BIN_DIR:-/usr/local/bin}"
  name="unghost-$version-$(platform)"
  archive="$name.tar.gz"

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch "$base/$archive" "$work/$archive"
  expected="${UNGHOST_SHA256:-}"
  if [ -z "$expected" ]; then
    case "$base" in
      https://*) echo "UNGHOST_SHA256 is not set: the sum comes from $base, as the archive does, and shows only that the download is whole" >&2 ;;
    esac
    fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
    expected=$(awk -v file="$archive" '$2 == file { print $1 }' "$work/SHA256SUMS")
  fi
  [ -n "$expected" ] || fail "SHA256SUMS does not name $archive"
  actual=$(sum_of "$work/$archive")
  [ "$actual" = "$expected" ] || fail "$archive has the sum $actual, and $expected was expected. Nothing was installed"

  tar -xzf "$work/$archive" -C "$work"
  mkdir -p "$bin_dir"
  # Under another name first: a program that runs cannot be written to, and half a program must never be found there.
  cp "$work/$name/unghost" "$bin_dir/.unghost.new"
  chmod 0755 "$bin_dir/.unghost.new"
  mv -f "$bin_dir/.unghost.new" "$bin_dir/unghost"

  next="unghost doctor; unghost scan; unghost install [--agent]"
  case "$name" in *-darwin-*) next="ln -s $bin_dir/unghost $bin_dir/kubectl-unghost; kubectl unghost scan" ;; esac
  echo "$("$bin_dir/unghost" version) is in $bin_dir. Next: $next"
}

platform() {
  system=$(uname -s)
  case "$system" in
    Linux | Darwin) ;;
    *) fail "this script has no build for $system" ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no build for $(uname -m)" ;;
  esac
  if [ "$system" = Darwin ]; then
    echo "darwin-$arch"
    return
  fi
  libc=""
  for loader in /lib/ld-musl-*.so.1; do [ ! -e "$loader" ] || libc=-musl; done
  # A system with both is one with glibc.
  for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do [ ! -e "$loader" ] || libc=""; done
  echo "linux-$arch$libc"
}

fetch() {
  case "$1" in
    file://*) cp "${1#file://}" "$2" ;;
    https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --proto '=https' --tlsv1.2 --max-time 600 --output "$2" "$1"
      elif command -v wget >/dev/null 2>&1; then
        fetch_with_wget "$1" "$2"
      else
        fail "neither curl nor wget is here"
      fi
      ;;
    *) fail "$1 is not https: archive and sums could be replaced on the way" ;;
  esac || fail "$1 could not be downloaded"
}

# wget would follow a redirection to http as well: each step is checked before it is taken.
fetch_with_wget() {
  from="$1"
  for _ in 1 2 3 4 5; do
    # Ends with an error at a redirection, which the headers show.
    if headers=$(LC_ALL=C wget -q -S -T 60 --max-redirect=0 -O "$2" "$from" 2>&1); then return 0; fi
    to=$(printf '%s\n' "$headers" | sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*/\1/p' | tail -n 1 | tr -d '\r')
    case "$to" in
      https://*) from="$to" ;;
      "") fail "wget could not download $from: $(printf '%s\n' "$headers" | tail -n 1)" ;;
      *) fail "$from leads to $to, which is not https: archive and sums could be replaced on the way" ;;
    esac
  done
  fail "$1 is redirected too often"
}

sum_of() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail "neither sha256sum nor openssl is here, and nothing is installed unchecked"
  fi
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# The last line: a download that was cut off does nothing.
main
