#!/bin/sh
# Trains with mpirun in 2, 4 and 8 processes, and compares the files that they write with those of a single process. The
# argument is the folder of a build with MPI=1. HEED_KILLS: number of runs in which a process is killed; HEED_KILL_SEED:
# seed of the random choices of that process and of the time.
set -eu

cd "$(dirname "$0")/.."
heed=$PWD/$1/heed
if ! command -v mpirun >/dev/null; then
  echo "processes: skipped: mpirun is missing; \`make deps MPI=1\` installs it"
  exit 0
fi
place=$(mktemp -d)
clean() {
  for host in ada grace; do ! [ -e "/run/netns/$host-$$" ] || ip netns del "$host-$$"; done
  rm -rf -- "$place"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

# The first settings allow root, as in containers, and more processes than cores. The last is the number of seconds that
# mpirun waits before and after it asks processes to end.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_odls_base_sigkill_timeout=3

die() {
  echo "tests/processes.sh: $*" >&2
  exit 1
}

# train PROCESSES RUN ARGUMENTS...: runs heed train in PROCESSES processes.
train() {
  processes=$1 run=$place/$2
  shift 2
  if [ "$processes" = 1 ]; then
    "$heed" train --run "$run" "$@" >"$place/out" 2>"$place/err"
  else
    mpirun -q -np "$processes" "$heed" train --run "$run" "$@" >"$place/out" 2>"$place/err"
  fi
}

# rows RUN: prints the rows of metrics.csv without the last column, the images per second.
rows() {
  cut -d, -f1-6 "$1/metrics.csv"
}

# same RUN OTHER: checks that both runs wrote the same files.
same() {
  for file in last.safetensors best.safetensors gradients.csv; do
    cmp -s "$place/$1/$file" "$place/$2/$file" || die "$file of $2 differs from that of $1"
  done
  rows "$place/$1" >"$place/rows"
  rows "$place/$2" | cmp -s - "$place/rows" || die "metrics.csv of $2 differs from that of $1"
}

# first COUNT BYTES-OF-ONE BYTES-OF-HEADER FILE: writes the first COUNT images or labels of a file of Fashion-MNIST as a
# file of MNIST, whose header has four numbers for images and two for labels.
first() {
  zcat "/usr/share/datasets/fashion-mnist/$4.gz" >"$place/all"
  head -c 4 "$place/all" >"$place/data/$4"
  # shellcheck disable=SC2059
  printf "\\000\\000\\$(printf %03o $(($1 / 256)))\\$(printf %03o $(($1 % 256)))" >>"$place/data/$4"
  tail -c +9 "$place/all" | head -c $(($3 - 8 + $1 * $2)) >>"$place/data/$4"
}
mkdir "$place/data"
for part in "288 train" "128 t10k"; do
  first "${part% *}" 784 16 "${part#* }-images-idx3-ubyte"
  first "${part% *}" 1 8 "${part#* }-labels-idx1-ubyte"
done

small="--set data.name=mnist --set data.path=$place/data --set data.validation=96 --set train.epochs=2
  --set train.batch=64 --set train.microbatch=8 --set train.log_steps=true --set train.dropout=0.1 --set train.ema=0.9"
micro="--set model.depth=1 --set model.dim=32 --set model.hidden=32 --set model.heads=2"

# compare NAME COUNTS EXPERIMENT SETTINGS...: compares runs in COUNTS processes, and a run whose number of processes
# changes twice, with a run in one process.
compare() {
  name=$1 counts=$2
  shift 2
  train 1 "$name" "$@" || die "$name: $(cat "$place/err")"
  for count in $counts; do
    train "$count" "$name-$count" "$@" || die "$name in $count processes: $(cat "$place/err")"
    grep -q "^$count processes on 1 host" "$place/out" || die "$name does not print that there are $count processes"
    tr '\n' ' ' <"$place/out" | grep -q "FLOP/s of float32 matrix products in $count processes " ||
      die "$name does not compare its speed with that of $count processes"
    same "$name" "$name-$count"
  done
  train "${counts##* }" "$name-resumed" "$@" --set train.max_steps=1 || die "$name: $(cat "$place/err")"
  train 1 "$name-resumed" --resume --set train.max_steps=2 || die "$name, resumed in one: $(cat "$place/err")"
  train "${counts%% *}" "$name-resumed" --resume --set train.max_steps=0 || die "$name, resumed: $(cat "$place/err")"
  same "$name" "$name-resumed"
  echo "  $name: the files of 1 and of $counts processes are the same"
}

# hosts RUN ARGUMENTS...: trains in two processes on separate hosts, which are connected network namespaces.
hosts() {
  run=$place/$1 number=1
  shift
  ip netns add "grace-$$"
  ip link add ada netns "ada-$$" type veth peer name grace netns "grace-$$"
  for host in ada grace; do
    ip -n "$host-$$" addr add 10.9.0.$number/24 dev $host
    ip -n "$host-$$" link set lo up
    ip -n "$host-$$" link set $host up
    echo "10.9.0.$number slots=1" >>"$place/hosts"
    number=$((number + 1))
  done
  # on NAME SUFFIX COMMAND...: runs a command on a host. login HOST WORD...: runs a command on grace; mpirun on ada
  # calls it instead of ssh.
  cat >"$place/on" <<'end'
#!/bin/sh
exec ip netns exec "$1-$2" unshare --uts sh -c 'hostname "$0" && shift && exec "$@"' "$@"
end
  cat >"$place/login" <<end
#!/bin/sh
shift
exec "$place/on" grace $$ sh -c "\$*"
end
  chmod +x "$place/on" "$place/login"
  "$place/on" ada $$ mpirun -q -np 2 --hostfile "$place/hosts" --mca plm_rsh_agent "$place/login" \
    "$heed" train --run "$run" "$@" >"$place/out" 2>"$place/err"
}

# The variables of settings are not quoted, since each word is an argument.
# shellcheck disable=SC2086
{
  mnist=experiments/fashion-mnist.toml
  compare softmax "2 4 8" $mnist $small --set "data.augment=['crop','mixup','cutmix']"
  compare adder-block "2 4" $mnist $small $micro --set attention.mechanism=adder --set model.linear=adder
  compare aft "2 4" $mnist $small $micro --set attention.mechanism=aft --set train.recompute=true
  compare soft "2 4" experiments/soft-mnist.toml $small
  compare cvt "2 4 8" experiments/cvt-mnist.toml $small
  compare double "4" $mnist $small $micro --set train.dtype=f64
  compare streamed "2" $mnist $small $micro --set model.hidden=140000 --set train.epochs=1
  compare threads "2" $mnist $small --threads 2
  if train 1 try $mnist $small $micro --set train.dtype=bf16; then
    compare bf16 "2 4" $mnist $small $micro --set train.dtype=bf16 --set train.recompute=true
  else
    echo "  bf16: skipped: $(cat "$place/err")"
  fi

  if [ "$(id -u)" = 0 ] && ip netns add "ada-$$" 2>/dev/null; then
    hosts softmax-hosts $mnist $small --set "data.augment=['crop','mixup','cutmix']" || die "hosts: $(cat "$place/err")"
    grep -q "^2 processes on 2 hosts" "$place/out" || die "two hosts are not recognised: $(cat "$place/out")"
    same softmax softmax-hosts
    echo "  two hosts: the files of 1 and of 2 processes are the same"
  else
    echo "  two hosts: skipped: network namespaces cannot be created here"
  fi

  # Errors take one line and list the possible numbers of processes.
  train 3 refused $mnist $small && die "three processes are accepted"
  [ "$(cat "$place/err")" = "heed: [train] batch = 64 in microbatches of 8: expected 1, 2, 4 or 8 processes, found 3" ] ||
    die "unexpected error of three processes: $(cat "$place/err")"
  train 2 softmax $mnist $small && die "a run is started in the directory of another"
  [ "$(wc -l <"$place/err")" = 1 ] || die "the error for an existing run has several lines: $(cat "$place/err")"
  mpirun -q -np 2 "$heed" list >"$place/out" 2>"$place/err" && die "list runs twice"
  [ "$(wc -l <"$place/err")" = 1 ] || die "the error of list in two processes has several lines: $(cat "$place/err")"
  # Several processes report one divergence, the same as a single process, whichever of them detects it first.
  for count in 1 2 4; do
    train $count diverged experiments/cvt-mnist.toml $small --set optim.lr=1e12 && die "training with a large rate succeeds"
    rm -r "$place/diverged"
    [ "$count" = 1 ] && cp "$place/err" "$place/diverged-alone"
    cmp -s "$place/err" "$place/diverged-alone" || die "$count processes report another divergence: $(cat "$place/err")"
  done
  cp "$heed" "$place/other"
  echo >>"$place/other"
  mpirun -q -np 1 "$heed" train --check $mnist $small : -np 1 "$place/other" train --check $mnist $small \
    >"$place/out" 2>"$place/err" && die "two builds train together"
  host=$(uname -n)
  [ "$(cat "$place/err")" = "heed: process 1 on $host runs a different build from process 0 on $host; all must \
run the same program" ] || die "unexpected error of two builds: $(cat "$place/err")"
  mpirun -q -np 2 "$heed" eval "$place/softmax" --knn >"$place/out" 2>"$place/err" && die "eval --knn runs twice"
  [ "$(cat "$place/err")" = "heed: eval: --knn, --linear and --shots run in one process; 2 were started" ] ||
    die "unexpected error of eval --knn in two processes: $(cat "$place/err")"
  "$heed" bench models/vit-micro.toml --batch 32 --scaling --seconds 0.1 >"$place/out" || die "bench --scaling fails"
  for section in '/^processes of/,/^exchanged/' '/^hosts of/,/^predicted/'; do
    sed -n "$section p" "$place/out" | grep -qE '^2 +[1-9][0-9]' || die "bench --scaling: $(cat "$place/out")"
  done
  mpirun -q -np 2 "$heed" eval "$place/softmax" >"$place/out" 2>&1 || die "eval: $(cat "$place/out")"
  "$heed" eval "$place/softmax" | cmp -s - "$place/out" || die "two processes print another evaluation than one"

  # Ctrl-C to mpirun, a signal to one process, and a process killed at a random time.
  long="$mnist $small $micro --set train.epochs=200 --set train.checkpoint_steps=2"
  train 1 whole $long || die "$(cat "$place/err")"
  # begin PROCESSES RUN ARGUMENTS...: starts training in the background and waits for the first steps.
  begin() {
    processes=$1 run=$place/$2
    shift 2
    mpirun -q -np "$processes" "$heed" train --run "$run" "$@" >"$place/out" 2>"$place/err" &
    mpirun=$!
    until [ -e "$run/metrics.csv" ] && [ "$(wc -l <"$run/metrics.csv")" -gt 3 ]; do
      kill -0 $mpirun 2>/dev/null || die "$run has not started: $(cat "$place/err")"
      sleep 0.1
    done
  }
  children() {
    cat "/proc/$mpirun/task/$mpirun/children"
  }
  # after_signal RUN PROCESSES STATUS: checks that mpirun ended with STATUS and that the run was saved; resumes it in
  # PROCESSES processes. The files of the resumed run must equal those of the run without an interruption.
  after_signal() {
    status=0
    wait $mpirun || status=$?
    [ $status = "$3" ] || die "$1 ends with status $status: $(cat "$place/err")"
    grep -q '^interrupted and saved' "$place/out" || die "$1 does not print that it was saved: $(cat "$place/out")"
    train "$2" "$1" --resume || die "$1 cannot be resumed: $(cat "$place/err")"
    same whole "$1"
  }
  begin 2 signalled $long
  kill -INT $mpirun
  after_signal signalled 4 1 # mpirun's own status
  begin 4 told $long
  kill -TERM "$(children | cut -d ' ' -f 4)"
  after_signal told 1 130
  echo "  stopped by mpirun and by one process: saved, and resumed to equal bytes"

  number=${HEED_KILL_SEED:-1}
  for _ in $(seq "${HEED_KILLS:-3}"); do
    rm -rf "$place/killed"
    begin 4 killed $long
    number=$(((number * 1103515245 + 12345) % 2147483648))
    sleep "$(awk "BEGIN { print $number / 2147483648 }")"
    all=$(children)
    victim=$(echo "$all" | cut -d ' ' -f $((number / 65536 % 4 + 1)))
    kill -KILL "$victim" || continue # the run had already ended
    killed=$(date +%s)
    wait $mpirun && die "a killed run exits with status 0"
    [ $(($(date +%s) - killed)) -le 30 ] || die "the others took $(($(date +%s) - killed)) s to end"
    [ "$(grep -c 'has died' "$place/err")" -le 1 ] || die "several processes report one death: $(cat "$place/err")"
    for process in $all; do
      grep -qs "$place/killed" "/proc/$process/cmdline" && die "process $process is still running"
    done
    train 2 killed --resume || die "a killed run cannot be resumed: $(cat "$place/err")"
    same whole killed
    echo "  killed: $(grep -h 'has died' "$place/err" || echo 'by mpirun alone')"
  done
}
echo "processes: all checks passed"
