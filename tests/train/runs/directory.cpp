// The directory of a run: nothing is lost, and damaged files are detected.
#include "heed/io/json.h"
#include "heed/train/runs/run.h"
#include "src/train/runs/checkpoint.h"

#include "support/training.h"

#include <sys/stat.h>

#include <chrono>
#include <ctime>

using namespace heed;
using namespace heed::test;

namespace {

/// A run stopped after its first epoch of seven steps, with logged steps.
struct StoppedRun {
  Workshop workshop;
  Experiment x = workshop.experiment();
  std::string directory = workshop / "run";

  StoppedRun() {
    x.train.log_steps = true;
    x.train.max_steps = 7;
    run(x, directory);
    x.train.max_steps = 0;
  }

  std::string file(const std::string& name) const { return directory + "/" + name; }

  /// Checks that resuming fails with a reason that contains `piece`, and changes neither configuration nor checkpoint.
  void check_refusal(const std::string& piece) const {
    const std::string config = read_file(file("config.toml")), last = read_file(file("last.safetensors"));
    const std::string message = error_of([&] { run(x, directory, true); });
    BOOST_TEST(message.find(piece) != std::string::npos, "'" << message << "' lacks " << piece);
    BOOST_TEST(read_file(file("config.toml")) == config);
    BOOST_TEST((read_file(file("last.safetensors")) == last));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_directory)

// The run was killed, or the disk was full, before the first checkpoint.
BOOST_AUTO_TEST_CASE(a_directory_without_a_checkpoint_is_begun_again) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::string whole = workshop / "whole", again = workshop / "again";
  run(x, whole);
  for (const auto& name : {"config.toml", "environment.json", "cost.json", "metrics.csv"}) {
    std::filesystem::create_directories(again);
    std::string content = read_file(whole + "/" + name);
    if (name == std::string("metrics.csv")) content.resize(content.find('\n') + 1);
    write_file(again + "/" + name, content);
    BOOST_CHECK_THROW(run(x, again, true), Error);
  }
  BOOST_TEST((run(x, again) == Outcome::finished));
  check_same_run(whole, again);
}

BOOST_AUTO_TEST_CASE(a_directory_serves_one_process_at_a_time) {
  const StoppedRun stopped;
  const Workshop fresh;
  std::filesystem::create_directories(fresh / "run");
  {
    const DirectoryLock taken(stopped.directory), fresh_taken(fresh / "run");
    stopped.check_refusal("another process");
    BOOST_TEST(error_of([&] { run(fresh.experiment(), fresh / "run"); }).find("another process") != std::string::npos);
  }
  BOOST_TEST((run(stopped.x, stopped.directory, true) == Outcome::finished));
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_found_wherever_it_is) {
  const StoppedRun stopped;
  const std::string path = stopped.file("last.safetensors"), whole = read_file(path);
  const RandomStream random(1);
  for (Index i = 0; i < 60; ++i) {
    std::string damaged = whole;
    damaged[static_cast<std::size_t>(random.below(2 * i, static_cast<Index>(whole.size())))] ^=
        static_cast<char>(1 << random.below(2 * i + 1, 8));
    write_file(path, damaged);
    BOOST_CHECK_THROW(run(stopped.x, stopped.directory, true), Error);
  }
  write_file(path, whole);
  BOOST_TEST((run(stopped.x, stopped.directory, true) == Outcome::finished));
}

BOOST_AUTO_TEST_CASE(progress_that_cannot_be_is_refused) {
  const auto refused = [](const RunProgress& progress) {
    return error_of([&] { check_progress("last", progress, 3, 7); }) != "no error";
  };
  BOOST_TEST(!refused({.epoch = 1, .step = 9, .batch = 2, .loss = 4, .correct = 3, .terms = 32, .best = 0.5}));
  BOOST_TEST(!refused({.epoch = 3, .step = 21}));
  constexpr Index far = std::numeric_limits<Index>::max();
  for (const RunProgress& progress :
       {RunProgress{.epoch = -1, .step = -7}, RunProgress{.epoch = 4, .step = 28},
        RunProgress{.epoch = far, .step = far}, RunProgress{.epoch = 1, .step = 8},
        RunProgress{.epoch = 0, .step = 8, .batch = 8}, RunProgress{.epoch = 1, .step = 7, .loss = NAN},
        RunProgress{.epoch = 1, .step = 7, .correct = 2, .terms = 1}, RunProgress{.epoch = 1, .step = 7, .best = NAN},
        RunProgress{.epoch = 1, .step = 7, .best = 2}})
    BOOST_TEST(refused(progress));
  // After the data have changed, there may be more or fewer steps than the epochs and batches imply.
  const auto with_more = [](const RunProgress& progress, Index more) {
    return error_of([&] { check_progress("last", progress, 3, 7, more); });
  };
  BOOST_TEST(with_more({.epoch = 1, .step = 9}, 2) == "no error");
  BOOST_TEST(with_more({.epoch = 1, .step = 5}, -2) == "no error");
  BOOST_TEST(with_more({.epoch = 1, .step = 7}, 2) == "last: metadata 'heed.step' is 7; expected 9 to 9");
  BOOST_TEST(with_more({.epoch = 1, .step = 9, .batch = 2, .skipped = 3}, 0) ==
             "last: metadata 'heed.skipped' is 3; expected 0 to 2");
  BOOST_TEST(with_more({.epoch = 1, .step = 9, .batch = 2, .gradient_norm = NAN}, 0)
                 .starts_with("last: metadata 'heed.gradient_norm' is nan; expected 0 to "));
  BOOST_TEST(with_more({.epoch = 1, .step = 9, .batch = 2, .correct = 3, .terms = 2}, 0) ==
             "last: metadata 'heed.correct' is 3; expected 0 to 2");
  BOOST_TEST(with_more({.epoch = 1, .step = 7, .since_best = 2}, 0) ==
             "last: metadata 'heed.since_best' is 2; expected 0 to 1");
}

BOOST_AUTO_TEST_CASE(rows_that_are_missing_are_missed) {
  const StoppedRun stopped;
  const std::string path = stopped.file("metrics.csv"), whole = read_file(path);
  const auto without_line = [&](const std::string& start) {
    const std::size_t begin = whole.find("\n" + start) + 1;
    return whole.substr(0, begin) + whole.substr(whole.find('\n', begin) + 1);
  };
  const auto with_loss = [&](const std::string& start, const std::string& loss) {
    const std::size_t begin = whole.find("\n" + start) + 1 + start.size();
    return whole.substr(0, begin) + loss + whole.substr(whole.find(',', begin));
  };
  for (const std::string& damaged :
       {std::string(), whole.substr(whole.find('\n') + 1), whole.substr(0, whole.find('\n') + 1),
        without_line("step,1,1,"), without_line("step,1,3,"), without_line("step,1,7,"), without_line("train,1,"),
        without_line("valid,1,"), with_loss("train,1,7,", "nan"), with_loss("train,1,7,", "12x"),
        with_loss("step,1,2,", "inf")}) {
    write_file(path, damaged);
    stopped.check_refusal("metrics.csv");
  }
  std::filesystem::remove(path);
  stopped.check_refusal("metrics.csv");
}

// gradients.csv has a row for each step and epoch of metrics.csv.
BOOST_AUTO_TEST_CASE(rows_of_gradients_that_are_missing_are_missed) {
  const StoppedRun stopped;
  const std::string path = stopped.file("gradients.csv"), whole = read_file(path);
  for (const auto& [start, row] : {std::pair("step,1,1,", "step 1"),
                                   {"step,1,4,", "step 4"},
                                   {"step,1,7,", "step 7"},
                                   {"train,1,7,", "epoch 1"}}) {
    const std::size_t begin = whole.find(std::string("\n") + start) + 1;
    BOOST_REQUIRE(begin > 0u);
    write_file(path, whole.substr(0, begin) + whole.substr(whole.find('\n', begin) + 1));
    stopped.check_refusal(fmt::format("gradients.csv: the row of {} is missing", row));
  }
  write_file(path, whole.substr(0, whole.find('\n') + 1));
  stopped.check_refusal("gradients.csv: the row of ");
  std::filesystem::remove(path);
  stopped.check_refusal("gradients.csv");
}

// Any file of weights or row of metrics.csv makes a directory a run; the best weights are used if there are any.
BOOST_AUTO_TEST_CASE(files_of_a_run_directory) {
  const TemporaryDirectory directory;
  const std::string path = directory.path().string(), header = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";
  const RunPaths paths(path + "//");
  BOOST_TEST(paths.directory == path);
  BOOST_TEST(RunPaths("/").directory == "/");
  BOOST_TEST(RunPaths("a//").directory == "a");
  BOOST_TEST(!paths.exists());
  write_file(paths.config(), "");
  write_file(paths.metrics(), header);
  BOOST_TEST(!paths.exists());
  write_file(paths.metrics(), header + "s");
  BOOST_TEST(paths.exists());
  std::filesystem::remove(paths.metrics());
  write_file(paths.best(), "");
  BOOST_TEST(paths.exists());
  BOOST_TEST(paths.weights() == path + "/best.safetensors");
  write_file(paths.last(), "");
  BOOST_TEST(paths.weights() == path + "/best.safetensors");
  std::filesystem::remove(paths.best());
  BOOST_TEST(paths.exists());
  BOOST_TEST(paths.weights() == path + "/last.safetensors");
}

BOOST_AUTO_TEST_CASE(the_environment_has_the_time_in_utc_and_the_threads) {
  // Unlike this clock, std::time() may lag behind by some milliseconds.
  const auto utc = [] {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    char text[64];
    return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now)));
  };
#ifdef HEED_NO_THREADS
  const std::vector<int> counts{1};
#else
  const std::vector<int> counts{1, 3};
#endif
  for (const int count : counts) {
    const WithThreads with(count);
    const std::string before = utc();
    const Json environment = Json::parse(environment_json());
    const std::string date = environment.at("date").text();
    BOOST_TEST((before <= date && date <= utc()), date);
    BOOST_TEST(environment.at("threads").integer() == count);
    BOOST_TEST(environment_line().find(count == 1 ? ", 1 thread, " : ", 3 threads, ") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_run_whose_metrics_vanish_does_not_end_well) {
  const Workshop workshop;
  const std::string directory = workshop / "run";
  TrainOptions options;
  options.run = directory;
  AfterStep observer([&](const StepReport& report) {
    if (report.step == 2) std::filesystem::remove(directory + "/metrics.csv");
  });
  BOOST_CHECK_THROW(train(workshop.experiment(), options, observer), Error);
}

BOOST_AUTO_TEST_CASE(a_refused_resume_changes_no_setting) {
  StoppedRun stopped;
  stopped.x.train.epochs += 1;
  std::filesystem::remove(stopped.file("environment.json"));
  std::filesystem::create_directory(stopped.file("environment.json"));
  stopped.check_refusal("environment.json: cannot write");
}

BOOST_AUTO_TEST_CASE(temporary_files_of_the_dead_are_removed) {
  const StoppedRun stopped;
  const std::string gone[] = {"last.safetensors.123.part", "config.toml.9-1.part",  "metrics.csv.4.part",
                              "gradients.csv.5.part",      "plugin-mine.so.6.part", "plugin-mine.so.6-2.part"};
  const std::string kept[] = {"notes.part", "plugin-mine.so", "plugin-notes.part"};
  for (const std::string& name : gone) write_file(stopped.file(name), "half");
  for (const std::string& name : kept) write_file(stopped.file(name), "whole");
  run(stopped.x, stopped.directory, true);
  for (const std::string& name : gone) BOOST_TEST(!std::filesystem::exists(stopped.file(name)), name);
  for (const std::string& name : kept) BOOST_TEST(std::filesystem::exists(stopped.file(name)), name);
}

BOOST_AUTO_TEST_SUITE_END()
