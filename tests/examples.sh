#!/bin/sh
# Compiles and runs examples/. The first comment of each example states its output after "Prints": the example must
# print each of these lines, in which X stands for a number that varies, and may print other lines only if the comment
# has a line "...". probe.py runs only if NumPy is installed, compare_pytorch.py only if PyTorch is.
#
#   CXX=... FLAGS='...' LIBS='...' sh tests/examples.sh BUILD      BUILD: the directory of libheed.a
set -eu

cd "$(dirname "$0")/.."
build=$1
place=$(mktemp -d)
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/examples.sh: $*" >&2
  exit 1
}

# Calls that must compile without a warning: targets from a non-const tensor, attention without a shape, a parameter
# described by designated initialisers.
cat >"$place/calls.cpp" <<'END'
#include <heed/heed.h>
using namespace heed;
int main() {
  ParameterList list;
  const ParameterId w = list.add({.name = "w", .shape = {2, 3}, .decay = false});
  Parameters<float> weights(list);
  Tape<float> tape;
  tape.begin(weights);
  Tensor<float> targets(Shape{2, 3}), x(Shape{1, 1, 2, 3});
  targets[0] = targets[5] = 1;
  const Var<float> loss = cross_entropy(tape.parameter(w), targets.view(), /*smoothing=*/0, /*divisor=*/2);
  const Var<float> q = tape.constant(x.view());
  const auto softmax = make_mechanism("softmax", {});
  return *loss.data() > 1.0986f && attention(*softmax, q, q, q).size() == 6 ? 0 : 1;  // log 3
}
END

# CXX, FLAGS and LIBS may be several words. The examples are compiled without optimisation, since the library does the
# computing.
export CXX FLAGS LIBS build place
# shellcheck disable=SC2016
printf '%s\n' examples/*.cpp "$place/calls.cpp" | xargs -P "$(nproc)" -I{} sh -c '
  ${CXX:-g++} $FLAGS -Iinclude -O0 -Wall -Wextra -Wpedantic -Werror -o "$place/$(basename {} .cpp)" {} \
    "$build/libheed.a" $LIBS' || die "an example does not compile"

# stated FILE: prints the output that the example's comment states.
stated() {
  sed -n '\|^// .*[Pp]rints.*:$|,\|^#include|s|^//   ||p' "$1" | tr -s ' ' | sed 's/^ *//'
}

# check NAME [ARGUMENT...]: runs an example and compares its output with its comment.
check() {
  name=$1
  shift
  "$place/$name" "$@" >"$place/output" || die "examples/$name.cpp fails"
  tr -s ' ' <"$place/output" | sed 's/^ *//' >"$place/squeezed"
  stated "examples/$name.cpp" >"$place/stated"
  [ -s "$place/stated" ] || die "examples/$name.cpp does not state what it prints"
  if ! grep -qx '\.\.\.' "$place/stated"; then
    [ "$(wc -l <"$place/squeezed")" = "$(wc -l <"$place/stated")" ] ||
      die "examples/$name.cpp prints lines that it does not state: $(cat "$place/output")"
  fi
  grep -vx '\.\.\.' "$place/stated" | sed 's/[][().*^$+?{}|\\]/\\&/g; s/\<X\>/[-0-9.e+]+/g' >"$place/patterns"
  while read -r pattern; do
    grep -Eqx -e "$pattern" "$place/squeezed" || die "examples/$name.cpp prints no line '$pattern': $(cat "$place/output")"
  done <"$place/patterns"
}

"$place/calls" || die "the calls that compile compute wrong values"
check own_operation
check attention
check regression
check loss
if [ -d /usr/share/datasets/fashion-mnist ]; then
  check train_mnist fashion-mnist 6400
  awk '/^test accuracy/ { good = $3 > 75 } END { exit !good }' "$place/output" || die "train_mnist: $(cat "$place/output")"
fi
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  HEED=$build/heed /usr/bin/python3 examples/probe.py >"$place/output" || die "probe.py fails"
  [ "$(grep -Ecx '(out|map) +differs by [-0-9.e+]+' "$place/output")" = 2 ] || die "probe.py: $(cat "$place/output")"
fi
# compare ERROR STATUS LINE: runs heed diff on a PyTorch model with a planted error; it must end with STATUS and print a
# line that matches LINE.
compare() {
  status=0
  HEED=$build/heed /usr/bin/python3 examples/compare_pytorch.py "$1" >"$place/output" || status=$?
  [ "$status" = "$2" ] || die "compare_pytorch.py $1: status $status: $(cat "$place/output")"
  grep -Eq -e "$3" "$place/output" || die "compare_pytorch.py $1: no line '$3': $(cat "$place/output")"
}
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  compare none 0 '^equal: all 68 common tensors agree to 1e-09'
  compare axis 1 '^first +blocks\.0\.attn/A\.out '
  compare scale 1 '^first +blocks\.0\.attn/A\.out '
  compare gradient 1 '^first +blocks\.1\.attn/S\.grad '
  grep -q 'looks  like 4 times what it should be' "$place/output" || die "compare_pytorch.py: $(cat "$place/output")"
else
  echo "examples: compare_pytorch.py is skipped: PyTorch is not installed"
fi
echo "examples: all compile, and print what their comments state"
