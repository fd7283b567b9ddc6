#!/bin/sh
# Checks that sums stay in registers during summation (the tiles of pair_sums.h, sums_over_rows.h): the compiled code of
# each function stores at most two vectors on the stack, which are allowed before its loops. Storing the sums in every
# step would give the same results, but take twice as long. Recognises x86 instructions from AVX on.
#
#   sh tests/registers.sh BUILD           BUILD: the directory of the build, which has fast kernels
set -eu

cd "$(dirname "$0")/.."
objdump -d -C --no-show-raw-insn "$1"/src/kernels/*/*.o | awk '
  / file format / { object = $1 }
  /^[0-9a-f]+ </ {
    of_sums = match($0, /simd::(tile|sum_over_rows)</)
    name = substr($0, RSTART + 6, RLENGTH - 7)
    functions += of_sums > 0
    stores = 0
  }
  of_sums && $2 ~ /^v/ { ++known }
  of_sums && /vmov[au]p[sd] +%[xyz]mm[0-9]+,.*\(%r[sb]p/ && ++stores == 3 && !said[object name]++ {
    print "tests/registers.sh: " object " a function of " name "() stores three vectors or more on the stack" >"/dev/stderr"
  }
  END {
    for (each in said) exit 1
    if (!functions) { print "tests/registers.sh: no function that adds up was found" >"/dev/stderr"; exit 1 }
    if (known) print "registers: " functions " functions keep their sums in registers"
  }'
