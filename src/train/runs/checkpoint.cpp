#include "checkpoint.h"

#include "heed/base/split.h"
#include "heed/io/weights.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <limits>

namespace heed {

namespace {

constexpr const char* format_name = "heed-run-1";

template <class Number>
Number number(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  require(found != file.metadata().end(), "{}: metadata '{}' is missing; expected a checkpoint of heed train",
          file.path(), key);
  Number value{};
  require(parse_number(found->second, value), "{}: metadata '{}' is '{}'; expected a number", file.path(), key,
          found->second);
  return value;
}

/// Calls f(name, view) for each tensor of the training state: the optimiser's momentum or running means of each
/// trainable tensor, laid out like the weights; the average of the weights, if there is one; with a teacher, the
/// student's tensors and the teacher's training-only ones; the task's state. Prepared tensors are left out.
template <class T, class F>
void for_state_tensors(RunState<T>& state, const F& f) {
  const ParameterList& list = state.parameters.list();
  for (auto& mean : state.optimizer.state())
    for (ParameterId id = 0; id < list.size(); ++id)
      if (list[id].trainable)
        f(fmt::format("{}{}.{}", state_prefix, mean.name, list[id].name),
          View<T>(mean.values.data() + state.parameters.offset(id), list[id].shape));
  if (state.average)
    for (ParameterId id = 0; id < list.size(); ++id)
      if (!list[id].prepared) f(fmt::format("{}average.{}", state_prefix, list[id].name), (*state.average)[id]);
  if (Parameters<T>* const teacher = state.task.teacher())
    for (ParameterId id = 0; id < list.size(); ++id) {
      if (list[id].prepared) continue;
      f(fmt::format("{}student.{}", state_prefix, list[id].name), state.parameters[id]);
      if (list[id].training_only) f(fmt::format("{}teacher.{}", state_prefix, list[id].name), (*teacher)[id]);
    }
  for (const TaskTensor<T>& tensor : state.task.state())
    f(fmt::format("{}task.{}", state_prefix, tensor.name), tensor.values);
}

/// Calls f(key, value) for each number of the progress, const or not.
template <class Progress, class F>
void for_numbers(Progress& p, const F& f) {
  f("heed.epoch", p.epoch), f("heed.step", p.step), f("heed.batch", p.batch), f("heed.skipped", p.skipped);
  f("heed.loss", p.loss), f("heed.correct", p.correct), f("heed.terms", p.terms);
  f("heed.gradient_norm", p.gradient_norm), f("heed.best", p.best), f("heed.since_best", p.since_best);
}

/// Returns the metadata key of the number of updates in which a tensor was frozen.
std::string left_out_key(const ParameterList& list, std::size_t id) {
  return fmt::format("{}left_out.{}", state_prefix, list[static_cast<ParameterId>(id)].name);
}

}  // namespace

template <class T>
RunState<T>::RunState(const Experiment& experiment, const Model& model, Task<T>& task)
    : parameters(model.parameters()),
      optimizer(experiment.optim, parameters),
      task(task),
      configuration(hash_to_resume(experiment)) {}

template <class T>
void save_checkpoint(const std::string& path, RunState<T>& state) {
  SafetensorsWriter file;
  add_weights(file, state.model_weights());
  for_state_tensors(state, [&](const std::string& name, View<T> tensor) { file.add(name, View<const T>(tensor)); });
  file.metadata("heed.format", format_name);
  file.metadata("heed.configuration", state.configuration);
  add_version(file);
  file.metadata("heed.updates", fmt::format("{}", state.optimizer.steps()));
  const std::vector<Index>& left_out = state.optimizer.left_out();
  for (std::size_t id = 0; id < left_out.size(); ++id)
    if (left_out[id] > 0) file.metadata(left_out_key(state.parameters.list(), id), fmt::format("{}", left_out[id]));
  for_numbers(state.progress,
              [&](const char* key, const auto& value) { file.metadata(key, fmt::format("{}", value)); });
  file.write(path);
}

template <class T>
void load_checkpoint(const std::string& path, RunState<T>& state) {
  const SafetensorsFile file(path);
  const auto format = file.metadata().find("heed.format");
  require(format != file.metadata().end() && format->second == format_name,
          "{}: expected a checkpoint of heed train ({}), found other weights", path, format_name);
  require(file.metadata().contains(checksum_key), "{}: has no checksum; a run is resumed only from a file with one",
          path);
  load_weights(file, state.model_weights());
  for_state_tensors(state, [&](const std::string& name, View<T> tensor) {
    file.read(name, tensor);
    require_finite(path, name, View<const T>(tensor));
  });
  const auto configuration = file.metadata().find("heed.configuration");
  require(configuration == file.metadata().end() || configuration->second == state.configuration,
          "{}: config.toml in the same directory has changed since this checkpoint was written; undo the change, or "
          "start another run with "
          "these weights (--init)",
          path);
  for_numbers(state.progress,
              [&](const char* key, auto& value) { value = number<std::decay_t<decltype(value)>>(file, key); });
  const Index updates = number<Index>(file, "heed.updates"), step = state.progress.step;
  require(updates >= 0 && updates <= step, "{}: metadata 'heed.updates' is {}; expected 0 to {}, the number of steps",
          path, updates, step);
  state.optimizer.set_steps(updates);
  std::vector<Index>& left_out = state.optimizer.left_out();
  for (std::size_t id = 0; id < left_out.size(); ++id) {
    const std::string key = left_out_key(state.parameters.list(), id);
    left_out[id] = file.metadata().contains(key) ? number<Index>(file, key) : 0;
    require(left_out[id] >= 0 && left_out[id] <= updates,
            "{}: metadata '{}' is {}; expected 0 to {}, the number of updates", path, key, left_out[id], updates);
  }
}

template <class T>
void share_state(Ranks& ranks, RunState<T>& state) {
  share_weights(ranks, state.model_weights());
  for_state_tensors(state, [&](const std::string&, View<T> tensor) {
    ranks.share(std::as_writable_bytes(std::span(tensor.data(), static_cast<std::size_t>(tensor.size()))));
  });
  Index updates = state.optimizer.steps();
  ranks.share(std::as_writable_bytes(std::span(&updates, 1)));
  state.optimizer.set_steps(updates);
  ranks.share(std::as_writable_bytes(std::span(state.optimizer.left_out())));
  ranks.share(std::as_writable_bytes(std::span(&state.progress, 1)));
}

void check_progress(const std::string& path, const RunProgress& p, Index epochs, Index batches, Index more) {
  const auto check = [&](const char* key, auto value, auto least, auto most) {
    require(value >= least && value <= most, "{}: metadata 'heed.{}' is {}; expected {} to {}", path, key, value, least,
            most);
  };
  constexpr double largest = std::numeric_limits<double>::max();
  check("epoch", p.epoch, Index{0}, epochs);
  check("batch", p.batch, Index{0}, batches);
  const Index steps = p.epoch * batches + p.batch + more;
  check("step", p.step, steps, steps);
  check("skipped", p.skipped, Index{0}, p.batch);
  check("loss", p.loss, -largest, largest);
  check("terms", p.terms, 0.0, largest);
  check("correct", p.correct, 0.0, p.terms);
  check("gradient_norm", p.gradient_norm, 0.0, largest);
  check("best", p.best, -1.0, 1.0);
  check("since_best", p.since_best, Index{0}, p.epoch);
}

template struct RunState<float>;
template struct RunState<double>;
template void save_checkpoint(const std::string&, RunState<float>&);
template void save_checkpoint(const std::string&, RunState<double>&);
template void load_checkpoint(const std::string&, RunState<float>&);
template void load_checkpoint(const std::string&, RunState<double>&);
template void share_state(Ranks&, RunState<float>&);
template void share_state(Ranks&, RunState<double>&);

}  // namespace heed
