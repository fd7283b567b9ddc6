#include "heed/train/rate_range.h"

#include "heed/base/error.h"
#include "heed/base/math.h"
#include "heed/nn/families.h"
#include "heed/train/optimizer.h"
#include "heed/train/step.h"
#include "heed/train/tasks/task.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

constexpr double keep = 0.95, divergence = 4;

template <class T>
RateTest test_rates_in(const Experiment& x, const RateRange& range) {
  const std::unique_ptr<Model> model = make_model(x);
  const std::unique_ptr<Task<T>> task = make_task<T>(x, *model);
  const std::unique_ptr<BatchSource<T>> source = task->open(Part::train, true);
  Parameters<T> parameters(model->parameters());
  parameters.initialise(x.train.seed);
  task->begin(parameters);
  Optimizer<T> optimizer(x.optim, parameters);
  BatchGradient<T> gradient(*model, parameters, x.train.batch, x.train);
  const RandomStream random = RandomStream(x.train.seed).derive("step");
  RateTest test;
  double mean = 0, least = 0;
  for (Index step = 0; step < range.steps; ++step) {
    if (step % source->batches() == 0) source->start(step / source->batches());
    const TaskBatch<T>& batch = *source->next();
    const double share = static_cast<double>(step) / static_cast<double>(range.steps - 1);
    const double lr = range.from * math::pow(range.to / range.from, share);
    const StepPlace place{step, range.steps, step / source->batches()};
    batch.before_step(place);
    const BatchResult result = gradient.run(batch, random.derive(step));
    const UpdateRules rules = task->update_rules(place);
    const Clipping clipping = clip(gradient.gradients(), x.optim.clip, rules.clip_each);
    test.diverged = !std::isfinite(result.loss) || !std::isfinite(clipping.norm);
    if (test.diverged) break;
    mean = keep * mean + (1 - keep) * result.loss;
    const double smoothed = mean / (1 - math::pow(keep, static_cast<double>(step + 1)));
    least = step == 0 ? smoothed : std::min(least, smoothed);
    test.points.push_back({lr, result.loss, smoothed});
    test.diverged = smoothed > divergence * least;
    if (test.diverged) break;
    optimizer.step(parameters, gradient.gradients(), {lr, x.optim.weight_decay}, clipping.factor, rules.frozen);
    task->after_step(parameters, place);
  }
  return test;
}

/// Returns true if the minimum of the smoothed loss is more than five standard errors below the mean of the first
/// `span` losses. The standard error of a smoothed loss is s sqrt((1 - keep) / (1 + keep)), where s is the root mean
/// square of loss - smoothed loss in the first half of the test or, if the minimum is later, up to the minimum. The
/// factor is as large as five because the minimum is the smallest of many smoothed losses.
bool falls(const std::vector<RatePoint>& points, std::size_t least, std::size_t span) {
  const std::size_t count = std::max(least + 1, points.size() / 2);
  double start = 0, squares = 0;
  for (std::size_t i = 0; i < span; ++i) start += points[i].loss / static_cast<double>(span);
  for (std::size_t i = 0; i < count; ++i) {
    const double beside = points[i].loss - points[i].smoothed;
    squares += beside * beside;
  }
  const double scatter = std::sqrt(squares / static_cast<double>(count));
  return start - points[least].smoothed > 5 * scatter * std::sqrt((1 - keep) / (1 + keep));
}

}  // namespace

RateTest test_rates(const Experiment& experiment, const RateRange& range) {
  HEED_ASSERT(range.from > 0 && range.from < range.to && range.steps >= 2);
  validate(experiment);
  return experiment.train.dtype == "f64" ? test_rates_in<double>(experiment, range)
                                         : test_rates_in<float>(experiment, range);
}

std::optional<RateAdvice> advice(const std::vector<RatePoint>& points) {
  if (points.empty()) return std::nullopt;
  const auto lower = [](const RatePoint& a, const RatePoint& b) { return a.smoothed < b.smoothed; };
  const auto least = std::min_element(points.begin(), points.end(), lower);
  // The slope is measured over a tenth of the points: over a few steps, it would reflect the batches, not the rate.
  const std::size_t span = std::max<std::size_t>(points.size() / 10, 1);
  if (!falls(points, least - points.begin(), span)) return std::nullopt;
  std::optional<RateAdvice> found;
  double steepest = 0;
  for (std::size_t i = span; i + span < points.size() && points.begin() + static_cast<Index>(i + span) <= least; ++i) {
    const RatePoint &a = points[i], &b = points[i + span];
    const double slope = (b.smoothed - a.smoothed) / math::log(b.lr / a.lr);
    if (slope >= steepest) continue;
    steepest = slope;
    found = RateAdvice{std::sqrt(a.lr * b.lr), least->lr};
  }
  return found;
}

}  // namespace heed
