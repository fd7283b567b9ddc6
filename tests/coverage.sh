#!/bin/sh
# Which lines of include and src a build with --coverage has run: the total, and the files with most lines that were not.
#
#   sh tests/coverage.sh BUILD PERCENT      fails if it was less than that
set -eu

cd "$(dirname "$0")/.."
build=$1
percent=$2
gcovr --root . --filter include/ --filter src/ --object-directory "$build" --csv "$build/coverage.csv" \
  --html-details "$build/coverage.html" "$build"
# filename,line_total,line_covered,...
awk -F, -v percent="$percent" '
  NR > 1 { all += $2; run += $3; if ($2 > $3) print $2 - $3, $2, $1 | "sort -rn | head -n 20 >&2" }
  END {
    close("sort -rn | head -n 20 >&2")
    printf "%.2f %% of %d lines were run; each of them: '"$build"'/coverage.html\n", 100 * run / all, all
    exit 100 * run < percent * all
  }' "$build/coverage.csv"
