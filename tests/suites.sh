#!/bin/sh
# Runs the test suites, each in its own process, as many at a time as there are CPUs. Prints the errors and messages of
# the suites, and the number of passed test cases.
#
#   sh tests/suites.sh BUILD [OPTION...]      BUILD: the directory of the build; OPTION: for the test program
#
# If SUITES is set to names separated by spaces, runs only these, in this order, until one fails.
set -eu

cd "$(dirname "$0")/.."
tests=$1/tests/run
status=0
shift
logs=$(mktemp -d)
trap 'rm -rf -- "$logs"' EXIT
trap 'exit 130' INT TERM HUP

# xargs runs no further command after one that exits with 255.
failure=${SUITES:+255}
export tests logs failure
# run PROCESSES OPTION...: runs the suites named on standard input, PROCESSES at a time.
run() {
  processes=$1
  shift
  # shellcheck disable=SC2016
  xargs -P "$processes" -I{} sh -c 'suite=$1; shift
    "$tests" --report_level=short --color_output=no --run_test="$suite" "$@" >"$logs/$suite" 2>&1 || touch "$logs/$suite.failed"
    grep -vE "^(Running [0-9]+ test cases?\.\.\.|\*\*\* No errors detected|Test module .* has passed.*|  [0-9]+ .* out of [0-9]+ (passed|skipped)|)$" \
      "$logs/$suite" | sed "s/^/$suite: /"
    [ ! -e "$logs/$suite.failed" ] || exit "${failure:-0}"' sh {} "$@"
}
"$tests" --list_content 2>&1 | sed -n 's/^\([a-z][a-z0-9_]*\)\*$/\1/p' >"$logs/all"
# The longest suites start first: a long one that starts last would leave CPUs idle. Some builds skip a whole suite.
first='transcripts selftest claims cli_bench cli_labs cli_grade cli_plugin cli_plugin_mistakes plot_run cli_cost cli_sweep aft_far synthesizer kernels_gemm performer'
# shellcheck disable=SC2086
if [ -n "${SUITES:-}" ]; then
  printf '%s\n' $SUITES
else
  printf '%s\n' $first | awk 'NR == FNR { all[$0]; next } $0 in all' "$logs/all" - | awk '!seen[$0]++' - "$logs/all"
fi >"$logs/order"
# Two suites run alone: `cli_memory`, since its programs with little memory must end within a minute, and `memory`,
# since it counts calls by newly started threads. In all other suites, waiting threads yield the CPU.
alone='cli_memory|memory'
{ grep -vxE "$alone" "$logs/order" | OMP_WAIT_POLICY=passive run "$(nproc)" "$@" &&
  grep -xE "$alone" "$logs/order" | run 1 "$@"; } || status=1

# Each suite prints its number of cases, "Running 17 test cases...", and then, for example, "15 test cases out of 1068
# passed". Builds without SIMD and those with sanitizers skip some.
cat "$logs"/* | awk '/^Running [0-9]+ test case/ { chosen += $2 }
  / test cases? out of / { all = $6; if ($7 == "passed") passed += $1; if ($7 == "failed") failed += $1 }
  END { print "  " passed + 0 " test cases out of " all + 0 " passed"
        skipped = chosen - passed - failed
        if (skipped > 0) print "  " skipped " skipped in this build"
        exit chosen + 0 != all + 0 && ENVIRON["SUITES"] == "" }' || status=1
for failed in "$logs"/*.failed; do
  [ ! -e "$failed" ] || { echo "tests/suites.sh: $(basename "$failed" .failed) failed" >&2; status=1; }
done
exit $status
