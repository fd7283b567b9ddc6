// A run is a function of its configuration: threads and interruptions do not affect its files.
#include "heed/base/split.h"
#include "heed/base/warnings.h"
#include "heed/train/optimizer.h"
#include "support/training.h"

#include <fstream>

using namespace heed;
using namespace heed::test;

namespace {

/// An experiment to run in different ways.
struct Variant {
  const char* name;
  void (*change)(Experiment&);
};

const Variant variants[] = {
    {"plain", [](Experiment&) {}},
    {"everything", [](Experiment& x) { ask_for_everything(x); }},
    {"sgd",
     [](Experiment& x) {
       x.optim.name = "sgd";
       x.optim.lr = 0.1;
       x.train.log_steps = true;
     }},
    {"f64",
     [](Experiment& x) {
       ask_for_everything(x);
       x.train.dtype = "f64";
       x.data.validation = 0;
     }},
};

/// Calls f(workshop, experiment, directory of an uninterrupted run) for each variant.
void for_variants(const std::function<void(const Workshop&, const Experiment&, const std::string&)>& f) {
  for (const Variant& variant : variants) {
    BOOST_TEST_CONTEXT("variant " << variant.name) {
      const Workshop workshop;
      Experiment x = workshop.experiment();
      variant.change(x);
      BOOST_TEST((run(x, workshop / "whole") == Outcome::finished));
      f(workshop, x, workshop / "whole");
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_resume)

BOOST_AUTO_TEST_CASE(threads_leave_no_trace) {
  for_variants([](const Workshop& workshop, const Experiment& x, const std::string& whole) {
    for (const int count : {1, 2, 3}) {
      const WithThreads with(count);
      const std::string directory = workshop / std::to_string(count);
      run(x, directory);
      check_same_run(whole, directory);
    }
  });
}

// Runs are interrupted in the middle of an epoch, at the end of one (before validation), and after one step.
BOOST_AUTO_TEST_CASE(interruptions_leave_no_trace) {
  for_variants([](const Workshop& workshop, const Experiment& x, const std::string& whole) {
    const Index per_epoch = x.data.validation == 0 ? 8 : 7;
    const std::string directory = workshop / "stopped";
    BOOST_TEST((run_until(1, x, directory) == Outcome::interrupted));
    BOOST_TEST((run_until(4, x, directory, true) == Outcome::interrupted));
    BOOST_TEST((run_until(per_epoch, x, directory, true) == Outcome::interrupted));
    BOOST_TEST((run_until(3 * per_epoch, x, directory, true) == Outcome::interrupted));
    BOOST_TEST((run(x, directory, true) == Outcome::finished));
    check_same_run(whole, directory);
  });
}

// max_steps may be raised when resuming. Steps 7 and 14 end an epoch of seven steps, step 8 one of eight.
BOOST_AUTO_TEST_CASE(stops_at_max_steps_leave_no_trace) {
  for_variants([](const Workshop& workshop, const Experiment& x, const std::string& whole) {
    Experiment limited = x;
    const std::string directory = workshop / "stopped";
    for (const Index steps : {2, 7, 8, 14}) {
      limited.train.max_steps = steps;
      BOOST_TEST((run(limited, directory, steps > 2) == Outcome::stopped));
    }
    BOOST_TEST((run(x, directory, true) == Outcome::finished));
    check_same_run(whole, directory);
  });
}

BOOST_AUTO_TEST_CASE(other_threads_may_go_on) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  ask_for_everything(x);
  const std::string whole = workshop / "whole", stopped = workshop / "stopped";
  {
    const WithThreads with(1);
    run(x, whole);
    run_until(4, x, stopped);
  }
  const WithThreads with(2);
  run(x, stopped, true);
  check_same_run(whole, stopped);
}

// A run is killed between checkpoints: its files are the last checkpoint and later rows.
BOOST_AUTO_TEST_CASE(what_came_after_the_last_checkpoint_is_done_again) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  ask_for_everything(x);
  x.train.log_steps = true;
  x.train.checkpoint_steps = 3;
  const std::string whole = workshop / "whole", cut = workshop / "cut";
  run(x, whole);
  for (const Index step : {2, 5, 9, 20}) {
    std::filesystem::remove_all(cut);
    // Simulates the end of the process at this step: only the files on the disk remain.
    struct Died {};
    TrainOptions options;
    options.run = cut;
    AfterStep observer([&](const StepReport& report) {
      if (report.step == step) throw Died();
    });
    BOOST_CHECK_THROW(train(x, options, observer), Died);
    {
      std::ofstream metrics(cut + "/metrics.csv", std::ios::app);
      metrics << "step,1,";  // an incomplete row
    }
    BOOST_TEST((run(x, cut, true) == Outcome::finished));
    check_same_run(whole, cut);
  }
}

// The run was killed between writing an epoch's rows and the checkpoint that includes it.
BOOST_AUTO_TEST_CASE(rows_of_an_epoch_that_the_checkpoint_does_not_count_are_dropped) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::string whole = workshop / "whole", cut = workshop / "cut";
  run(x, whole);
  run_until(7, x, cut);  // saved at the end of the epoch, before its rows
  {
    std::ofstream metrics(cut + "/metrics.csv", std::ios::app);
    metrics << "train,1,7,2.5,0.1,0.001,1000\nvalid,1,7,2.5,0.1,,\n";
  }
  run(x, cut, true);
  check_same_run(whole, cut);
}

BOOST_AUTO_TEST_CASE(a_finished_run_resumed_is_tested_again) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::string whole = workshop / "whole", again = workshop / "again";
  run(x, whole);
  run(x, again);
  BOOST_TEST((run(x, again, true) == Outcome::finished));
  check_same_run(whole, again);
}

BOOST_AUTO_TEST_CASE(a_run_whose_last_step_is_the_limit_is_finished) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  run(x, workshop / "whole");
  x.train.max_steps = 21;
  BOOST_TEST((run(x, workshop / "limited") == Outcome::finished));
  check_same_run(workshop / "whole", workshop / "limited");
}

BOOST_AUTO_TEST_CASE(another_seed_makes_another_run) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.max_steps = 2;
  run(x, workshop / "one");
  x.train.seed = 2;
  run(x, workshop / "two");
  BOOST_TEST((read_file(workshop / "one/last.safetensors") != read_file(workshop / "two/last.safetensors")));
}

BOOST_AUTO_TEST_CASE(what_may_not_be_resumed) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::string directory = workshop / "run", config = directory + "/config.toml";
  BOOST_TEST(error_of([&] { run(x, directory, true); }, directory) == ": contains no run to resume");
  BOOST_TEST(!std::filesystem::exists(directory));
  run_until(2, x, directory);
  const std::string before = read_file(directory + "/last.safetensors");
  BOOST_TEST(error_of([&] { run(x, directory); }, directory) ==
             ": already contains a run; continue it with --resume, or start another with --run DIR");
  BOOST_TEST(error_of([&] { run(x, directory, true, "w.safetensors"); }) ==
             "--init w.safetensors: a resumed run continues from its own weights; drop one of --init and --resume");

  const auto refusal = [&](void (*change)(Experiment&)) {
    Experiment changed = x;
    change(changed);
    return error_of([&] { run(changed, directory, true); }, config);
  };
  const std::string end = "; a resumed run keeps its configuration";
  BOOST_TEST(refusal([](Experiment& y) { y.optim.lr = 0.5; }) ==
             ": the run was started with optim.lr = 0.001, not 0.5" + end);
  BOOST_TEST(refusal([](Experiment& y) { y.optim.name = "sgd"; }) ==
             ": the run was started with optim.name = \"adamw\", not \"sgd\"" + end);
  BOOST_TEST(refusal([](Experiment& y) { y.train.seed = 3; }) ==
             ": the run was started with train.seed = 1, not 3" + end);
  BOOST_TEST(refusal([](Experiment& y) { y.model.dim = 32; }) ==
             ": the run was started with model.dim = 16, not 32" + end);
  BOOST_TEST(refusal([](Experiment& y) { y.attention.options["causal"].text = "true"; }) ==
             ": the run was started with attention.causal = (nothing), not true" + end);
  BOOST_TEST((read_file(directory + "/last.safetensors") == before));

  // The checkpoint is replaced by another model's.
  Experiment other = x;
  other.model.hidden = 25;
  run_until(1, other, workshop / "other");
  std::filesystem::copy_file(workshop / "other/last.safetensors", directory + "/last.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(error_of([&] { run(x, directory, true); }, directory) ==
             "/last.safetensors: tensor 'blocks.0.mlp.fc1.weight' has shape [25, 16]; the model expects [24, 16]");
}

BOOST_AUTO_TEST_CASE(a_run_whose_files_were_changed_is_not_resumed) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::string directory = workshop / "run", best = directory + "/best.safetensors";
  run_until(9, x, directory);  // in the second epoch
  Experiment edited = x;
  edited.optim.lr = 0.5;
  write_file(directory + "/config.toml", to_toml(edited));
  BOOST_TEST(error_of([&] { run(edited, directory, true); }, directory) ==
             "/last.safetensors: config.toml in the same directory has changed since this checkpoint was written; undo "
             "the change, or start "
             "another run with these weights (--init)");
  write_file(directory + "/config.toml", to_toml(x));

  const auto refusal = [&] { return error_of([&] { run(x, directory, true); }, best); };
  const std::string end =
      "the run cannot be resumed; start another run from its last weights: --init " + directory + "/last.safetensors";
  std::string weights = read_file(best);
  weights.back() ^= 1;
  write_file(best, weights);
  BOOST_TEST(refusal().starts_with(": the file is damaged: "));
  BOOST_TEST(refusal().ends_with(end));
  std::filesystem::remove(best);
  BOOST_TEST(refusal().ends_with(end));
}

// Earlier steps equal those of the original run; later ones use the longer run's learning rate.
BOOST_AUTO_TEST_CASE(a_run_may_have_more_epochs) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.log_steps = true;
  const std::string directory = workshop / "run";
  BOOST_TEST((run(x, directory) == Outcome::finished));
  const std::vector<std::string> before = metrics_of(directory);
  x.train.epochs = 2;
  BOOST_TEST(error_of([&] { run(x, directory, true); }, directory) ==
             ": train.epochs = 2, but the run has completed 3 epochs");
  x.train.epochs = 5;
  BOOST_TEST((run(x, directory, true) == Outcome::finished));
  BOOST_TEST(load_experiment(directory + "/config.toml").train.epochs == 5);
  const std::vector<std::string> after = metrics_of(directory);
  BOOST_TEST(std::equal(before.begin(), before.end() - 1, after.begin()));  // the test's row moves to the new end
  run(x, workshop / "long");
  const std::vector<std::string> whole = metrics_of(workshop / "long");
  BOOST_REQUIRE(after.size() == whole.size());
  const auto rate = [](const std::string& row) { return row.substr(row.rfind(',')); };
  for (std::size_t i = before.size() - 1; i < after.size(); ++i) BOOST_TEST(rate(after[i]) == rate(whole[i]));
}

// Steps 1, 2 and 5 to 7 are logged. One resumption turns logging on and ends before its first step.
BOOST_AUTO_TEST_CASE(a_run_may_log_steps_in_parts) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  const std::string directory = workshop / "run";
  for (const auto& [logs, until] : {std::pair(true, 2), {false, 4}, {true, 4}, {true, 5}, {true, 7}}) {
    x.train.log_steps = logs;
    x.train.max_steps = until;
    BOOST_TEST((run(x, directory, until > 2) == Outcome::stopped));
  }
  std::string steps;
  for (const std::string& row : metrics_of(directory))
    if (row.starts_with("step,1,")) steps += row[7];
  BOOST_TEST(steps == "12567");
}

// After nine steps, two of them in the second epoch, epochs become nine instead of seven steps long: the next step is
// the third of its epoch, the twelfth of 27. The run is resumed once more with the same data.
BOOST_AUTO_TEST_CASE(rates_follow_the_epochs_of_changed_data) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.log_steps = true;
  x.optim.schedule = "linear", x.optim.warmup_steps = 10;
  const std::string directory = workshop / "run";
  BOOST_TEST((run_until(9, x, directory) == Outcome::interrupted));
  write_patterns(workshop.data(), 164, 30, 8);
  std::atomic<bool> interrupt{false};
  AfterStep stop([&](const StepReport& report) { interrupt = report.step >= 15; });
  BOOST_TEST((train(x, {.run = directory, .resume = true, .changed_data = true, .interrupt = &interrupt}, stop) ==
              Outcome::interrupted));
  BOOST_TEST((run(x, directory, true) == Outcome::finished));
  take_warnings();
  Index steps = 0;
  for (const std::string& row : metrics_of(directory)) {
    const std::vector<std::string> cells = split(row, ',');
    if (cells[0] != "step") continue;
    ++steps;
    BOOST_TEST(std::stoll(cells[2]) == steps);
    const Index step = steps - 1;
    BOOST_TEST(std::stod(cells[5]) ==
                   (step < 9 ? learning_rate(x.optim, step, 7, 21) : learning_rate(x.optim, step + 2, 9, 27)),
               "step " << steps);
    BOOST_TEST(std::stoll(cells[1]) == 1 + (step < 9 ? step / 7 : (step + 2) / 9));
  }
  BOOST_TEST(steps == 25);
}

// The run is interrupted at the end of an epoch before validation, and resumed with more epochs: the epoch's row has
// the learning rate of its last step.
BOOST_AUTO_TEST_CASE(an_epoch_that_is_only_validated_keeps_its_learning_rate) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  const std::string directory = workshop / "run";
  run(x, workshop / "whole");
  const auto rate_of_second = [](const std::string& run) {
    for (const std::string& row : metrics_of(run))
      if (row.starts_with("train,2,")) return row.substr(row.rfind(','));
    return std::string();
  };
  run_until(14, x, directory);
  x.train.epochs = 1;
  BOOST_TEST(error_of([&] { run(x, directory, true); }, directory) ==
             ": train.epochs = 1, but the run has completed 1 epoch and started another");
  x.train.epochs = 5;
  struct : TrainObserver {
    std::vector<double> paces;
    void epoch(const EpochReport& epoch) override { paces.push_back(epoch.train.images_per_s); }
  } observer;
  TrainOptions options;
  options.run = directory;
  options.resume = true;
  BOOST_TEST((train(x, options, observer) == Outcome::finished));
  BOOST_TEST(rate_of_second(directory) == rate_of_second(workshop / "whole"));
  BOOST_REQUIRE(observer.paces.size() == 4u);
  BOOST_TEST(observer.paces[0] < 0);
  BOOST_TEST(observer.paces[1] > 0);
}

// The data's location and the interval of checkpoints may change.
BOOST_AUTO_TEST_CASE(what_may_change_on_resuming) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  run(x, workshop / "whole");
  run_until(4, x, workshop / "moved");
  std::filesystem::rename(workshop.data(), workshop / "elsewhere");
  x.data.path = workshop / "elsewhere";
  x.train.checkpoint_steps = 2;
  BOOST_TEST((run(x, workshop / "moved", true) == Outcome::finished));
  check_same_run(workshop / "whole", workshop / "moved");
}

BOOST_AUTO_TEST_SUITE_END()
