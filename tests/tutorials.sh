#!/bin/sh
# Runs the commands of docs/tutorials.md in order, with one epoch of training on few images instead of MNIST and
# photographs. Files that the page shows are created from the page.
#
#   sh tests/tutorials.sh BUILD      BUILD: the directory of heed
set -eu

cd "$(dirname "$0")/.."
page=$PWD/docs/tutorials.md
place=$(mktemp -d)
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/tutorials.sh: $*" >&2
  exit 1
}

for name in "$1" experiments models; do ln -s "$PWD/$name" "$place"; done
[ "$(basename "$1")" = build ] || ln -s "$PWD/$1" "$place/build"
cd "$place"

# block LANGUAGE TEXT: the block of the page in LANGUAGE that contains TEXT, without its indentation.
block() {
  awk -v begin="^ *\`\`\`$1\$" -v text="$2" '
    $0 ~ begin { inside = 1; code = ""; match($0, /^ */); margin = RLENGTH; next }
    inside && /^ *```$/ { if (index(code, text)) { printf "%s", code; exit } inside = 0 }
    inside { code = code substr($0, margin + 1) "\n" }' "$page"
}
block toml 'arms.softmax' >mine.toml
block cpp 'squared.h' >squared.h
for file in mine.toml squared.h; do [ -s "$file" ] || die "the page lacks $file"; done

# A stand-in for MNIST, in its format: the images are bytes of the program, the labels 0 to 9 in turn.
mkdir -p data/mnist
# idx FILE COUNT BYTES: writes COUNT images and labels; BYTES is COUNT as two bytes in printf's notation.
idx() {
  {
    printf '%b' "\0000\0000\0010\0003\0000\0000$3\0000\0000\0000\0034\0000\0000\0000\0034"
    head -c $(($2 * 784)) build/heed
  } >"data/mnist/$1-images-idx3-ubyte"
  {
    printf '%b' "\0000\0000\0010\0001\0000\0000$3"
    for _ in $(seq $(($2 / 10))); do printf '\000\001\002\003\004\005\006\007\010\011'; done
  } >"data/mnist/$1-labels-idx1-ubyte"
}
idx train 1260 '\0004\0354'
idx t10k 100 '\0000\0144'
export HEED_DATA="$place/data"
for class in bird tree; do
  mkdir -p "photos/$class"
  for i in 0 1 2 3 4 5 6 7 8 9; do
    [ "$class" = bird ] || i=$((i + 50))
    build/heed image --data mnist --index "$i" -o "photos/$class/$i.png" >/dev/null || die "heed image fails"
  done
done

# Runs every command in the order of the page. `heed verdict` may exit with 4 (undecided) or 1 (does not hold).
awk '/^ *```sh$/ { inside = 1; next } /^ *```$/ { inside = 0 } inside { sub(/^ */, ""); print }' "$page" >commands
count=0
while IFS= read -r line; do
  [ -n "$line" ] || continue
  small=$line
  case $line in
  'build/heed train experiments/'*) small="$line --set train.epochs=1 --set data.limit=128 --set data.validation=32" ;;
  'build/heed train --images '*) small="$line --set train.epochs=1" ;;
  'build/heed sweep '*) small="$line --seeds 3" ;;
  'build/heed scaling '*) small="$line --seconds 0.01" ;;
  esac
  status=0
  sh -c "$small" >output 2>&1 </dev/null || status=$?
  case $line:$status in
  *:0 | 'build/heed verdict '*:[14]) count=$((count + 1)) ;;
  *) die "$small: status $status: $(tail -n 5 output)" ;;
  esac
done <commands
[ "$count" -ge 15 ] || die "the page has $count commands, fewer than 15"
for file in drawing.png maps.png rollout.png curves.svg squared.so squared.png growth.csv; do
  [ -s "$file" ] || die "$file was not written"
done
echo "tutorials: all $count commands of docs/tutorials.md run"
