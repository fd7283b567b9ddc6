#!/bin/sh
# Checks the course. The solution of every lab gets full marks and no flag, and its stub no marks. Every question of a
# notebook has a model answer. The students' files contain no solution. Committed notebooks have the output of all
# cells.
#
#   sh tests/labs.sh BUILD      BUILD: the directory of the complete build
set -eu

cd "$(dirname "$0")/.."
heed=$1/heed
place=$(mktemp -d)
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "tests/labs.sh: $*" >&2
  exit 1
}

count=0
for lab in notebooks/labs/*/; do
  name=$(basename "$lab")
  # Personal labs have neither a stub nor a solution: their mechanisms depend on the student's identity.
  if grep -q '^kind = "personal"' "$lab/lab.toml"; then continue; fi
  stub=$(find "$lab" -name "$name.*")
  solution=notebooks/solutions/$name/$(basename "$stub")
  [ -s "$solution" ] && [ -s "notebooks/solutions/$name/solution.md" ] || die "$name lacks a solution or its page"
  install -D -t "$place/class/solution" "$solution"
  install -D -t "$place/class/stub" "$stub"
  count=$((count + 1))
done
[ $count -gt 0 ] || die "no labs were found"
"$heed" grade "$place/class" -o "$place/marks.csv" >/dev/null 2>"$place/err" || die "heed grade: $(cat "$place/err")"
awk -F, -v labs=$count '
  $1 == "solution" && ($3 != $4 || $5 != "graded") { print $2 "\047s solution is wrong: " $0 }
  $1 == "solution" && !/,$/ { print $2 "\047s solution has flags: " $0 }
  $1 == "stub" && ($3 != 0 || $5 != "graded") { print $2 "\047s stub: " $0 }
  END { if (NR != 2 * labs + 1) print "the table has " NR " rows" }' "$place/marks.csv" >"$place/wrong"
[ -s "$place/wrong" ] && die "$(cat "$place/wrong")"

for notebook in notebooks/*.ipynb; do
  grep -q '"execution_count": null' "$notebook" && die "$notebook has a cell that did not run; make notebooks"
  grep -q '"output_type": "error"' "$notebook" && die "$notebook has a cell that failed"
  grep -qF "$PWD" "$notebook" && die "$notebook shows a path of this machine"
done

# Every question has a cell for its answer, and marks, a rubric and a model answer.
questions=0
for notebook in notebooks/*.ipynb; do
  file=notebooks/solutions/questions/$(basename "$notebook" .ipynb).toml
  [ -s "$file" ] || die "$notebook has questions, and $file is missing"
  grep -o '"answer-[a-z0-9]*"$' "$notebook" | tr -d '"' | sort >"$place/cells"
  sed -n 's/^id = "\(.*\)"$/answer-\1/p' "$file" | sort >"$place/answers"
  cmp -s "$place/cells" "$place/answers" || die "$file: the answers do not match the cells of $notebook"
  asked=$(grep -c '[*][*]Question [0-9]*[.]*[*][*]' "$notebook")
  [ "$asked" = "$(grep -c 'answer-[0-9]*$' "$place/cells")" ] || die "$notebook: a question has no cell for its answer"
  questions=$((questions + asked))
done

"$heed" lab bundle -o "$place/students" >/dev/null || die "heed lab bundle fails"
[ -z "$(find "$place/students" -path '*solution*')" ] || die "the students' files contain solutions: $(find "$place/students" -path '*solution*')"
grep -rq '^rubric = ' "$place/students/notebooks" && die "the students' files contain rubrics and answers"
echo "labs: $count solutions get all marks and no flag, their stubs no marks; $questions questions are answered"
