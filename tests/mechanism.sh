#!/bin/sh
# Builds the mechanism of docs/adding-a-mechanism.md as a plugin, then adds it to a copy of the source as the page
# instructs: one source file, its line in the list, and one test file. The program must list it, and it must pass the
# gradient check and the tests of costs.
#
#   sh tests/mechanism.sh BUILD      BUILD: the directory of the complete build
set -eu

cd "$(dirname "$0")/.."
build=$1
page=docs/adding-a-mechanism.md
place=$(mktemp -d)
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/mechanism.sh: $*" >&2
  exit 1
}

# extract FILE: writes to FILE the block of the page whose first line is a comment with FILE's name.
extract() {
  sed -n "\|^// $1\$|,/^\`\`\`\$/p" "$page" | sed '1d; $d' >"$place/$1"
  [ -s "$place/$1" ] || die "$page has no file that begins with '// $1'"
}

# The build is copied with its modification times, so that make compiles only the new files and the list. A test
# includes a solution. The files left out are temporary: make and Python may remove them during the copying.
tar -cf "$place/copy.tar" --format=posix --warning=no-file-changed --exclude='*.new' --exclude=__pycache__ \
  Makefile mk include src tests examples notebooks/solutions "$build" || [ $? = 1 ]  # 1: some files changed meanwhile
tar -xf "$place/copy.tar" -C "$place"
rm "$place/copy.tar"
extract hydra.h
extract tests/attention/hydra.cpp
line='mechanism_entry<class Hydra>,'
grep -qF "$line" "$page" || die "$page does not state the place of '$line'"
sed -i "/MechanismEntry (\*list\[\])() = {/a $line" "$place/src/attention/mechanisms.cpp"

cd "$place"
"$build/heed" plugin hydra.h >plugin || die "heed plugin hydra.h fails"
"$build/heed" gradcheck hydra --plugin hydra.so >check || die "heed gradcheck hydra, of the plugin: $(cat check)"
cp hydra.h src/attention/hydra.cpp
"${MAKE:-make}" --no-print-directory V=1 "$build/heed" "$build/tests/run" >make.out 2>&1 || die "$(cat make.out)"
# commit.o is recompiled, since the copy has no repository.
compiled=$(grep -- ' -c -o ' make.out | grep -vc 'commit.o') || true
[ "$compiled" -le 3 ] || die "$compiled files were recompiled; expected at most 3"
"$build/heed" list >list || die "heed list fails"
grep -q '^hydra' list || die "heed list does not show the mechanism: $(cat list)"
"$build/heed" gradcheck hydra >check || die "heed gradcheck hydra: $(cat check)"
"$build/tests/run" --run_test=hydra:check_cases/stated_costs_are_what_runs,float_agrees_with_double \
  >tests.out 2>&1 || die "$(cat tests.out)"
echo "added mechanism: the example of $page compiles, as a plugin and in the tree, and its gradients and costs are right"
