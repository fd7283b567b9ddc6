#!/bin/sh
# Checks that cold files do not depend on the architecture, since a package compiles them once for both AVX2 and AVX-512
# (mk/package.mk): they may include no vector kernels, whose inline functions differ, and use no HEED_ARCH or __AVX512.
#
#   sh tests/cold.sh BUILD OBJECT...      OBJECT: an object file that is compiled once
set -eu

cd "$(dirname "$0")/.."
shift

die() {
  echo "tests/cold.sh: compiled once for several architectures, but depends on one of them: $*" >&2
  exit 1
}

files=$(printf '%s\n' "$@" | sed 's/o$/d/' | xargs cat | tr -s ' \\' '\n' | grep -E '^(src|include)/[^:]*$' | sort -u)
[ "$(echo "$files" | wc -l)" -gt 100 ] || die "no sources were searched"
# shellcheck disable=SC2086
! grep -nE 'HEED_ARCH|__AVX512|<hwy/' $files || die "the lines above"
echo "cold: $# objects do not depend on the architecture"
