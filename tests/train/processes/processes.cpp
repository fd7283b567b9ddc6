// Runs of several processes, simulated by threads, have the same files as one. (tests/processes.sh tests real ones.)
#include "heed/base/warnings.h"
#include "heed/io/safetensors.h"
#include "heed/train/processes/processes.h"

#include "support/training.h"
#include "support/processes.h"
#include "support/tagger.h"
#include "support/temporary.h"

#include <sched.h>

#include <cstdlib>
#include <optional>

using namespace heed;
using namespace heed::test;

namespace {

Outcome run_in(int count, const Experiment& x, const TrainOptions& options, TrainObserver& observer) {
  Outcome first{};
  in_processes(count, [&](Ranks& ranks) {
    TrainOptions own = options;
    own.ranks = &ranks;
    const Outcome outcome = train(x, own, observer);
    if (ranks.writes()) first = outcome;
  });
  return first;
}

void check_counts(const Workshop& workshop, const Experiment& x, const std::string& name) {
  BOOST_TEST_CONTEXT(name) {
    run(x, workshop / name);
    for (const int count : {2, 4}) {
      TrainObserver silent;
      const std::string shared = workshop / fmt::format("{}-{}", name, count);
      run_in(count, x, {.run = shared}, silent);
      check_same_run(workshop / name, shared);
    }
  }
}

/// Returns an experiment with batches of 16 in four microbatches, and all features that draw random numbers.
Experiment everything(const Workshop& workshop) {
  Experiment x = workshop.experiment();
  ask_for_everything(x);
  x.train.log_steps = true;
  x.train.patience = 1;
  return x;
}

/// A tagging task whose part `other`, if given, is replaced by 30 other sentences.
struct OtherSentences : Tagging {
  OtherSentences(const Model& model, std::optional<Part> other) : Tagging(model, 8), model(model), other(other) {}
  std::unique_ptr<BatchSource<double>> open(Part part, bool training) override {
    if (part != other) return Tagging::open(part, training);
    return std::make_unique<SentenceSource<double>>(model, sentences, 8);
  }

  const Model& model;
  std::optional<Part> other;
  Sentences sentences{30, 5, 7, 3, 1};
};

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_processes)

BOOST_AUTO_TEST_CASE(processes_leave_the_files_of_one) {
  const Workshop workshop;
  Experiment x = everything(workshop);
  check_counts(workshop, x, "softmax");
  x.train.recompute = true;
  x.train.dtype = "f64";
  check_counts(workshop, x, "recompute");
  x = everything(workshop);
  x.data.validation = x.train.patience = 0;
  x.attention.mechanism = {"adder"};
  x.model.linear = {"adder"};
  check_counts(workshop, x, "adder");
}

BOOST_AUTO_TEST_CASE(so_they_do_where_examples_belong_together) {
  const Workshop workshop;
  Experiment x = load_experiment("models/cvt-micro.toml",
                                 {"model.image=8", "model.patch=[3,3]", "model.padding=[1,1]", "model.stride=[2,2]",
                                  "model.dim=[8,8]", "model.depth=[1,1]", "model.heads=[2,2]", "model.hidden=[8,8]"});
  const Experiment base = everything(workshop);
  x.data = base.data;
  x.train = base.train;
  check_counts(workshop, x, "cvt");
}

// The files contain the teacher's weights, centre and entropy; they are the same if the number of processes changes
// when a run is resumed.
BOOST_AUTO_TEST_CASE(so_they_do_with_a_teacher) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.log_steps = true;
  check_counts(workshop, x, "dino");
  TrainObserver silent;
  const std::string resumed = workshop / "resumed";
  for (const Index steps : {3, 9, 0}) {
    x.train.max_steps = steps;
    run_in(steps == 9 ? 4 : 2, x, {.run = resumed, .resume = steps != 3}, silent);
  }
  check_same_run(workshop / "dino", resumed);
}

BOOST_AUTO_TEST_CASE(so_they_do_with_a_class_for_each_patch) {
  const Workshop workshop;
  write_patterns(workshop.data(), 20, 20, 28);
  Experiment x = workshop.experiment();
  x.data.name = "scenes";
  x.data.limit = 64;
  x.model.output = "tokens";
  x.model.image = 56;
  x.model.patch = 14;
  x.model.classes = 11;
  x.train.epochs = 1;
  check_counts(workshop, x, "scenes");
}

// A run can be resumed with any number of processes. The interrupt is set after a step of process 0, but only for the
// last process, which writes no files.
BOOST_AUTO_TEST_CASE(an_interrupt_stops_all_after_the_same_step) {
  const Workshop workshop;
  const Experiment x = everything(workshop);
  run(x, workshop / "whole");
  const std::string run = workshop / "stopped";
  int left = 5, count = 4;
  for (const bool resume : {false, true, true}) {
    std::atomic<bool> interrupt{false}, never{false};
    AfterStep stop([&](const StepReport& report) { interrupt = report.step >= left; });
    std::vector<Outcome> outcomes(static_cast<std::size_t>(count));
    in_processes(count, [&](Ranks& ranks) {
      const bool told = ranks.rank() == ranks.count() - 1;
      const TrainOptions options{
          .run = run, .resume = resume, .interrupt = told ? &interrupt : &never, .ranks = &ranks};
      outcomes[static_cast<std::size_t>(ranks.rank())] = train(x, options, stop);
    });
    for (const Outcome outcome : outcomes)
      BOOST_TEST((outcome == (left > 100 ? Outcome::finished : Outcome::interrupted)));
    // If some processes have already decided to continue when the signal arrives, all run one more step.
    const Index step = std::stoll(SafetensorsFile(run + "/last.safetensors").metadata().at("heed.step"));
    if (left < 100) BOOST_TEST((step == left || step == left + 1), step);
    count /= 2, left = count == 2 ? 9 : 1000;
  }
  check_same_run(workshop / "whole", run);
}

// After nine steps, epochs become longer; all processes count the steps of the schedule as one process does.
BOOST_AUTO_TEST_CASE(processes_resume_with_changed_data) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.optim.schedule = "linear", x.optim.warmup_steps = 10, x.train.epochs = 2;
  BOOST_TEST((run_until(9, x, workshop / "one") == Outcome::interrupted));
  std::filesystem::copy(workshop / "one", workshop / "two");
  write_patterns(workshop.data(), 164, 30, 8);
  for (const int count : {1, 2}) {
    std::atomic<Index> reports = 0;
    AfterStep observer([&](const StepReport&) { ++reports; });
    run_in(count, x, {.run = workshop / (count == 1 ? "one" : "two"), .resume = true, .changed_data = true}, observer);
    BOOST_TEST(reports == 7);  // of process 0 alone
  }
  take_warnings();
  check_same_run(workshop / "one", workshop / "two");
}

// A single overflowing image, in the lanes of one process, suffices.
BOOST_AUTO_TEST_CASE(a_step_is_skipped_in_all_processes_or_none) {
  const Workshop workshop(64, 16);
  Experiment x = workshop.experiment();
  std::string images = read_file(workshop.data() + "/train-images-idx3-ubyte");
  std::fill(images.begin() + 16, images.end(), '\0');
  images[16] = static_cast<char>(255);
  write_file(workshop.data() + "/train-images-idx3-ubyte", images);
  x.data.validation = 0;
  x.data.mean = {0};
  x.data.std = {1e-38};
  x.train.on_nonfinite = "skip";
  check_counts(workshop, x, "skipping");
}

BOOST_AUTO_TEST_CASE(processes_must_be_given_the_same) {
  const Workshop workshop;
  std::vector<std::string> errors(2);
  in_processes(2, [&](Ranks& ranks) {
    Experiment x = workshop.experiment();
    if (ranks.rank() == 1) x.optim.lr *= 2;
    TrainObserver silent;
    errors[static_cast<std::size_t>(ranks.rank())] =
        error_of([&] { train(x, {.run = workshop / "run", .ranks = &ranks}, silent); });
  });
  for (const std::string& error : errors)
    BOOST_TEST((error.starts_with("train: processes differ: process 0 has checksum ") &&
                error.find(", process 1 has ") != error.npos),
               error);
  BOOST_TEST(!std::filesystem::exists(workshop / "run"));
}

// Processes with the same experiment may have read different data.
BOOST_AUTO_TEST_CASE(processes_must_have_as_many_examples) {
  const Workshop workshop(10, 10);
  const Tagger model(7, 4, 3, 5);
  Experiment x = workshop.experiment();
  x.train.batch = 8;
  for (const auto& [part, counts] : {std::pair(Part::train, "30 examples to train on, 10 to validate, 11 to test"),
                                     {Part::validation, "24 examples to train on, 30 to validate, 11 to test"},
                                     {Part::test, "24 examples to train on, 10 to validate, 30 to test"}}) {
    std::vector<std::string> errors(2);
    in_processes(2, [&, part = part](Ranks& ranks) {
      OtherSentences task(model, ranks.rank() == 1 ? std::optional(part) : std::nullopt);
      TrainObserver silent;
      errors[static_cast<std::size_t>(ranks.rank())] =
          error_of([&] { train(x, {.run = workshop / "run", .ranks = &ranks}, silent, model, task); });
    });
    for (const std::string& error : errors) {
      BOOST_TEST(error.find(" 24 examples to train on, 10 to validate, 11 to test, process 1 has ") != error.npos,
                 error);
      BOOST_TEST(error.ends_with(counts), error);
    }
    BOOST_TEST(!std::filesystem::exists(workshop / "run"));
  }
}

// Two processes on this host, simulated by threads, are bound to disjoint cores, unless they have more threads than
// cores.
BOOST_AUTO_TEST_CASE(processes_of_a_host_are_bound_to_their_cores) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (std::getenv(name)) {
      BOOST_TEST_MESSAGE("skipped: an MPI launcher has started the tests");
      return;
    }
  const cpu_set_t all = cores_of_this_thread();
  const int count = CPU_COUNT(&all);
  const EnvironmentVariable launched("PMI_SIZE", "2");
  for (const bool too_many : {false, true}) {
    std::vector<Place> places(2);
    std::vector<cpu_set_t> bound(2);
    in_processes(2, [&](Ranks& ranks) {
      const auto self = static_cast<std::size_t>(ranks.rank());
      places[self] = place_processes(ranks, too_many ? count + 1 : 0);
      bound[self] = cores_of_this_thread();
    });
    for (int self = 0; self < 2; ++self) {
      const Cores own = part_of_cores(self, 2, count);
      const auto at = static_cast<std::size_t>(self);
      BOOST_TEST(places[at].hosts == 1);
      BOOST_TEST(places[at].cores == own.count);
      for (int core = 0, number = 0; core < CPU_SETSIZE; ++core) {
        const bool among = CPU_ISSET(core, &all);
        const bool mine = too_many || count < 2 || (own.first <= number && number < own.first + own.count);
        BOOST_TEST(bool(CPU_ISSET(core, &bound[at])) == (among && mine), "process " << self << ", core " << core);
        number += among;
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cores_are_shared_out) {
  for (int cores = 1; cores <= 9; ++cores)
    for (int processes = 1; processes <= cores; ++processes) {
      int next = 0;
      for (int place = 0; place < processes; ++place) {
        const Cores part = part_of_cores(place, processes, cores);
        BOOST_TEST(part.first == next);
        BOOST_TEST((part.count == cores / processes || part.count == cores / processes + 1));
        next += part.count;
      }
      BOOST_TEST(next == cores);
    }
  for (int place = 0; place < 8; ++place) BOOST_TEST(part_of_cores(place, 8, 3).count == 1);
}

BOOST_AUTO_TEST_CASE(nobody_shares_cores_out_where_nobody_was_started) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("SLURM_STEP_NUM_TASKS")) return;
  const Place place = place_processes(one_process(), 0);
  BOOST_TEST(place.cores == 0);
  BOOST_TEST(&started_processes() == &one_process());
  const Ending ending = end_together({3, "why"});
  BOOST_TEST(ending.status == 3);
  BOOST_TEST(ending.error == "why");
}

// Without MPI, processes cannot communicate: none of them starts, and the first reports why.
BOOST_AUTO_TEST_CASE(a_build_without_mpi_is_not_for_several) {
  if (!launch_words(2).empty()) return;
  for (const auto& [count, index] : {std::pair("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
                                     {"PMI_SIZE", "PMI_RANK"},
                                     {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}}) {
    if (std::getenv(count) || std::getenv(index)) continue;
    for (const bool first : {true, false}) {
      const EnvironmentVariable processes(count, "2"), rank(index, first ? "0" : "1");
      const std::string error = error_of([] { started_processes(); });
      BOOST_TEST(error.starts_with("2 processes were started, but this build has no MPI; `make deps MPI=1 &&"), error);
      const Ending ending = end_together({2, error});
      BOOST_TEST(ending.status == (first ? 2 : 0), count);
      BOOST_TEST(ending.error == (first ? error : ""), count);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
