// A run interrupted after every single step has the same files as an uninterrupted one, in every task and family.
#include "support/families.h"
#include "support/tasks.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Enables everything with a state: averages, randomness, a logged step and an optimiser with momentum.
void keep_states(Experiment& x, Index which) {
  x.train.dropout = 0.1, x.train.drop_path = 0.3, x.train.log_steps = true, x.train.patience = 2;
  if (!x.self_supervised()) x.train.ema = 0.8;
  if (which % 2 == 1) x.optim.name = "sgd", x.optim.lr = 0.05;
  x.optim.schedule = which % 3 == 0 ? "cosine" : which % 3 == 1 ? "linear" : "rsqrt";
  x.optim.warmup_steps = 3;
}

/// Runs with thousands of test scenes end before their test.
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
  const Experiment of_images = data.cases().front().x;
  Index which = 0;
  for (const std::string family : {"xcit", "cvt", "soft"}) {
    Experiment x = small_experiment(family, {"model.channels=1", "model.classes=10", "model.image=8"});
    x.data = of_images.data, x.train = of_images.train;
    keep_states(x, which++);
    check_cut_after_every_step(data, family, x);
  }
}

BOOST_AUTO_TEST_SUITE_END()
