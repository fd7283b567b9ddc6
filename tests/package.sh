#!/bin/sh
# Installs the package in a fresh Debian 12, trains, tests and grades with it, and removes it. Then runs the program of
# the tar file there, and in a system without the libraries that heed uses. Requires root, debootstrap, and a Debian
# mirror (HEED_DEBIAN_MIRROR).
#
#   sh tests/package.sh PACKED VERSION      PACKED: the directory of `make package`
set -eu

[ "$(id -u)" = 0 ] || exec sudo --preserve-env=HEED_DEBIAN_MIRROR sh "$0" "$@"
cd "$(dirname "$0")/.."
packed=$(realpath "$1")
version=$2
mirror=${HEED_DEBIAN_MIRROR:-http://deb.debian.org/debian}
place=$(mktemp -d)
full=$place/full
bare=$place/bare

clear() {
  for mounted in "$full/proc" "$bare/proc"; do umount "$mounted" 2>/dev/null || :; done
  rm -rf --one-file-system -- "$place"
}
trap clear EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/package.sh: $*" >&2
  [ ! -s "$place/log" ] || tail -n 20 "$place/log" >&2
  exit 1
}

# in_system SYSTEM COMMAND...: runs a command in /root of the system in the directory SYSTEM.
in_system() {
  system=$1
  shift
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${tunables:+GLIBC_TUNABLES=$tunables} chroot "$system" sh -c 'cd /root && "$@"' sh "$@" >"$place/log" 2>&1
}
# in_full COMMAND...: runs a command in the full system.
in_full() { in_system "$full" "$@"; }
printed() { grep -q -e "$1" "$place/log"; }

# ---- Two fresh systems ----
debootstrap --variant=minbase bookworm "$bare" "$mirror" >"$place/log" 2>&1 || die "debootstrap fails"
cp -a "$bare" "$full"
for system in "$full" "$bare"; do mount --bind /proc "$system/proc"; done

# ---- The package ----
find "$full" -xdev >"$place/before"
cp "$packed/heed_${version}_amd64.deb" "$full/root"
in_full apt-get -q update || die "apt-get update fails"
began=$(date +%s)
in_full apt-get -q install -y --no-install-recommends "./heed_${version}_amd64.deb" || die "the package cannot be installed"
installed=$(date +%s)
short='--set train.epochs=1 --set data.limit=2048'
# The builds of the library that this CPU can run; the loader selects the first one by default.
libraries=x86-64-v3
! grep -qw avx512vl /proc/cpuinfo || libraries='x86-64-v4 x86-64-v3'
for library in $libraries; do
  tunables=
  [ "$library" = x86-64-v4 ] || tunables=glibc.cpu.hwcaps=-AVX512F
  in_full heed --version && printed "^heed $version ($library)$" || die "the library for $library is not loaded"
  # shellcheck disable=SC2086
  in_full heed train experiments/fashion-mnist.toml --run "run-$library" $short && printed '^test accuracy' || die "training fails"
  grep -q "\"arch\": \"$library\"" "$full/root/run-$library/environment.json" || die "the run does not name $library"
  cmp "$full/root/run-$library/last.safetensors" "$full/root/run-${libraries%% *}/last.safetensors" ||
    die "the libraries train different weights"
  in_full heed selftest || die "heed selftest fails with $library"
  in_full heed gradcheck softmax || die "OpenBLAS is not loaded"
done
tunables=
run=run-$library
in_full heed maps "$run" --index 0 || die "no maps"
in_full heed report "$run" -o report.html || die "no report"
in_full heed predict "$run" /usr/share/heed/experiments/pictures/sneaker.png || die "no prediction"
in_full heed plugin none.h && die "heed plugin accepts a missing file"
for page in heed heed-train heed-lab; do [ -s "$full/usr/share/man/man1/$page.1.gz" ] || die "the man page $page is missing"; done
in_full bash -n /usr/share/bash-completion/completions/heed || die "the completion script is not valid bash"
[ -z "$(find "$full/usr/share/heed" -path '*solution*')" ] || die "the package contains solutions"

# ---- The course: plugin, lab, grading, notebook ----
sed -n '/^\/\/ hydra.h$/,/^```$/p' docs/adding-a-mechanism.md | sed '$d' >"$full/root/hydra.h"
in_full heed plugin hydra.h && die "a plugin without a compiler"
printed 'install a compiler' || die "heed plugin does not say what is missing"
in_full apt-get -q install -y --no-install-recommends g++ jupyter-nbconvert python3-ipykernel python3-matplotlib graphviz openmpi-bin ||
  die "g++, Jupyter and MPI cannot be installed"
lab=softmax-backward
mkdir -p "$full/root/class/s1"
cp notebooks/solutions/$lab/$lab.h "$full/root/class/s1"
for library in $libraries; do
  tunables=
  [ "$library" = x86-64-v4 ] || tunables=glibc.cpu.hwcaps=-AVX512F
  in_full heed plugin hydra.h && in_full heed gradcheck hydra --plugin hydra.so || die "heed plugin or its gradient check fails with $library"
  in_full heed lab check $lab --file class/s1/$lab.h || die "the solution of $lab is wrong"
  in_full heed grade class --labs /usr/share/heed/notebooks/labs -o "marks-$library.csv" || die "heed grade fails with $library"
  grep -q '^s1' "$full/root/marks-$library.csv" || die "no marks"
done
tunables=
in_full sh -ec "cp -r /usr/share/heed/notebooks . && cd notebooks && HEED=/usr/bin/heed HEED_QUICK=1 jupyter-nbconvert \
  --to=notebook --execute --output-dir=out 01-central-differences.ipynb 03-softmax-backward.ipynb" || die "the notebooks fail"
# shellcheck disable=SC2086
in_full env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated mpirun --oversubscribe -np 2 \
  heed train experiments/fashion-mnist.toml --run mpi $short || die "two processes do not train"
cmp "$full/root/mpi/last.safetensors" "$full/root/$run/last.safetensors" || die "two processes train different weights"

# ---- The tar file: in the full system, and in one without libraries ----
tar -C "$full/root" -xf "$packed/heed-$version-x86-64.tar.xz"
tar -C "$bare/root" -xf "$packed/heed-$version-x86-64.tar.xz"
mkdir -p "$bare/root/data"
cp -r "$full/usr/share/datasets/fashion-mnist" "$bare/root/data"
rm -rf "$full/root/anywhere" && mv "$full/root/heed-$version-x86-64" "$full/root/anywhere"
in_full apt-get -q purge -y heed || die "the package cannot be removed"
[ -z "$(find "$full" -xdev -name '*heed*' ! -path "$full/root/*" ! -path '*/var/log/*')" ] ||
  die "removal leaves $(find "$full" -xdev -name '*heed*' ! -path "$full/root/*" | head -n 3 | tr '\n' ' ')"
in_full anywhere/bin/heed plugin hydra.h && in_full anywhere/bin/heed gradcheck hydra --plugin hydra.so || die "the tar file: heed plugin or its gradient check fails"
in_full anywhere/bin/heed lab check $lab --file class/s1/$lab.h || die "the tar file: heed lab check fails"
for library in $libraries; do
  tunables=
  [ "$library" = x86-64-v4 ] || tunables=glibc.cpu.hwcaps=-AVX512F
  heed=heed-$version-x86-64/bin/heed
  in_system "$bare" "$heed" --version && printed "^heed $version ($library)$" || die "the tar file: the library for $library is not loaded"
  in_system "$bare" "$heed" selftest || die "the tar file: heed selftest fails with $library"
  in_system "$bare" "$heed" gradcheck softmax || die "the tar file: OpenBLAS is not loaded"
  # shellcheck disable=SC2086
  in_system "$bare" env HEED_DATA=/root/data "$heed" train experiments/fashion-mnist.toml --run "tar-$library" $short &&
    cmp "$bare/root/tar-$library/last.safetensors" "$full/root/$run/last.safetensors" || die "the tar file trains different weights"
done
# The course works from the tar file, with a compiler but without headers of libraries.
tunables=
in_system "$bare" apt-get -q update && in_system "$bare" apt-get -q install -y --no-install-recommends g++ ||
  die "g++ cannot be installed"
[ ! -e "$bare/usr/include/fmt" ] || die "the bare system has the formatting library's headers"
cp -r "$full/root/class" "$full/root/hydra.h" "$bare/root"
in_system "$bare" "$heed" plugin hydra.h && in_system "$bare" "$heed" gradcheck hydra --plugin hydra.so ||
  die "the tar file: heed plugin or its gradient check fails without library headers"
in_system "$bare" "$heed" grade class --labs "heed-$version-x86-64/share/heed/notebooks/labs" -o marks.csv ||
  die "the tar file: heed grade fails"
cmp "$bare/root/marks.csv" "$full/root/marks-$library.csv" || die "the tar file gives different marks"
echo "package: installs in $((installed - began)) s, works with $libraries, and is removed whole; the tar file works without libraries"
