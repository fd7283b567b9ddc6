# Common code of the claims' scripts: experiments/claims/NAME reads this first, with its own arguments in "$@". Then it
# trains (`sweep`), measures the runs (`take`, `measure`, `fact`) and tests the claim (`judge`). Runs of one setting
# share a directory, so claims share runs; existing results are reused.
set -eu

usage() {
  cat <<END
usage: experiments/claims/$claim [--out DIRECTORY] [--jobs N] [--seeds N]
       experiments/claims/$claim --judge [TABLE] [OPTION...]

Trains the claim's missing runs in DIRECTORY (default: runs/claims), N in parallel (default: 2), writes their results to
DIRECTORY/claims.csv, and judges the claim. --seeds N trains all arms with the seeds 1 to N, N at least 3, instead of
the sweeps' seeds. --judge trains nothing and judges by TABLE (default: experiments/claims/claims.csv), with further
options of heed verdict, such as --json.

The data is expected in datasets/ or \$HEED_DATA; datasets/fetch.sh downloads it, including the text.
END
}

claim=$(basename "$0")
here=$(dirname "$0")
experiments=$here/..
. "$experiments/tools/common.sh"
out=runs/claims jobs=2 wanted= judging=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --out | --jobs | --seeds)
      if [ $# -lt 2 ]; then
        echo "$claim: $1 requires a value" >&2
        exit 2
      fi
      case $1 in --out) out=$2 ;; --jobs) jobs=$2 ;; --seeds) wanted=$2 ;; esac
      shift 2 ;;
    --judge)
      judging=yes
      shift
      break ;;
    *) usage >&2; exit 2 ;;
  esac
done
table=$out/claims.csv
if [ -n "$judging" ]; then
  table=$here/claims.csv
  case ${1--} in
    -*) ;;
    *) table=$1; shift ;;
  esac
  if [ -s "$table" ] && ! grep -q "^$claim," "$table"; then
    echo "$claim: $table has no runs of this claim; train them with experiments/claims/$claim, without --judge" >&2
    exit 2
  fi
fi
verdict_options=$*

case $wanted in
  '' | [3-9] | [1-9][0-9] | [1-9][0-9][0-9]) ;;
  *)
    echo "$claim: --seeds is '$wanted'; expected a whole number of at least 3: fewer may agree by chance" >&2
    exit 2 ;;
esac

program=$("$heed" --version | cut -d " " -f 1,2)
rows=$out/$claim.rows.part
columns=claim,arm,seed,value,state,images,hash,version
if [ -z "$judging" ]; then
  mkdir -p "$out"
  : >"$rows"
  trap 'rm -f "$rows" "$table.part"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
fi

# An awk function: true if x is a finite number. Implementations of awk read "inf" and "nan" as numbers or as 0.
plain='function plain(x) { return x ~ /^[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/ }'

# sweep FILE SETTING: trains the arms of FILE.toml in the directory of the setting, and sets $seeds to its seeds.
sweep() {
  [ -z "$judging" ] || return 0
  seed_count=${wanted:-$(sed -n 's/^seeds = //p' "$here/$1.toml")}
  seeds=$(seq "$seed_count")
  train_arms "$here/$1.toml" --out "$out/$2" --jobs "$jobs" --seeds "$seed_count"
}

# transfer WHAT SWEEP SETTING/ARM...: runs experiments/tools/transfer in $out/transfer, where the runs of its sweep are
# links to these arms.
transfer() {
  [ -z "$judging" ] || return 0
  what=$1 made=$out/transfer/$2
  shift 2
  mkdir -p "$made"
  for arm in "$@"; do ln -sfn "$(cd "$out/$arm" && pwd)" "$made/${arm#*/}"; done
  "$experiments/tools/transfer" "$what" --seeds "$seed_count" --jobs "$jobs" "$out/transfer"
}

# diverged RUN: true if it diverged, as noted by a sweep in cell.json and by experiments/tools/transfer in diverged.txt.
diverged() {
  [ -e "$1/diverged.txt" ] || grep -q '"diverged"' "$1/cell.json" 2>/dev/null
}

# once FILE COMMAND...: saves the command's output in the file, unless the file exists.
once() {
  file=$1
  shift
  [ -s "$file" ] && return
  "$@" >"$file.part" || { code=$?; rm -f "$file.part"; exit $code; }
  mv "$file.part" "$file"
}

# row ARM SEED VALUE STATE IMAGES [RUN]: appends a row, with the configuration hash and heed version of the run.
row() {
  about="\"version\": \"${program#heed }\""
  if [ -s "${6-}/cell.json" ]; then
    about=$(cat "$6/cell.json")
  elif [ -e "${6-}/config.toml" ]; then
    about=$("$heed" compare "$6" --json)
  fi
  echo "$claim,$1,$2,$3,$4,$5,$(value_of hash),$(value_of version)" >>"$rows"
}

# value_of KEY: prints the text of an entry of the JSON in $about.
value_of() {
  echo "$about" | sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" | head -n 1
}

# measure RUNS ARM KEY CHANCE IMAGES [OPTION...]: appends a row for each seed of the runs in $out/RUNS: the result of
# heed eval with these options for the last epoch's weights, or CHANCE if the run diverged (unless --pixels makes its
# weights irrelevant) or its loss is not finite. IMAGES: number of test images of an accuracy, - for other values. KEY:
# name of the file in the run's directory that caches the output.
measure() {
  [ -z "$judging" ] || return 0
  runs=$out/$1 arm=$2 key=$3 chance=$4 images=$5
  shift 5
  if [ "$images" = - ]; then images=; fi
  for seed in $seeds; do
    run=$runs/seed-$seed
    if diverged "$run" && [ "${*#*--pixels}" = "$*" ]; then
      row "$arm" "$seed" "$chance" diverged "$images" "$run"
      continue
    fi
    once "$run/$key.txt" "$heed" eval "$run" --weights "$run/last.safetensors" "$@"
    value=$(sed -nE '
      s/.*top-1 accuracy ([0-9.]+) %.*/\1 100/p
      s/.*mean IoU +([0-9.]+) %.*/\1 100/p
      s/^bits per [a-z]+ ([0-9.]+)$/\1 1/p' "$run/$key.txt" | awk 'NR == 1 { printf "%.6g", $1 / $2 }')
    state=finished
    if grep -qE '^bits per [a-z]+ -?(nan|inf)' "$run/$key.txt"; then value=$chance state=diverged; fi
    if [ -z "$value" ]; then
      echo "$claim: $run/$key.txt has neither an accuracy nor bits" >&2
      exit 2
    fi
    row "$arm" "$seed" "$value" "$state" "$images" "$run"
  done
}

# take SETTING ARM...: measures each arm's test accuracy, or bits, with the last epoch's weights.
take() {
  setting=$1
  shift
  for name in "$@"; do
    case $setting in
      text) measure "$setting/$name" "$name" test 8 - ;;
      density) measure "$setting/$name" "$name" test 4 - ;;
      listops) measure "$setting/$name" "$name" test 0.1 2000 ;;
      *) measure "$setting/$name" "$name" test 0.1 10000 ;;
    esac
  done
}

# fact NAME SEED VALUE [RUN [STATE]]: appends a number that is judged without a statistical test, such as a count.
fact() {
  [ -z "$judging" ] || return 0
  if [ -z "$3" ]; then
    echo "$claim: no value of $1 for seed $2" >&2
    exit 2
  fi
  row "$1" "$2" "$3" "${5-finished}" '' "${4-}"
}

# best HIGHEST|LOWEST ARM...: prints the arm with the highest or lowest mean.
best() {
  sign=$1
  shift
  for name in "$@"; do
    awk -F, -v claim="$claim" -v arm="$name" '
      $1 == claim && $2 == arm { sum += $4; ++count }
      END { if (count) printf "%.17g %s\n", sum / count, arm }' "$known"
  done | sort -g | case $sign in highest) tail -n 1 ;; lowest) head -n 1 ;; esac | cut -d' ' -f2
}

# $known: the file with the claim's rows, for `best`: the new rows, or the judged table.
if [ -n "$judging" ]; then known=$table; else known=$rows; fi

# judge OPTION...: replaces the claim's rows in the table, and tests the claim.
judge() {
  if [ -z "$judging" ]; then
    {
      echo "$columns"
      if [ -s "$table" ]; then awk -F, -v claim="$claim" 'NR > 1 && $1 != claim' "$table"; fi
      cat "$rows"
    } >"$table.part"
    mv "$table.part" "$table"
    rm "$rows"
  fi
  # Status 1 (the claim does not hold) and 4 (undecided) are results, too.
  # shellcheck disable=SC2086  # options are words
  "$heed" verdict "$table" --claim "$claim" "$@" $verdict_options || { code=$?; [ $code = 1 ] || [ $code = 4 ] || exit $code; }
}
