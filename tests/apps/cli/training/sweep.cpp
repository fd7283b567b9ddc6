// heed sweep: cells equal separate runs, however often interrupted, and the table is computed from them.
#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

using namespace heed;
using namespace heed::test;

namespace {

/// Two arms of two seeds on tiny images.
struct Sweeping : Workshop {
  std::string base = write_experiment(*this, experiment());
  std::string file = *this / "tiny.toml", out = *this / "cells";

  void write(const std::string& more) const {
    write_file(file, fmt::format("base = \"{}\"\nseeds = 2\n{}", base, more));
  }

  void write_arms(Index epochs) const {
    write(fmt::format("[train]\nepochs = {}\n[arms.softmax]\n[arms.sima]\nattention.mechanism = \"sima\"\n", epochs));
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"sweep", file, "--out", out, "--threads", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Finished sweep(const std::vector<std::string>& more = {}) const { return heed_with(arguments(more)); }

  std::string cell(const std::string& arm, Index seed) const { return fmt::format("{}/{}/seed-{}", out, arm, seed); }

  /// Trains the cells one by one without heed sweep, and compares the runs.
  void check_cells(Index epochs) const {
    for (const std::string arm : {"softmax", "sima"})
      for (const Index seed : {1, 2}) {
        Experiment x = load_experiment(base);
        x.train.epochs = epochs;
        x.attention.mechanism = {arm};
        x.train.seed = seed;
        const std::string alone = *this / fmt::format("{}-{}", arm, seed);
        run(x, alone);
        check_same_run(alone, cell(arm, seed));
      }
  }

  /// Returns the number in a column of the last row of this kind in a run's metrics.csv.
  static double in_metrics(const std::string& directory, const std::string& kind, std::size_t column) {
    std::string found;
    for (const std::string& row : metrics_of(directory))
      if (row.starts_with(kind + ",")) found = row;
    std::istringstream fields(found);
    for (std::size_t i = 0; i <= column; ++i) std::getline(fields, found, ',');
    return std::stod(found);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_sweep, Sweeping)

BOOST_AUTO_TEST_CASE(cells_are_runs_and_the_table_is_their_arithmetic) {
  write_arms(3);
  const Finished done = sweep({"--json", "--jobs", "2"});
  BOOST_TEST(done.status == 0, done.err);
  check_contains(done.err, {"4 cells, 0 done", "[4/4] "});
  check_cells(3);
  const Json table = Json::parse(done.out);
  BOOST_REQUIRE(table.at("arms").items().size() == 2);
  for (const Json& arm : table.at("arms").items()) {
    const std::string name = arm.at("arm").text();
    for (const auto& [figure, kind, column] :
         {std::tuple("test_accuracy", "test", 4), std::tuple("test_loss", "test", 3),
          std::tuple("train_loss", "train", 3)}) {
      const double a = in_metrics(cell(name, 1), kind, column), b = in_metrics(cell(name, 2), kind, column);
      BOOST_TEST(arm.at(figure).at("count").integer() == 2);
      BOOST_TEST(std::abs(arm.at(figure).at("mean").number() - (a + b) / 2) < 1e-12);
      BOOST_TEST(std::abs(arm.at(figure).at("sd").number() - std::abs(a - b) / std::sqrt(2)) < 1e-12);
    }
    BOOST_TEST(arm.at("epochs").at("mean").number() == 3);
    BOOST_TEST(arm.at("runs").items().at(1).at("version").text() == std::string(HEED_VERSION));
  }
  const std::string hash = table.at("arms").items()[0].at("runs").items()[0].at("hash").text();
  check_contains(read_file(cell("softmax", 1) + "/cell.json"), {hash, "\"arm\": \"softmax\"", "\"seed\": 1"});

  const std::string before = read_file(cell("sima", 2) + "/metrics.csv");
  const Finished again = sweep();
  BOOST_TEST(again.status == 0);
  check_contains(again.err, {"4 cells, 4 done"});
  BOOST_TEST(read_file(cell("sima", 2) + "/metrics.csv") == before);
  check_contains(again.out, {"arm ", "softmax ", " ± ", " % "});
  BOOST_TEST(output_of(arguments({"--table"})) == again.out);
  check_contains(output_of(arguments({"--dry-run", "--seeds", "5"})), {"10 cells, 6 to train"});
  check_contains(output_of(arguments({"--table", "--csv"})), {"arm,runs,finished,test_accuracy,", "\nsima,2,2,0."});
  const std::string runs = output_of(arguments({"--table", "--csv", "--runs"}));
  check_contains(runs, {"arm,seed,state,hash,version,test_accuracy,",
                        fmt::format("\nsoftmax,1,finished,{},{},", hash, HEED_VERSION)});
  BOOST_TEST(lines_of(runs).size() == 5u);
  check_refusal(arguments({"--table", "--runs"}), {"--runs: requires --csv"});
  check_refusal(arguments({"--table", "--csv", "--markdown"}), {"--csv excludes --markdown"});
  check_refusal(arguments({"--table", "--json", "--markdown"}), {"--json excludes --markdown"});
  check_refusal(arguments({"--table", "--redo"}), {"--table excludes --redo"});
  for (const char* const option : {"--table", "--csv", "--json", "--markdown"})
    check_refusal(arguments({"--dry-run", option}), {"--dry-run lists the cells as text; expected no", option});
  check_contains(output_of(arguments({"--table", "--markdown"})),
                 {"| arm | seeds | test accuracy |", "\n| sima | 2 | "});
}

// Cells trained under the key's former name match those of the current one, with a one-line notice.
BOOST_AUTO_TEST_CASE(a_former_key_makes_no_other_cells) {
  const std::string line = "heed: train.piece was renamed to train.microbatch in 0.3.0\n";
  const auto write_key = [&](const char* key) {
    write(
        fmt::format("[train]\nepochs = 1\n{} = 2\n[arms.softmax]\n[arms.sima]\nattention.mechanism = \"sima\"\n", key));
  };
  write_key("piece");
  const Finished former = sweep();
  BOOST_TEST(former.status == 0, former.err);
  BOOST_TEST(former.err.starts_with(line), former.err);
  BOOST_TEST(former.err.find(line, 1) == std::string::npos, former.err);
  check_contains(former.err, {"4 cells, 0 done"});
  check_contains(read_file(cell("sima", 1) + "/config.toml"), {"\nmicrobatch = 2 "});
  write_key("microbatch");
  const Finished present = sweep();
  BOOST_TEST(present.status == 0, present.err);
  check_contains(present.err, {"4 cells, 4 done"});
  BOOST_TEST(present.out == former.out);

  // A run whose recorded configuration has the former key is evaluated and resumed.
  const std::string run = cell("softmax", 2), config = read_file(run + "/config.toml");
  std::string recorded = config;
  recorded.replace(recorded.find("microbatch = 2"), 14, "piece = 2     ");
  write_file(run + "/config.toml", recorded);
  const Finished judged = heed_with({"eval", run});
  BOOST_TEST(judged.status == 0, judged.err);
  BOOST_TEST(judged.err == line);
  const Finished resumed = heed_with({"train", "--resume", "--run", run});
  BOOST_TEST(resumed.status == 0, resumed.err);
  BOOST_TEST(resumed.err.find(line) != std::string::npos, resumed.err);
  BOOST_TEST(resumed.err.find(line) == resumed.err.rfind(line), resumed.err);
  BOOST_TEST(read_file(run + "/config.toml") == config);
}

BOOST_AUTO_TEST_CASE(an_interrupted_sweep_goes_on_and_leaves_no_trace) {
  constexpr Index epochs = 150;
  write_arms(epochs);
  for (const int signal : {SIGINT, SIGTERM}) {
    Program program(arguments({"--jobs", "2"}));
    const std::string watched = cell(signal == SIGINT ? "softmax" : "sima", 1) + "/metrics.csv";
    for (int tries = 0; tries < 3000; ++tries) {
      if (std::filesystem::exists(watched) && read_file(watched).find("\ntrain,") != std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    program.signal(signal);
    const Finished finished = program.wait();
    BOOST_TEST(finished.status == 130, finished.err);
    check_contains(finished.err, {"interrupted and saved"});
  }
  const Finished done = sweep({"--jobs", "2"});
  BOOST_TEST(done.status == 0, done.err);
  check_cells(epochs);
}

BOOST_AUTO_TEST_CASE(a_killed_sweep_goes_on) {
  write_arms(100);
  Program program(arguments());
  const std::string watched = cell("softmax", 1) + "/metrics.csv";
  while (!std::filesystem::exists(watched)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  program.signal(SIGKILL);
  program.wait();
  // The killed sweep's child process gets a signal and saves its run; the next sweep waits for it.
  const Finished done = sweep();
  BOOST_TEST(done.status == 0, done.err);
  check_cells(100);
}

// The log also has warnings and the output of earlier attempts, none of which explains why a signal ended the run.
BOOST_AUTO_TEST_CASE(a_cell_killed_by_a_signal_has_no_error_of_its_own) {
  write("[train]\nepochs = 100000\n[arms.a]\n");
  const std::string log = cell("a", 1) + "/train.log";
  std::filesystem::create_directories(cell("a", 1));
  write_file(log, "heed: an error of an earlier attempt\n");
  Program program(arguments({"--seeds", "1"}));
  while (read_file(log).find("run directory") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ofstream(log, std::ios::app) << "heed: warning: of this attempt\n";
  const pid_t child = program.child();
  BOOST_REQUIRE(child > 0);  // kill() would signal this process's own group
  ::kill(child, SIGKILL);
  const Finished finished = program.wait();
  BOOST_TEST(finished.status == 1);
  check_contains(finished.err, {"a, seed 1: failed: ended with status 137; see " + log});
}

// The log already has the maximum file size and cannot grow, as on a full disk, so the second attempt writes nothing.
BOOST_AUTO_TEST_CASE(a_cell_without_output_has_no_error_of_an_earlier_attempt) {
  write(fmt::format("[arms.lost]\ndata.path = \"{}\"\n", *this / "nowhere"));
  BOOST_TEST(sweep({"--seeds", "1"}).status == 1);
  const std::string log = cell("lost", 1) + "/train.log";
  write_file(log, read_file(log) + std::string(1 << 16, '\n'));
  const CommandResult again =
      run_command("ulimit -f 40 && " + heed_program() + " sweep --seeds 1 --out " + out + " " + file);
  BOOST_TEST(again.status == 1);
  check_contains(again.errors, {"lost, seed 1: failed: ended with status 2; see " + log});
}

// Opening a named pipe without a reader would block the sweep, and Ctrl-C with it.
BOOST_AUTO_TEST_CASE(logs_are_files_of_the_sweeps_own) {
  write_arms(1);
  const std::string place = cell("softmax", 1), log = place + "/train.log", dear = *this / "dear";
  std::filesystem::create_directories(place);
  BOOST_REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
  const CommandResult piped = run_command("timeout -s KILL 20 " + heed_program() + " sweep " + file + " --out " + out);
  BOOST_TEST(piped.status == 2);
  check_contains(piped.errors, {log + ": cannot open"});
  std::filesystem::remove(log);
  write_file(dear, "dear");
  std::filesystem::create_symlink(dear, log);
  BOOST_TEST(sweep().status == 2);
  BOOST_TEST(read_file(dear) == "dear");
}

BOOST_AUTO_TEST_CASE(temporary_files_of_a_killed_sweep_are_removed) {
  write_arms(1);
  const std::string place = cell("sima", 2);
  std::filesystem::create_directories(place);
  for (const std::string name : {"/cell.toml.123.part", "/cell.json.123.part"}) write_file(place + name, "half");
  BOOST_TEST(sweep().status == 0);
  for (const auto& entry : std::filesystem::directory_iterator(place))
    BOOST_TEST(entry.path().extension() != ".part", entry.path().string());
}

BOOST_AUTO_TEST_CASE(a_cell_that_is_not_as_it_was_written_is_named) {
  write_arms(1);
  const std::string place = cell("softmax", 1), file = place + "/cell.json";
  std::filesystem::create_directories(place);
  for (const std::string text : {"", "null", "{}", "{\"hash\": 1, \"version\": \"x\"}"}) {
    write_file(file, text);
    check_refusal(arguments({"--dry-run"}), {file + ": "});
  }
}

BOOST_AUTO_TEST_CASE(a_cell_that_has_changed_is_refused_or_done_again) {
  write_arms(1);
  BOOST_TEST(sweep().status == 0);
  write_arms(2);
  const std::string before = read_file(cell("softmax", 1) + "/metrics.csv");
  check_refusal(arguments(), {cell("softmax", 1), "was started with train.epochs = 1, not 2", "--redo"});
  BOOST_TEST(read_file(cell("softmax", 1) + "/metrics.csv") == before);
  check_contains(output_of(arguments({"--dry-run"})), {"changed", "4 cells, 4 to train"});
  check_contains(output_of(arguments({"--table"})), {"0 of 2", "seed 1: changed: was started with train.epochs = 1"});
  BOOST_TEST(sweep({"--redo"}).status == 0);
  check_cells(2);
  // Settings without effect on the result are not changes.
  check_contains(sweep({"--set", "train.log_steps=true", "--set", "train.max_steps=1000"}).err, {"4 cells, 4 done"});
  std::filesystem::remove(cell("sima", 1) + "/cell.json");
  check_refusal(arguments({"--redo"}), {cell("sima", 1), "contains a run that this sweep did not start"});
}

// A setting that only the present or only the earlier configuration has counts as a change.
BOOST_AUTO_TEST_CASE(a_setting_that_is_added_or_removed_is_a_change) {
  for (const bool added : {true, false}) {
    const auto write_arm = [&](bool with_norm) {
      write(std::string("[train]\nepochs = 1\n[arms.sima]\nattention.mechanism = \"sima\"\n") +
            (with_norm ? "attention.sima.norm = \"l2\"\n" : ""));
    };
    write_arm(!added);
    BOOST_TEST(sweep({"--seeds", "1", "--redo"}).status == 0);
    const std::string before = read_file(cell("sima", 1) + "/metrics.csv");
    write_arm(added);
    check_refusal(arguments({"--seeds", "1"}),
                  {cell("sima", 1), "--redo",
                   added ? "was started with attention.sima.norm = (nothing), not \"l2\""
                         : "was started with attention.sima.norm = \"l2\", not (nothing)"});
    BOOST_TEST(read_file(cell("sima", 1) + "/metrics.csv") == before);
  }
}

// If the data have changed since the first cells of a sweep were trained, the sweep is refused; with --redo, it repeats
// those cells.
BOOST_AUTO_TEST_CASE(cells_of_other_data_are_refused_or_repeated) {
  write_arms(1);
  BOOST_TEST(sweep({"--seeds", "1"}).status == 0);
  const std::string table = output_of(arguments({"--table", "--seeds", "1"}));
  write_patterns(data(), 133, 30, 8);
  check_refusal(arguments(), {cell("softmax", 1) + ": was started with different data; the data now at " + data() +
                              " differ: 2 edited (train-images-idx3-ubyte, train-labels-idx1-ubyte); to remove and "
                              "repeat such runs, add --redo"});
  BOOST_TEST(!std::filesystem::exists(cell("softmax", 2)));
  check_contains(output_of(arguments({"--dry-run"})), {"changed", "4 cells, 4 to train"});
  // With one seed there is nothing to train, and the cells have the same data, so the sweep is accepted.
  BOOST_TEST(output_of(arguments({"--table", "--seeds", "1"})) == table);
  check_contains(sweep({"--seeds", "1"}).err, {"2 cells, 2 done"});
  check_contains(sweep({"--redo"}).err, {"4 cells, 0 done", "[4/4] "});

  // Moved data count as the same. Data that cannot be opened are an error only when a cell is trained.
  const std::string away = *this / "away";
  std::filesystem::rename(data(), away);
  check_contains(output_of(arguments({"--dry-run", "--seeds", "3"})), {"6 cells, 2 to train"});
  check_contains(sweep({"--seeds", "3", "--set", "data.path=" + away}).err, {"6 cells, 4 done", "[2/2] "});

  // One cell was trained on different data.
  const RunPaths paths(cell("softmax", 2));
  DataRecord record = *read_data_record(paths);
  record.recorded.files["t10k-labels-idx1-ubyte"] = "0-1";
  write_file(paths.data(), data_json(record));
  const std::string line = "was started with different data; the data of " + cell("softmax", 1) +
                           " differ: 1 edited (t10k-labels-idx1-ubyte)";
  check_contains(output_of(arguments({"--table"})), {"1 of 2", "softmax, seed 2: changed: " + line});
  check_refusal(arguments(), {cell("softmax", 2) + ": " + line});
  check_contains(sweep({"--redo", "--set", "data.path=" + away}).err, {"4 cells, 3 done", "[1/1] "});
  check_contains(output_of({"compare", out}), {"attention.mechanism"});
}

// Two data sets are two arms, which can be compared.
BOOST_AUTO_TEST_CASE(arms_may_differ_in_their_data) {
  const std::string other = *this / "other";
  write_patterns(other, 140, 30, 8);
  write(fmt::format("[train]\nepochs = 1\n[grid]\ndata.path = [\"{}\", \"{}\"]\n", data(), other));
  BOOST_TEST(sweep().status == 0);
  const Json json = Json::parse(output_of({"compare", out, "--json"}));
  BOOST_REQUIRE(json.at("arms").items().size() == 2u);
  for (const Json& arm : json.at("arms").items()) BOOST_TEST(arm.at("finished").integer() == 2);
  const std::vector<std::string> sets{data(), other + ": 2 edited (train-images-idx3-ubyte, train-labels-idx1-ubyte)"};
  BOOST_TEST(json.at("settings").dump() == Json::object({{"data", sets}}).dump());
}

#ifndef HEED_NO_THREADS
// Cells that run at the same time share the threads. If these cannot be divided evenly, the first cell gets the
// remainder; each gets at least one.
BOOST_AUTO_TEST_CASE(threads_are_divided_among_the_cells) {
  write("[train]\nepochs = 1\n[arms.a]\n");
  const EnvironmentVariable default_count("OMP_NUM_THREADS", "5");
  for (const auto& [jobs, threads, first, second] :
       {std::tuple("1", "3", 3, 3), {"2", "5", 3, 2}, {"4", "4", 2, 2}, {"2", "1", 1, 1}, {"2", "", 3, 2}})
    BOOST_TEST_CONTEXT(jobs << " jobs, " << threads << " threads") {
      std::filesystem::remove_all(out);
      std::vector<std::string> words{"sweep", file, "--out", out, "--jobs", jobs};
      if (*threads) words.insert(words.end(), {"--threads", threads});
      const Finished done = heed_with(words);
      BOOST_TEST(done.status == 0, done.err);
      const auto used = [&](Index seed) {
        return Json::parse(read_file(cell("a", seed) + "/environment.json")).at("threads").integer();
      };
      BOOST_TEST(used(1) == first);
      BOOST_TEST(used(2) == second);
    }
}
#endif

// A directory's name has at most 120 characters, so two arms must not agree in the first 120 characters of their names.
BOOST_AUTO_TEST_CASE(directories_of_arms_with_long_names) {
  const std::string most(120, 'a');
  write(fmt::format("[arms.{}]\n", most + "bcd"));
  check_contains(output_of(arguments({"--dry-run"})), {fmt::format(" {}/{}/seed-1\n", out, most)});
  write(fmt::format("[arms.{0}b]\n[arms.{0}c]\noptim.lr = 0.1\n", most));
  check_refusal(arguments({"--dry-run"}), {cell(most, 1) + ": the cells", "have the same directory; rename an arm"});
}

BOOST_AUTO_TEST_CASE(a_cell_whose_run_went_on_otherwise_does_not_count) {
  write_arms(1);
  BOOST_TEST(sweep().status == 0);
  output_of({"train", "--run", cell("sima", 2), "--resume", "--set", "train.epochs=2"});
  check_refusal(arguments(), {cell("sima", 2), "was continued with train.epochs = 2, not 1", "--redo"});
  check_contains(output_of(arguments({"--table"})), {"1 of 2", "seed 2: changed: was continued"});
  write_file(cell("sima", 1) + "/cell.json", "{}");
  check_refusal(arguments(), {cell("sima", 1) + "/cell.json: ", "'hash'", "remove", "to train the cell again"});
}

BOOST_AUTO_TEST_CASE(what_diverges_or_fails_does_not_stop_the_others) {
  write("[arms.wild]\noptim.lr = 1e38\noptim.weight_decay = 1e38\noptim.warmup_epochs = 0\n[arms.tame]\n");
  const Finished diverged = sweep({"--json"});
  BOOST_TEST(diverged.status == 3);
  const Json table = Json::parse(diverged.out);
  const Json& wild = table.at("arms").items().at(0);
  BOOST_TEST(wild.at("finished").integer() == 0);
  BOOST_TEST(wild.at("test_accuracy").dump() == "{\"count\":0,\"mean\":null,\"sd\":null}");
  BOOST_TEST(wild.at("runs").items().at(0).at("state").text() == "diverged");
  BOOST_TEST(table.at("arms").items().at(1).at("finished").integer() == 2);
  const Finished again = sweep();  // not repeated: the result would be the same
  BOOST_TEST(again.status == 3);
  check_contains(again.err, {"4 cells, 4 done"});
  check_contains(again.out, {"wild, seed 1: diverged: training diverged at step", "0 of 2"});
  check_contains(output_of({"compare", out}), {"wild, seed 1: diverged: training diverged at step"});

  // --redo repeats only the diverged runs.
  check_contains(output_of(arguments({"--dry-run"})), {"4 cells, 0 to train"});
  check_contains(output_of(arguments({"--dry-run", "--redo"})), {"4 cells, 2 to train"});
  const std::string tame = read_file(cell("tame", 1) + "/metrics.csv"), gone = cell("wild", 1) + "/trace";
  write_file(gone, "");
  const Finished redone = sweep({"--redo"});
  BOOST_TEST(redone.status == 3);
  check_contains(redone.err, {"4 cells, 2 done", "[2/2] "});
  BOOST_TEST((!std::filesystem::exists(gone) && read_file(cell("tame", 1) + "/metrics.csv") == tame));

  std::filesystem::remove_all(out);
  write(fmt::format("[arms.lost]\ndata.path = \"{}\"\n[arms.here]\n", *this / "nowhere"));
  const Finished failed = sweep();
  BOOST_TEST(failed.status == 1);
  check_contains(failed.err, {"lost, seed 1: failed: ", "nowhere"});
  check_contains(failed.out, {"0 of 2", "lost, seed 2: failed: "});
  std::filesystem::remove_all(out);
  BOOST_TEST(sweep({"--set", "train.max_steps=2"}).status == 1);
  write("");
  std::filesystem::remove_all(out);
  check_contains(sweep({"--set", "train.max_steps=2"}).err, {"stopped at train.max_steps"});
}

// A failed cell decides the exit status, wherever it is among diverged and finished cells.
BOOST_AUTO_TEST_CASE(failed_cells_outweigh_diverged_ones) {
  const std::string wild = "[arms.wild]\noptim.lr = 1e38\noptim.weight_decay = 1e38\noptim.warmup_epochs = 0\n",
                    lost = fmt::format("[arms.lost]\ndata.path = \"{}\"\n", *this / "nowhere"), tame = "[arms.tame]\n";
  for (const std::string& arms : {wild + tame + lost, lost + wild + tame}) {
    std::filesystem::remove_all(out);
    write("[train]\nepochs = 1\n" + arms);
    const Finished finished = sweep({"--seeds", "1"});
    BOOST_TEST(finished.status == 1);
    check_contains(finished.out, {"wild, seed 1: diverged: ", "lost, seed 1: failed: "});
  }
}

BOOST_AUTO_TEST_CASE(bad_sweeps_are_refused_before_anything_is_made) {
  write("[arms.a]\nattention.mechanism = \"softmaxx\"\n");
  check_refusal(arguments(), {file, "a: ", "softmaxx"});
  write("[grid]\nattention.mechanism = [\"sima\", \"softmax\"]\nattention.sima.norm = [\"l3\"]\n");
  check_refusal(arguments(), {"l3"});
  write("[grid]\noptim.lr = []\n");
  check_refusal(arguments(), {file + ":4", "an empty list"});
  check_refusal({"sweep", *this / "none.toml"}, {"none.toml", "cannot open"});
  check_refusal(arguments({"--jobs", "0"}), {"--jobs"});
  check_refusal(arguments({"--seeds", "0"}), {"--seeds"});
  write("");
  std::filesystem::create_directories(out + "/tiny");
  output_of(arguments({"--dry-run"}));
  BOOST_TEST(std::filesystem::is_empty(out + "/tiny"));
  check_refusal(arguments({"--csv", "--json"}), {"--csv"});
}

BOOST_AUTO_TEST_SUITE_END()
