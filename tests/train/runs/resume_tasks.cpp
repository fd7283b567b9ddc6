// A run interrupted after every single step has the same files as an uninterrupted one, and so do runs with different
// numbers of threads, in every task and family.
#include "heed/kernels/products/gemm_bf16.h"
#include "support/families.h"
#include "support/tasks.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Enables features with state: averages, randomness, logged steps, patience, and one of the optimisers and schedules.
void keep_states(Experiment& x, Index which) {
  x.train.dropout = 0.1, x.train.drop_path = 0.3, x.train.log_steps = true, x.train.patience = 2;
  if (!x.self_supervised()) x.train.ema = 0.8;
  if (which % 2 == 1) x.optim.name = "sgd", x.optim.lr = 0.05;
  x.optim.schedule = which % 3 == 0 ? "cosine" : which % 3 == 1 ? "linear" : "rsqrt";
  x.optim.warmup_steps = 3;
}

/// Checks that a run interrupted after every step has the files of an uninterrupted one. Runs on scenes, of which
/// thousands are for testing, end before the test.
void check_cut_after_every_step(const TaskData& data, const std::string& name, const Experiment& x) {
  BOOST_TEST_CONTEXT(name) {
    const std::string whole = data.path(name + " whole"), cut = data.path(name + " cut");
    constexpr Index steps = 6;
    const bool tested = x.data.name != "scenes";
    BOOST_TEST((run_until(steps + tested, x, whole) == (tested ? Outcome::finished : Outcome::interrupted)));
    for (Index step = 1; step <= steps; ++step)
      BOOST_TEST((run_until(step, x, cut, step > 1) == Outcome::interrupted), "step " << step);
    if (tested) BOOST_TEST((run(x, cut, true) == Outcome::finished));
    check_same_run(whole, cut);
  }
}

/// Returns an experiment with a small model of a host family, on the images of the task cases.
Experiment of_family(const TaskData& data, const std::string& family) {
  const Experiment of_images = data.cases().front().x;
  Experiment x = small_experiment(family, {"model.channels=1", "model.classes=10", "model.image=8"});
  x.data = of_images.data, x.train = of_images.train;
  return x;
}

/// Checks that runs with 1 to 64 threads have the same files: two steps of 24 examples in sixteen lanes, validation
/// and, except for scenes, the test.
void check_threads(const TaskData& data, const std::string& name, Experiment x) {
  BOOST_TEST_CONTEXT(name) {
    x.train.batch = 24, x.train.microbatch = 1;
    const auto with = [&](int count) {
      const WithThreads threads(count);
      const std::string directory = data.path(fmt::format("{} {}", name, count));
      run_until(x.data.name == "scenes" ? 2 : 3, x, directory);
      return directory;
    };
    const std::string alone = with(1);
    for (const int count : {2, 3, 5, 8, 16, 64}) check_same_run(alone, with(count));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_resume_tasks)

BOOST_AUTO_TEST_CASE(every_task_is_cut_after_every_step) {
  const TaskData data;
  Index which = 0;
  for (TaskCase& c : data.cases()) {
    keep_states(c.x, which++);
    check_cut_after_every_step(data, c.name, c.x);
  }
}

BOOST_AUTO_TEST_CASE(every_family_is_cut_after_every_step) {
  const TaskData data;
  Index which = 0;
  for (const std::string family : {"xcit", "cvt", "soft"}) {
    Experiment x = of_family(data, family);
    keep_states(x, which++);
    check_cut_after_every_step(data, family, x);
  }
}

BOOST_AUTO_TEST_CASE(threads_leave_no_trace_in_any_task) {
  const TaskData data;
  for (TaskCase& c : data.cases()) {
    c.x.train.dropout = 0.1;
    check_threads(data, c.name, c.x);
  }
}

// With batch norm, lanes run in lockstep.
BOOST_AUTO_TEST_CASE(threads_leave_no_trace_in_any_family) {
  const TaskData data;
  for (const std::string family : {"xcit", "cvt", "soft"}) check_threads(data, family, of_family(data, family));
  Experiment dino = of_family(data, "xcit");
  const Experiment plain = data.experiment("dino");
  dino.train = plain.train, dino.dino = plain.dino, dino.optim = plain.optim, dino.data = plain.data;
  check_threads(data, "dino with batch norm", dino);
}

// Layers of 65536 weights: idle threads take a share of their operations.
BOOST_AUTO_TEST_CASE(threads_leave_no_trace_in_shared_operations) {
  const TaskData data;
  Experiment x = data.cases().front().x;
  x.model.dim = 128, x.model.hidden = 512, x.model.depth = 1, x.model.patch = 2;
  for (const std::string dtype : {"f32", "f64", "bf16"}) {
    if (dtype == "bf16" && kernels::bf16_obstacle()) continue;
    x.train.dtype = dtype;
    check_threads(data, dtype, x);
  }
}

BOOST_AUTO_TEST_SUITE_END()
