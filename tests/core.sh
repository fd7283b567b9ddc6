#!/bin/sh
# Checks that the core can construct and train models without an operating system: a program linked from the core's
# objects alone trains a model, and no object includes a POSIX header, <filesystem>, <fstream>, or a header of another
# library. Two sources may use the system, since both also work without it: src/base/memory.cpp for huge pages, and
# src/base/fiber.cpp for stacks and for switching between them.
#
#   sh tests/core.sh BUILD OBJECT...      BUILD: the directory of the build; OBJECT: an object file of the core
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

# The files that the objects depend on, as listed by the compiler.
files=$(for object in "$@"; do tr -s ' \\' '\n' <"${object%.o}.d"; done | sed 's/:$//' | sort -u)
foreign=$(echo "$files" | grep -E "$libraries") && die "the core was compiled with $foreign"

# The standard library's headers include some of the headers below, so only heed's own files are searched.
system='#include <((unistd|fcntl|dirent|spawn|dlfcn|pthread|poll|signal|setjmp|ucontext|(sys|linux)/[a-z_]*)\.h|filesystem|fstream)>'
own=$(echo "$files" | grep -E '^(include/heed|src)/' | grep -vxE 'src/base/(memory|fiber)\.cpp')
# shellcheck disable=SC2086
found=$(grep -nE "$system" $own) && die "the core calls the system: $found"

"$build/tests/core" || die "the core's program does not learn"
echo "core: compiled without an operating system, its model learns"
