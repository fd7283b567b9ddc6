#!/bin/sh
# Reports the coverage of include/ and src/ in a build with --coverage: the total, and the 20 files with the most lines
# not run.
#
#   sh tests/coverage.sh BUILD PERCENT      fails if less than PERCENT % of the lines were run
set -eu

cd "$(dirname "$0")/.."
build=$1
percent=$2
gcovr -j "$(nproc)" --root . --filter include/ --filter src/ --object-directory "$build" --csv "$build/coverage.csv" \
  --html-details "$build/coverage.html" "$build"
# filename,line_total,line_covered,...
awk -F, -v percent="$percent" '
  BEGIN { sorted = "sort -rn | head -n 20 >&2" }
  NR > 1 { all += $2; run += $3; if ($2 > $3) print $2 - $3 " of " $2 " lines not run: " $1 | sorted }
  END {
    close(sorted)
    printf "%.2f %% of %d lines were run; all lines: '"$build"'/coverage.html\n", 100 * run / all, all
    exit 100 * run < percent * all
  }' "$build/coverage.csv"
