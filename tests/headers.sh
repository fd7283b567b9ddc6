#!/bin/sh
# Checks that any two public headers can be included together: one file that includes all of them must compile, in
# alphabetical and in reverse order. With HEED_HEADERS=each, every header is also compiled alone, in 100 seconds of CPU
# time. A header that is the first include of another header is checked by compiling the other header.
#
#   FLAGS='...' sh tests/headers.sh
set -eu

cd "$(dirname "$0")/../include"
# CXX and FLAGS may be several words.
compile="${CXX:-g++} ${FLAGS:--std=c++20} -I. -Werror -x c++"
for order in '' -r; do
  # shellcheck disable=SC2086
  find heed -name '*.h' | LC_ALL=C sort $order | sed 's/.*/#include "&"/' | $compile -fsyntax-only - ||
    { echo "tests/headers.sh: the public headers cannot be included together${order:+ in reverse order}" >&2; exit 1; }
done
if [ "${HEED_HEADERS-}" != each ]; then
  echo "headers: all can be included together"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find heed -name '*.h' | LC_ALL=C sort >"$work/all"
while read -r header; do sed -n '/^#include/{s/^#include "\(.*\)"/\1/p;q}' "$header"; done <"$work/all" |
  LC_ALL=C sort -u >"$work/begun_with"
# The headers are compiled, not only parsed, so that ccache can store the result.
export compile work
# shellcheck disable=SC2016
LC_ALL=C comm -23 "$work/all" "$work/begun_with" | xargs -P "$(nproc)" -I{} sh -c '
  file=$work/$(echo {} | tr / -).cpp
  echo "#include \"{}\"" >"$file"
  $compile -O0 -c -o "$file.o" "$file" || { echo "tests/headers.sh: {} cannot be included alone" >&2; exit 1; }'
echo "headers: all can be included, together and each alone"
