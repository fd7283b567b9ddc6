// The scripts of experiments/claims from end to end, with a stand-in for heed that trains nothing: sweeps, probes and
// tables are consistent for every claim, and heed verdict judges the results.
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

/// A stand-in for heed that finishes runs at once, with the hashes of their configurations. Some diverge: those without
/// a norm, a classifier that initialises a scene model, and a model initialised from softmax; some values are NaN or
/// infinite. Commands that only read files are passed to the program itself.
constexpr const char* stand_in = R"sh(#!/bin/sh
set -eu
case $1 in
  sweep)
    echo "$@" >>swept
    PROGRAM sweep "$2" --seeds "$8" --table --json --out "$4" >cells.json  # refuses a cell that has another hash
    rm -f diverged
    awk -F'"' '$2 == "directory" { run = $4 } $2 == "hash" { print run, $4 }' cells.json | while read -r run hash; do
      mkdir -p "$run"
      case $run in
        */sima-none/* | */scenes-classifiers/sima/seed-2 | */mnist/sima/seed-2)
          note='  "diverged": "loss is nan",\n'
          touch diverged ;;
        *)
          note=
          printf 'kind,epoch,step,loss,accuracy,lr,images_per_s\ntest,1,1,1,0.5,,\n' >"$run/metrics.csv" ;;
      esac
      printf "{\n$note"'  "hash": "'$hash'",\n  "version": "0.0.0"\n}\n' >"$run/cell.json"
    done
    [ ! -e diverged ] || exit 3 ;;
  train)
    echo "$@" >>trained
    while [ "$1" != --run ]; do shift; done
    mkdir -p "$2"
    touch "$2/config.toml" "$2/last.safetensors"
    case $2 in
      */from-softmax/seed-3)
        echo 'heed: training diverged at step 3' >&2
        exit 3 ;;
    esac
    echo 'test,1,1,1,0.5,,' >"$2/metrics.csv" ;;
  eval)
    echo "$@" >>evaluated
    [ -z "${UNREADABLE-}" ] || exit 2
    seed=$(echo "$2" | sed 's/.*-//')
    case "$2 $*" in
      *density/simple/seed-2*) echo "bits per dimension nan" ;;
      *text/* | *density/*) echo "bits per character 2.0$seed" ;;
      *transfer/scenes/*) echo "mean IoU       51.$seed %" ;;
      *) echo "top-1 accuracy 60.$seed %" ;;
    esac ;;
  residual)
    last=1e-4
    case $2 in *-1) last=inf ;; *-2) last=-nan ;; esac
    printf 'init,dtype,block,head,iteration,relative_worst\ndamped,f32,1,1,20,0.00%s\ndamped,f32,1,2,20,%s\n' \
      "$(echo "$2" | sed 's/.*-//')" "$last" >"$2/residual.csv"
    echo done ;;
  spectrum)
    rank=40
    case $2 in *without*) rank=9 ;; esac
    { echo used,block,head,index,rank; echo true,1,1,1,$rank; echo true,2,1,1,12; echo false,1,1,1,0; } >"$2/spectrum.csv"
    echo done ;;
  compare) printf '{\n  "hash": "fedcba9876543210",\n  "version": "0.0.1"\n}\n' ;;
  cost)
    total='{"total":{"mul":9,"exp":0,"log":7,"erf":0,"other":0}}'
    echo "${COST-$total}" ;;
  scaling)
    while [ "$1" != -o ]; do shift; done
    { echo pass,tokens,bytes,memory_exponent; echo forward,784,100,0.9; echo backward,784,200,1.2; } >"$2" ;;
  listops)
    mkdir -p "$3"
    echo x >"$3/basic_train.tsv" ;;
  *) exec PROGRAM "$@" ;;
esac
)sh";

/// A copy of experiments/ that uses the stand-in for heed.
struct Claims {
  TemporaryDirectory directory;

  Claims() {
    fs::copy("experiments", directory / "experiments", fs::copy_options::recursive);
    fs::create_directory_symlink(fs::absolute("models"), directory / "models");
    fs::create_directory(directory / "build");
    std::string program = stand_in;
    const std::string placeholder = "PROGRAM", real = heed_program();
    for (std::size_t at = 0; (at = program.find(placeholder, at)) != std::string::npos; at += real.size())
      program.replace(at, placeholder.size(), real);
    write_file(directory / "build/heed", program);
    fs::permissions(directory / "build/heed", fs::perms::owner_all);
  }

  CommandResult run(const std::string& line) const { return run_command(line, directory / ""); }

  std::string table() const { return read_file(directory / "out/claims.csv"); }

  /// Returns the hash in the cell.json of a run in the directory `out`.
  std::string hash_of(const std::string& run) const {
    return Json::parse(read_file(directory / "out" / run / "cell.json")).at("hash").text();
  }

  /// Returns the number of occurrences of each line in a log of the stand-in.
  std::map<std::string, int> lines(const std::string& file) const {
    std::map<std::string, int> count;
    for (const std::string& line : lines_of(read_file(directory / file))) ++count[line];
    return count;
  }
};

/// Returns the scripts of single claims: all except `run` and `page`, which run and show all claims.
std::set<std::string> scripts() {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator("experiments/claims"))
    if (entry.is_regular_file() && !entry.path().has_extension()) names.insert(entry.path().filename());
  names.erase("run");
  names.erase("page");
  return names;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(claims, Claims)

BOOST_AUTO_TEST_CASE(every_claim_is_run_and_judged) {
  const CommandResult all = run("experiments/claims/run --out out");
  BOOST_TEST(all.status == 0, all.errors);
  BOOST_TEST(all.errors == "");
  std::set<std::string> judged;
  for (const std::string& line : lines_of(all.output)) {
    const std::size_t colon = line.find(": ");
    judged.insert(line.substr(0, colon));
    const std::string verdict = line.substr(colon + 2);
    BOOST_TEST((verdict == "holds" || verdict == "does not hold" || verdict == "undecided"), line);
  }
  BOOST_TEST((judged == scripts()));
  check_contains(all.output,
                 {"sima-no-exponentials: holds\n", "sima-accuracy: holds\n", "sima-norm: undecided\n",
                  "soft-memory: does not hold\n", "adder-identity: does not hold\n", "soft-newton: does not hold\n"});
  check_contains(table(),
                 {"\nsima-norm,sima-none,1,0.1,diverged,10000," + hash_of("cifar10/sima-none/seed-1") + ",0.0.0\n",
                  "\nsima-norm,sima,2,0.602,finished,10000," + hash_of("cifar10/sima/seed-2") + ",0.0.0\n",
                  "\nsima-dense,sima-random,3,0.513,finished,,fedcba9876543210,0.0.1\n",
                  "\naft-window,aft:window=4:validation,1,2.01,", "\nadder-identity,rank-gain,1,0,",
                  "\nsima-no-exponentials,exponentials,1,0,", "\nsoft-memory,exponent,0,1.2,finished,,,"});
  // NaN and infinite values are replaced, and their runs are recorded as diverged.
  check_contains(table(), {"\nsoft-newton,residual,1,1,diverged,,", "\nsoft-newton,residual,2,1,diverged,,",
                           "\nsoft-newton,residual,3,0.003,finished,,", "\naft-local,simple,2,4,diverged,,",
                           "\naft-local,simple,3,2.03,finished,,"});
  // Two more runs diverged: one of experiments/tools/transfer, with its evaluations, and one whose initial model had
  // diverged.
  check_contains(table(), {"\naft-fine-tuning,from-softmax,3,0.1,diverged,10000,fedcba9876543210,0.0.1\n",
                           "\naft-fine-tuning,from-softmax:40,3,0.1,diverged,10000,",
                           "\naft-fine-tuning,from-softmax,2,0.602,finished,10000,",
                           "\nsima-dense,sima,2,0,diverged,,,", "\nsima-dense,sima,3,0.513,finished,,"});
  check_contains(read_file(directory / "out/aft-fine-tuning.log"),
                 {"heed: training diverged at step 3\n", "from-softmax 3 at 32: diverged\n"});
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory / "out"))
    BOOST_TEST(entry.path().extension() != ".part", entry.path().string());

  // The last epoch's weights are evaluated once; existing results are reused, except by experiments/tools/transfer.
  const auto measured = [&] {
    std::vector<std::string> lines = lines_of(read_file(directory / "evaluated"));
    std::erase_if(lines, [](const std::string& line) { return line.find("/last.safetensors") == std::string::npos; });
    return lines;
  };
  const auto sorted_table = [&] {
    std::vector<std::string> lines = lines_of(table());
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const std::vector<std::string> rows = sorted_table(), evaluated = measured();
  BOOST_TEST((std::set(evaluated.begin(), evaluated.end()).size() == evaluated.size()));
  BOOST_TEST(evaluated.size() > 200);
  const CommandResult again = run("experiments/claims/run --out out");
  BOOST_TEST(again.output == all.output, again.errors);
  BOOST_TEST((measured() == evaluated));
  BOOST_TEST((sorted_table() == rows));
  for (const auto& [line, count] : lines("trained")) BOOST_TEST(count == 1, line);

  const CommandResult judge = run("experiments/claims/sima-heads --judge out/claims.csv --json");
  BOOST_TEST(judge.status == 0, judge.errors);
  check_contains(judge.output, {"\"part\": \"softmax leads softmax-one-head more than sima leads sima-one-head\""});
  const CommandResult page = run("experiments/claims/page out/claims.csv -o claims.md");
  if (with_matplotlib(0)) {
    BOOST_TEST(page.status == 0, page.errors);
    const std::string text = read_file(directory / "claims.md");
    BOOST_TEST(text.find("ot run yet") == std::string::npos);
    check_contains(text, {"tests 25 of them in small models; **all have results**.", "All 25 rows have results.",
                          "misses the true difference one time in twenty", "(diverged: seed 1, 2, 3)",
                          "pictures/claims-alpha.png", "| undecided |", "1.2, not tested"});
    // The summary has all compared arms, and the untested values.
    check_contains(text, {"; listops-linformer 60.20 %; listops-performer 60.20 % |",
                          "| sima-relu 60.30 %; sima 60.30 %; exponentials 0 |", "; residual 1 at worst |",
                          "; rank-gain 0 at worst |", "| exponent 1.2 |"});
  }
}

BOOST_AUTO_TEST_CASE(the_page_says_how_many_have_run, *boost::unit_test::precondition(with_matplotlib)) {
  write_file(directory / "one.csv",
             "claim,arm,seed,value,state,images,hash,version\nsoft-memory,forward,784,1,finished,,,0\n"
             "soft-memory,backward,784,1,finished,,,0\nsoft-memory,exponent,0,0.9,finished,,,0\n");
  const CommandResult page = run("experiments/claims/page one.csv -o claims.md");
  BOOST_TEST(page.status == 0, page.errors);
  const std::string text = read_file(directory / "claims.md");
  check_contains(text, {"tests 25 of them in small models; **1 has a result so far**", "1 of 25 rows has a result."});
}

BOOST_AUTO_TEST_CASE(the_adaptive_rate_is_held_against_the_better_fixed_one) {
  std::string rows = "claim,arm,seed,value\n";
  for (const int seed : {1, 2, 3})  // the worse arm varies too much between seeds for a decision
    rows += fmt::format(
        "adder-rate,adder-block,{0},0.90{0}\nadder-rate,adder-block-fixed:lr=0.03,{0},0.85{0}\n"
        "adder-rate,adder-block-fixed:lr=0.003,{0},{1}\n",
        seed, seed == 1 ? 0.1 : 0.9);
  write_file(directory / "rates.csv", rows);
  const CommandResult judged = run("experiments/claims/adder-rate --judge rates.csv");
  BOOST_TEST(judged.status == 0, judged.errors);
  BOOST_TEST(judged.output.ends_with("\nholds\n"), judged.output);
}

BOOST_AUTO_TEST_CASE(seeds_and_jobs_are_passed_on) {
  const CommandResult more = run("experiments/claims/run --out out --jobs 1 --seeds 4 sima-dense");
  BOOST_TEST(more.status == 0, more.errors);
  check_contains(table(), {"\nsima-dense,softmax,4,0.514,", "\nsima-dense,softmax-random,4,0.514,"});
  const std::map<std::string, int> swept = lines("swept");
  BOOST_TEST(swept.size() == 2u);
  for (const auto& [line, count] : swept) BOOST_TEST(line.ends_with(" --jobs 1 --seeds 4"), line);
  const CommandResult alone = run("experiments/tools/transfer scenes --seeds 2 --jobs 3 there/transfer");
  BOOST_TEST(alone.status == 0, alone.errors);
  check_contains(alone.output, {"softmax 2: mean IoU", "sima 2: diverged\n", "sima 2, from random: mean IoU"});
  BOOST_TEST(!fs::exists(directory / "there/transfer/scenes/softmax/seed-3"));
}

BOOST_AUTO_TEST_CASE(a_script_that_fails_leaves_no_rows) {
  const CommandResult failed = run("COST='{}' experiments/claims/sima-no-exponentials --out out");
  BOOST_TEST(failed.status == 2);
  check_contains(failed.errors, {"sima-no-exponentials: no value of exponentials for seed 1"});
  BOOST_TEST(fs::exists(directory / "out/cifar10"));
  BOOST_TEST(!fs::exists(directory / "out/claims.csv"));
  BOOST_TEST(!fs::exists(directory / "out/sima-no-exponentials.rows.part"));
}

BOOST_AUTO_TEST_CASE(an_evaluation_that_fails_ends_its_script) {
  const CommandResult failed = run("UNREADABLE=1 experiments/tools/transfer shots --seeds 1 there");
  BOOST_TEST(failed.status == 2);
  BOOST_TEST(failed.output == "");
}

BOOST_AUTO_TEST_CASE(a_sweep_that_fails_says_its_status) {
  write_file(directory / "experiments/claims/sima-heads.toml", "seeds = 3\nnonsense = 1\n");
  const CommandResult failed = run("experiments/claims/sima-heads --out out");
  BOOST_TEST(failed.status == 2);
  BOOST_TEST(lines_of(failed.errors).size() == 1u, failed.errors);
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_said) {
  for (const char* line : {"claims/run sima", "claims/run --jobs", "claims/sima-heads --seeds 2",
                           "claims/sima-heads --seeds x", "claims/sima-heads --out", "claims/run page",
                           "tools/transfer scenes --seeds", "tools/transfer scenes --seeds x",
                           "tools/transfer scenes --job 2", "tools/transfer scenes a b", "tools/transfer"}) {
    const CommandResult result = run(std::string("experiments/") + line);
    BOOST_TEST(result.status == 2, line);
    BOOST_TEST(result.output == "", line);
    BOOST_TEST(result.errors != "", line);
  }
  for (const char* script : {"claims/sima-heads", "claims/run", "tools/transfer"}) {
    const CommandResult help = run(fmt::format("experiments/{} --help", script));
    BOOST_TEST(help.status == 0);
    check_contains(help.output, {fmt::format("usage: experiments/{}", script), "--jobs N", "--seeds N"});
  }
  const CommandResult empty = run("experiments/claims/sima-heads --judge nowhere.csv");
  BOOST_TEST(empty.status == 2);
  check_contains(empty.errors, {"nowhere.csv: cannot open"});
}

BOOST_AUTO_TEST_SUITE_END()
