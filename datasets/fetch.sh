#!/bin/sh
# Downloads a data set and checks it against the published checksums; see `fetch.sh --help`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

usage() {
  cat <<'END'
usage: datasets/fetch.sh NAME [DIRECTORY]

Downloads mnist, fashion-mnist, cifar10 or cifar100 into DIRECTORY (default: NAME beside this script) and
checks every file against datasets/checksums.md5. Intact existing files are not downloaded again.
bible is a text, 4.3 MB of English in the public domain, written by the program of Debian's package bible-kjv,
which `make deps` installs, or downloaded if HEED_MIRROR is set.

HEED_MIRROR   address to download from instead of the original sites: http://, https:// or file://, followed
              by NAME/FILE, e.g. file:///srv/datasets for /srv/datasets/mnist/...

Exit status: 0 all files are complete; 2 wrong usage, a failed download, or a file with a wrong checksum
(which is removed).
END
}

die() {
  echo "fetch.sh: $*" >&2
  exit 2
}

case "${1-}" in
  -h | --help) usage; exit 0 ;;
esac
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  usage >&2
  exit 2
fi

name=$1
target=${2:-$here/$name}
case $name in
  mnist) origin=https://ossci-datasets.s3.amazonaws.com/mnist ;;
  fashion-mnist) origin=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com ;;
  cifar10) origin=https://www.cs.toronto.edu/~kriz
    unpacked=cifar-10-batches-bin
    members="data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin" ;;
  cifar100) origin=https://www.cs.toronto.edu/~kriz
    unpacked=cifar-100-binary
    members="train.bin test.bin" ;;
  bible) origin=bible-kjv ;;
  *) die "unknown data set '$name'; expected mnist, fashion-mnist, cifar10, cifar100 or bible" ;;
esac
if [ -n "${HEED_MIRROR-}" ]; then origin=${HEED_MIRROR%/}/$name; fi

# is_intact FILE SUM
is_intact() {
  [ -f "$1" ] && [ "$(md5sum <"$1" | cut -c 1-32)" = "$2" ]
}

# decoded PATH: prints the path with escapes such as %20 replaced by the bytes that they stand for.
decoded() {
  # printf supports octal escapes in all shells: %20 becomes \040.
  printf '%b' "$(printf '%s' "$1" | awk '{
    gsub(/\\/, "\\0134")
    while (match($0, /%[0-9A-Fa-f][0-9A-Fa-f]/)) {
      hex = toupper(substr($0, RSTART + 1, 2))
      byte = 16 * (index("0123456789ABCDEF", substr(hex, 1, 1)) - 1) + index("0123456789ABCDEF", substr(hex, 2, 1)) - 1
      done = done substr($0, 1, RSTART - 1) sprintf("\\0%03o", byte)
      $0 = substr($0, RSTART + 3)
    }
    print done $0
  }')"
}

# download ADDRESS FILE
download() {
  case $1 in
    bible-kjv/*)
      command -v bible >/dev/null 2>&1 || die "the program bible is missing; install it with make deps (Debian's bible-kjv)"
      # Lines are as long as in a terminal of 80 columns, wherever this runs.
      bible -l 79 gen1:1-rev22:21 </dev/null >"$2" ;;
    file://*) cp -- "$(decoded "${1#file://}")" "$2" ;;
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --location --silent --show-error --retry 3 --output "$2" -- "$1"
      elif command -v wget >/dev/null 2>&1; then
        wget --quiet --tries 3 --output-document "$2" -- "$1"
      else
        die "neither curl nor wget is installed; run apt-get install curl ca-certificates"
      fi ;;
    *) die "HEED_MIRROR is '$HEED_MIRROR'; expected an address that begins with http://, https:// or file://" ;;
  esac
}

# make_scratch: creates the private directory $scratch on the target's disk; complete results are renamed to the target.
make_scratch() {
  scratch=$(mktemp -d -- "$target/fetching.XXXXXX") || die "$target: cannot write here"
  trap 'rm -rf -- "$scratch"; rmdir -- "$target" 2>/dev/null || true' EXIT
}

remove_scratch() {
  rm -rf -- "$scratch"
  trap - EXIT
}

# fetch FILE SUM: puts the file into $target.
fetch() {
  if is_intact "$target/$1" "$2"; then return; fi
  make_scratch
  part=$scratch/$1
  echo "$name: downloading $origin/$1"
  download "$origin/$1" "$part" || die "$origin/$1: the download failed"
  found=$(md5sum <"$part" | cut -c 1-32)
  [ "$found" = "$2" ] ||
    die "$origin/$1: expected MD5 $2, found $found ($(wc -c <"$part" | tr -d ' ') bytes); the file is removed"
  mv -fT -- "$part" "$target/$1"
  remove_scratch
  changed=yes
}

# File with the members' checksums, which unpack writes beside them.
list=checksums.md5

# unpack ARCHIVE: extracts only the known members, whatever other paths the archive has. The directory appears in the
# target only when it is complete.
unpack() {
  make_scratch
  mkdir -- "$scratch/$unpacked"
  for member in $members; do
    tar -xzOf "$target/$1" "$unpacked/$member" >"$scratch/$unpacked/$member" ||
      die "$target/$1: $unpacked/$member cannot be unpacked"
  done
  # shellcheck disable=SC2086 # the members are words
  (cd -- "$scratch/$unpacked" && md5sum -- $members >$list)
  rm -rf -- "${target:?}/$unpacked"
  mv -T -- "$scratch/$unpacked" "$target/$unpacked"
  remove_scratch
}

# is_unpacked: true if all members exist and have not changed since they were unpacked.
is_unpacked() {
  [ -f "$target/$unpacked/$list" ] || return 1
  for member in $members; do
    known=$(sed -n "s/^\\([0-9a-f]*\\)  $member\$/\\1/p" "$target/$unpacked/$list")
    is_intact "$target/$unpacked/$member" "$known" || return 1
  done
}

trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir -p -- "$target"
changed=no
while read -r sum path; do
  case $path in "$name"/*) ;; *) continue ;; esac
  file=${path#"$name"/}
  case $file in
    *.tar.gz)
      if ! is_unpacked; then
        fetch "$file" "$sum"
        unpack "$file"
        rm -f -- "$target/$file"
      fi ;;
    *) fetch "$file" "$sum" ;;
  esac
done <"$here/checksums.md5"

if [ $changed = yes ]; then
  echo "$name: complete in $target"
else
  echo "$name: already complete in $target, nothing to do"
fi
