#!/bin/sh
# Measures how many faults the suite detects. Plants one fault at a time in a copy of the source, rebuilds, and runs
# test suites until one fails: first those of the fault's layer, then all others, both from the quickest to the slowest.
# A fault that no test detects survives; at most 5 of 100 may.
#
#   sh tests/mutants.sh [COUNT [SEED]]      default: 100 1; writes a line per fault to build/mutants/results
#
# Skips faults that do not compile, faults in a header that more than WIDEST objects include, and those listed in
# tests/mutants.txt, which no test could detect. Continues an existing file of results.
set -eu

cd "$(dirname "$0")/.."
count=${1:-100}
seed=${2:-1}
WIDEST=${WIDEST:-40}
layers='base cost kernels attention tape ops nn checks analysis data io train apps/cli/comparing'
tab=$(printf '\t')
root=$PWD
place=$root/build/mutants
results=$place/results
tree=$place/tree

die() {
  echo "tests/mutants.sh: $*" >&2
  exit 1
}

build() { "${MAKE:-make}" -C "$tree" --no-print-directory CXX="${CXX:-g++}" all build/tests/run >"$place/build.log" 2>&1; }

# Runs the suites whose names are on standard input, the quickest first. The limit on each suite's CPU time is three
# times the total that these suites normally take, plus 30 seconds. All suites together may take ten times this limit in
# elapsed time, since the host may be busy.
run_tests() {
  awk 'NR == FNR { times[$1] = $2; next } { print times[$1] + 0, $1 }' "$place/times" - | sort -n >"$place/now"
  seconds=$(awk '{ sum += $1 } END { print int(3e-6 * sum) + 30 }' "$place/now")
  # A fault may fill memory or disk, so memory is limited, and temporary files are in a directory that is removed.
  mkdir -p "$scratch"
  passed=true
  (cd "$tree" && SUITES=$(cut -d' ' -f2 "$place/now") TMPDIR=$scratch prlimit --as=16000000000: --cpu="$seconds": \
    timeout -k 5 "${seconds}0" sh tests/suites.sh build --log_level=unit_scope) \
    >"$place/tests.log" 2>&1 </dev/null || passed=false
  rm -rf -- "$scratch"
  $passed
}

# suites_of LAYER: prints the suites of a layer's tests, or of all layers for '*', one per line.
suites_of() {
  # shellcheck disable=SC2086
  (cd "$tree/tests" && find $1 -mindepth 1 -name '*.cpp' -exec sed -n 's/^BOOST_[A-Z_]*TEST_SUITE(\([a-z0-9_]*\).*/\1/p' {} +) |
    sort -u
}

mkdir -p "$tree"
memory=/dev/shm
[ -w "$memory" ] || memory=$place
scratch=$memory/heed-mutants.$$
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# The build is copied with its modification times, so that make recompiles little.
for part in $(git ls-files | cut -d/ -f1 | sort -u); do
  rm -rf -- "${tree:?}/$part"
  cp -a "$part" "$tree"
done
mkdir -p "$tree/build"
[ -d "$tree/build/src" ] || cp -a build/Og build/O3 build/flags build/src build/tests build/libheed.a build/heed "$tree/build"
build || die "the copy of the source does not build: $(tail -n 5 "$place/build.log")"
suites_of '*' >"$place/all"
sed 's/$/ 1e7/' "$place/all" >"$place/times"
run_tests <"$place/all" || die "the tests fail without a planted fault: $(tail -n 5 "$place/tests.log")"
sed -n 's/.*Leaving test suite "\(.*\)"; testing time: \([0-9]*\)us/\1 \2/p' "$place/tests.log" >"$place/times.new"
mv "$place/times.new" "$place/times"

sources=$(cd "$tree" && for layer in $layers; do find "src/$layer" "include/heed/$layer" -name '*.h' -o -name '*.cpp'; done 2>/dev/null |
  LC_ALL=C sort)
# shellcheck disable=SC2086
(cd "$tree" && awk -v seed="$seed" -f tests/mutants.awk $sources) >"$place/drawn"

touch "$results"
done=$(wc -l <"$results")
while [ "$done" -lt "$count" ] && IFS=$tab read -r file number changed; do
  original=$(sed -n "${number}p" "$tree/$file")
  fault="$file:$number$tab$original$tab$changed"
  grep -qF "$fault" "$results" && continue
  # Equivalent faults are identified by their text, since line numbers change.
  grep -qxF -- "$file$tab$original$tab$changed" "$tree/tests/mutants.txt" && continue
  case $file in *.h) [ "$(grep -rlF --include='*.d' "$file" "$tree/build" | wc -l)" -le "$WIDEST" ] || continue ;; esac

  cp -a "$tree/$file" "$place/original"
  awk -v number="$number" -v changed="$(printf '%s' "$changed" | sed 's/\\/\\\\/g')" \
    'FNR == number { $0 = changed } { print }' "$place/original" >"$tree/$file"
  layer=${file#include/heed/}
  layer=${layer#src/}
  layer=${layer%%/*}
  if build; then
    suites_of "$layer" >"$place/own"
    if ! run_tests <"$place/own"; then
      verdict=caught
    elif ! grep -vxFf "$place/own" "$place/all" | run_tests; then
      verdict='caught by others'
    else
      verdict=survived
    fi
    done=$((done + 1))
    printf '%s\t%s\n' "$verdict" "$fault" | tee -a "$results"
  fi
  # Writing the file updates its modification time, so that make recompiles it.
  cat "$place/original" >"$tree/$file"
done <"$place/drawn"

survivors=$(grep -c '^survived' "$results") || true
echo "$((done - survivors)) of $done faults were detected"
[ $((100 * survivors)) -le $((5 * done)) ]
