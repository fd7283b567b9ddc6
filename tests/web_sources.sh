#!/bin/sh
# Checks that the sources of the browser's engine (src/apps/web/web.mk) use no algorithm of std::ranges: emscripten's
# C++ library lacks these algorithms, and only `make web` would fail. Algorithms on iterators, such as
# `std::find_if(x.begin(), x.end(), ...)`, are in both libraries.
#
#   sh tests/web_sources.sh BUILD FILE...      FILE: the engine's sources
set -eu

cd "$(dirname "$0")/.."
shift
[ $# -gt 50 ] || { echo "tests/web_sources.sh: expected more than 50 files, found $#" >&2; exit 1; }
if grep -n 'std::ranges::' "$@" >&2; then
  echo 'tests/web_sources.sh: emscripten lacks std::ranges; use algorithms of std::' >&2
  exit 1
fi
echo "web: $# sources without std::ranges"
