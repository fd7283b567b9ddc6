#!/bin/sh
# Any two public headers can be included together: all of them compile as one file, in both orders.
#
#   FLAGS='...' sh tests/headers.sh
set -eu

cd "$(dirname "$0")/.."
for order in '' -r; do
  # CXX may be several words, and so are the flags.
  # shellcheck disable=SC2086
  (cd include && find heed -name '*.h' | LC_ALL=C sort $order) | sed 's/.*/#include "&"/' |
    ${CXX:-g++} ${FLAGS:--std=c++20} -Iinclude -Werror -fsyntax-only -x c++ - ||
    { echo "tests/headers.sh: the public headers cannot be included together${order:+ in reverse order}" >&2; exit 1; }
done
echo "headers: all can be included together"
