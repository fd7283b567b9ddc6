# Common code of the scripts in experiments/tools and experiments/claims. $experiments is the directory `experiments`.

# In locales with decimal commas, awk reads 0.5 as 0 and writes 0,5, and sort reads 0.5 as 0.
LC_ALL=C
export LC_ALL

heed=$experiments/../build/heed
[ -x "$heed" ] || heed=$experiments/../../../bin/heed  # if these scripts are installed

# train_arms FILE.toml OPTION...: runs heed sweep, which skips finished runs. A diverged run is a result: $some_diverged
# is then 3, else 0. Any other failure ends the script with its status.
train_arms() {
  some_diverged=0
  "$heed" sweep "$@" || some_diverged=$?
  [ "$some_diverged" = 0 ] || [ "$some_diverged" = 3 ] || exit "$some_diverged"
}

# generated NAME: generates a data set with heed, unless it exists. An interrupted generation leaves an empty directory.
generated() {
  ! ls "datasets/$1"/*train.tsv >/dev/null 2>&1 || return 0
  case $1 in
    listops-micro) "$heed" listops --out "datasets/$1" --depth 4 --args 4 --min 5 --max 33 ;;
    listops-mini) "$heed" listops --out "datasets/$1" --depth 6 --args 5 --min 10 --max 129 ;;
    pairs) "$heed" pairs --out "datasets/$1" ;;
  esac
}
