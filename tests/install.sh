#!/bin/sh
# Installs heed into a separate directory, follows docs/library.md there, and checks the installed program and its
# files.
set -eu

cd "$(dirname "$0")/.."
page=docs/library.md
place=$(mktemp -d)
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/install.sh: $*" >&2
  exit 1
}

"${MAKE:-make}" --silent --no-print-directory install PREFIX="$place/usr"
sed -n '/^\/\/ learn.cpp:/,/^```$/p' "$page" | sed '$d' >"$place/learn.cpp"
sed -n '/^\/\/ hydra.h$/,/^```$/p' docs/adding-a-mechanism.md | sed '$d' >"$place/hydra.h"
[ -s "$place/learn.cpp" ] || die "$page has no program that begins with '// learn.cpp:'"

cd "$place"
PKG_CONFIG_PATH=$place/usr/lib/pkgconfig
export PKG_CONFIG_PATH
# CXX, for example "ccache g++", and the flags may be several words.
# shellcheck disable=SC2046,SC2086
${CXX:-g++} -O2 -Wall -Wextra -Wpedantic -Werror -o learn learn.cpp $(pkg-config --cflags --libs heed)
./learn >output || die "the program of $page fails"
awk '$3 == "loss" { last = $4; if (!seen++) first = last }
     END { exit !(seen > 1 && last < first / 2) }' output || die "the loss did not fall: $(cat output)"

usr/bin/heed list >list || die "the installed program fails"
! usr/bin/heed list aft | grep '^its page' || die "heed list names a source that is not installed"
grep -q '^softmax' list || die "the installed program lists no softmax: $(cat list)"
usr/bin/heed plugin hydra.h >/dev/null || die "the installed program cannot compile a plugin"
usr/bin/heed list --plugin hydra.so | grep -q '^hydra' || die "the installed program does not list its plugin's mechanism"
# A build of plain loops cannot measure models, and must print an error that says so.
if usr/bin/heed bench --only models --match 'vit-micro sima infer' --seconds 0.001 >speed 2>refusal; then
  grep -q '^vit-micro sima infer' speed || die "heed bench measured no model: $(cat speed)"
else
  grep -q 'a build of plain loops' refusal || die "the installed program does not measure its models: $(cat refusal)"
fi
for model in usr/share/heed/models/*.toml; do
  [ -s "$model" ] || die "no models are installed"
done
# From any directory, the installed program finds its models and experiments, and trains.
usr/bin/heed cost models/vit-micro.toml >cost || die "the installed program does not find its models"
usr/bin/heed train experiments/images.toml --check >/dev/null 2>refusal && die "training without images succeeds"
grep -q 'data.path' refusal || die "the installed program does not find its experiments: $(cat refusal)"
printf 'base = "models/vit-micro.toml"\n' >mine.toml
usr/bin/heed cost mine.toml | sed 's/^mine/models\/vit-micro/' | cmp -s - cost || die "a base is not found among the installed models"
if [ -d /usr/share/datasets/fashion-mnist ]; then
  usr/bin/heed train experiments/fashion-mnist.toml --run run --set data.limit=256 --set data.validation=64 \
    --set train.epochs=1 >trained || die "the installed program does not train"
  grep -q '^test accuracy' trained || die "the installed program prints no test accuracy: $(cat trained)"
  usr/bin/heed predict run usr/share/heed/experiments/pictures/sneaker.png >/dev/null || die "heed predict fails"
fi
# No notebook of the students' course links to a file outside the course.
usr/bin/heed lab bundle -o course >/dev/null || die "heed lab bundle fails"
for link in $(grep -oh '](\.\./[^)#]*' course/notebooks/*.ipynb | cut -c6-); do
  [ -s "course/$link" ] || die "notebooks link to $link, which is not in the bundle"
done
for file in experiments/tools/plot_run.py experiments/tools/figures.py datasets/fetch.sh examples/attention.cpp; do
  [ -s "usr/share/heed/$file" ] || die "$file is not installed"
done
usr/share/heed/experiments/tools/scaling --help >/dev/null || die "an installed script fails"
usr/share/heed/experiments/claims/soft-memory --judge >/dev/null || die "the script of an installed claim fails"
bash -n usr/share/bash-completion/completions/heed || die "the completion script is not valid bash"
for command in $(usr/bin/heed help | sed -n '/^Subcommands:$/,/^$/s/^  \([a-z_]*\) .*/\1/p'); do
  manual=usr/share/man/man1/heed-$command.1
  grep -q '^\.SH SYNOPSIS' "$manual" && grep -q "^heed $command" "$manual" || die "the man page of heed $command is missing"
done
! grep -q 'heed\\- ' usr/share/man/man1/heed.1 || die "the man page of heed refers to a page without a name"

echo "installed library: the program of $page compiles and learns"
