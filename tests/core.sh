#!/bin/sh
# The core makes models and trains them with no system around it: a program of its objects alone learns, and none of
# them was compiled with a header of POSIX, of files, or of a library that the core does without. Two files may ask a
# system for what it has, since both do without where there is none: src/base/memory.cpp for huge pages,
# src/base/fiber.cpp for stacks and for going from one to another.
#
#   sh tests/core.sh BUILD OBJECT...      BUILD: the directory of the build; OBJECT: those of the core
set -eu

cd "$(dirname "$0")/.."

die() {
  echo "tests/core.sh: $*" >&2
  exit 1
}

build=$1
shift
libraries='/zlib\.h|/jpeglib\.h|/stb_|/tbb/|/oneapi/|/toml\+\+/|/nlohmann/|/CLI/'
flags=$(cat "$build/flags")
case $flags in *-DHEED_NO_BLAS*) libraries="$libraries|/cblas\.h" ;; esac
case $flags in *-DHEED_NO_SIMD*) libraries="$libraries|/hwy/" ;; esac
case $flags in *-DHEED_NO_THREADS*) libraries="$libraries|/omp\.h" ;; esac

# The compiler's lists of what each object was made from.
files=$(for object in "$@"; do tr -s ' \\' '\n' <"${object%.o}.d"; done | sed 's/:$//' | sort -u)
foreign=$(echo "$files" | grep -E "$libraries") && die "the core was compiled with $foreign"

# The standard library has some of these in headers of its own, so they are looked for in heed's text.
system='#include <((unistd|fcntl|dirent|spawn|dlfcn|pthread|poll|signal|ucontext|(sys|linux)/[a-z_]*)\.h|filesystem|fstream)>'
own=$(echo "$files" | grep -E '^(include/heed|src)/' | grep -vxE 'src/base/(memory|fiber)\.cpp')
# shellcheck disable=SC2086
found=$(grep -nE "$system" $own) && die "the core asks the system: $found"

"$build/tests/core" || die "the core's program does not learn"
echo "core: compiled with no system around it, it makes a model that learns"
