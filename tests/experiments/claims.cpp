// The scripts of experiments/claims from end to end, with a program in heed's place that trains nothing: sweeps, probes
// and tables fit together for every claim, and heed verdict judges what comes of them.
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

/// Runs are finished as soon as they are asked for; those without a norm have diverged. What looks at files alone is
/// done by the program itself, $1 of the sed below.
constexpr const char* stand_in = R"sh(#!/bin/sh
set -eu
case $1 in
  sweep)
    PROGRAM sweep "$2" --dry-run --out new | sed -n 's|.* new/\([^ ]*\)$|\1|p' | while read -r cell; do
      run=$4/$cell
      mkdir -p "$run"
      diverged=
      case $run in */sima-none/*) diverged='  "diverged": "loss is nan",\n' ;; esac
      printf "{\n$diverged"'  "hash": "0123456789abcdef",\n  "version": "0.0.0"\n}\n' >"$run/cell.json"
    done ;;
  train)
    while [ "$1" != --run ]; do shift; done
    mkdir -p "$2"
    echo 'test,1,1,1,0.5,,' >"$2/metrics.csv" ;;
  eval)
    echo "$@" >>evaluated
    seed=$(echo "$2" | sed 's/.*-//')
    case "$2 $*" in
      *text/* | *density/*) echo "bits per character 2.0$seed" ;;
      *transfer/scenes/*) echo "mean IoU       51.$seed %" ;;
      *) echo "top-1 accuracy 60.$seed %" ;;
    esac ;;
  residual)
    printf 'init,dtype,block,head,iteration,relative_worst\ndamped,f32,1,1,20,0.0%s\ndamped,f32,1,2,20,1e-4\n' \
      "$(echo "$2" | sed 's/.*-//')" >"$2/residual.csv"
    echo done ;;
  spectrum)
    rank=40
    case $2 in *without*) rank=9 ;; esac
    { echo used,block,head,index,rank; echo true,1,1,1,$rank; echo true,2,1,1,12; echo false,1,1,1,0; } >"$2/spectrum.csv"
    echo done ;;
  compare) printf '{\n  "hash": "fedcba9876543210",\n  "version": "0.0.1"\n}\n' ;;
  cost) echo '{"total":{"mul":9,"exp":0,"log":7,"erf":0,"other":0}}' ;;
  scaling)
    while [ "$1" != -o ]; do shift; done
    { echo pass,tokens,bytes,memory_exponent; echo forward,784,100,0.9; echo backward,784,200,1.2; } >"$2" ;;
  listops)
    mkdir -p "$3"
    echo x >"$3/basic_train.tsv" ;;
  *) exec PROGRAM "$@" ;;
esac
)sh";

/// experiments/ with that program beside it.
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
};

/// The scripts, which run without an ending to their names, but for what runs and shows all of them.
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
  check_contains(all.output, {"sima-no-exponentials: holds\n", "sima-accuracy: holds\n", "sima-norm: undecided\n",
                              "soft-memory: does not hold\n", "adder-identity: does not hold\n"});
  check_contains(table(), {"\nsima-norm,sima-none,1,0.1,diverged,10000,0123456789abcdef,0.0.0\n",
                           "\nsima-norm,sima,2,0.602,finished,10000,0123456789abcdef,0.0.0\n",
                           "\nsima-dense,sima-random,3,0.513,finished,,fedcba9876543210,0.0.1\n",
                           "\naft-window,aft:window=4:validation,1,2.01,", "\nsoft-newton,residual,3,0.03,",
                           "\nadder-identity,rank-gain,1,0,", "\nsima-no-exponentials,exponentials,1,0,",
                           "\nsoft-memory,exponent,0,1.2,finished,,,"});

  // The last epoch's weights are evaluated, once: what is there is not asked again, but by experiments/transfer.
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

  const CommandResult judge = run("experiments/claims/sima-heads --judge out/claims.csv --json");
  BOOST_TEST(judge.status == 0, judge.errors);
  check_contains(judge.output, {"\"part\": \"softmax over softmax-one-head, more than sima over sima-one-head\""});
  const CommandResult page = run("experiments/claims/page out/claims.csv -o claims.md");
  if (with_matplotlib(0)) {
    BOOST_TEST(page.status == 0, page.errors);
    const std::string text = read_file(directory / "claims.md");
    BOOST_TEST(text.find("ot run yet") == std::string::npos);
    check_contains(text, {"25 of 25 claims have run", "diverged, counted as chance: seed 1, 2, 3",
                          "pictures/claims-alpha.png", "| undecided |", "1.2, not tested"});
  }
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_said) {
  for (const char* line : {"run sima", "run --jobs", "sima-heads --seeds 3", "sima-heads --out", "run page"}) {
    const CommandResult result = run(std::string("experiments/claims/") + line);
    BOOST_TEST(result.status == 2, line);
    BOOST_TEST(result.output == "", line);
    BOOST_TEST(result.errors != "", line);
  }
  const CommandResult help = run("experiments/claims/sima-heads --help");
  BOOST_TEST(help.status == 0);
  check_contains(help.output, {"usage: experiments/claims/sima-heads"});
  const CommandResult empty = run("experiments/claims/sima-heads --judge nowhere.csv");
  BOOST_TEST(empty.status == 2);
  check_contains(empty.errors, {"nowhere.csv: cannot open"});
}

BOOST_AUTO_TEST_SUITE_END()
