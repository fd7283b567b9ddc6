#include "pass_trace.h"

#include "heed/io/safetensors.h"

#include <algorithm>
#include <map>

namespace heed::cli {

namespace {

/// Returns the name of an operation's step: step "S" of "blocks.0.attn/softmax" is "blocks.0.attn/S".
std::string step_name(const std::string& operation, const std::string& step) {
  const std::size_t slash = operation.rfind('/'), count = operation.find('#', slash == std::string::npos ? 0 : slash);
  return (slash == std::string::npos ? "" : operation.substr(0, slash + 1)) + step +
         (count == std::string::npos ? "" : operation.substr(count));
}

/// Returns true if the operation is the whole layer, which then has no other operation, no inner layer and no residual.
bool is_whole_layer(const TraceEntry& entry, const std::vector<TraceEntry>& all) {
  const auto of_layer = std::ranges::count_if(all, [&](const TraceEntry& other) {
    return other.layer == entry.layer || other.layer.starts_with(entry.layer + ".");
  });
  return !entry.layer.empty() && of_layer == 1 &&
         std::ranges::count(entry.operands, false, &TraceEntry::Value::parameter) == 1;
}

}  // namespace

template <class T>
PassTrace<T>::PassTrace()
    : steps_observer_(
          [this](const char* step, Index head, const Matrix<const double>& value) { see(step, head, value); }) {}

template <class T>
void PassTrace<T>::see(const std::string& step, Index head, const Matrix<const double>& value) {
  if (backward_ != step.starts_with('d')) return;  // a backward pass may recompute forward steps
  auto found = std::ranges::find_if(
      steps_, [&](const Step& s) { return s.name == step && s.rows == value.rows && s.columns == value.columns; });
  if (found == steps_.end()) found = steps_.insert(found, {step, 0, value.rows, value.columns, {}});
  found->heads = std::max(found->heads, head + 1);
  for (Index i = 0; i < value.rows; ++i) found->values.insert(found->values.end(), value[i], value[i] + value.columns);
}

template <class T>
typename PassTrace<T>::Entry PassTrace<T>::entry(const std::string& name, bool gradient, View<const T> values) {
  Tensor<T> copy(values.shape());
  std::ranges::copy(values, copy.begin());
  return {name, gradient ? ".grad" : ".out", std::move(copy)};
}

/// Adds the steps of the latest operation: in the forward pass before the operation's result, in the backward pass,
/// where names of steps begin with d, after the operation's gradient.
template <class T>
void PassTrace<T>::add_steps() {
  for (const Step& step : steps_) {
    const Index images = std::ssize(step.values) / (step.heads * step.rows * step.columns);
    Tensor<T> values(Shape{images, step.heads, step.rows, step.columns});
    std::ranges::transform(step.values, values.begin(), [](double x) { return static_cast<T>(x); });
    entries_.push_back(entry(step_name(operation_, step.name.substr(backward_)), backward_, values.view()));
  }
  any_steps_ |= !steps_.empty();
  steps_.clear();
}

template <class T>
void PassTrace<T>::observe(const ObservedTensor<T>& tensor) {
  const std::string name = names_.of(tensor);
  if (!tensor.gradient) operation_ = name;
  add_steps();
  operation_ = name;
  backward_ = tensor.gradient;
  entries_.push_back(entry(name, tensor.gradient, tensor.values));
}

template <class T>
void PassTrace<T>::add_gradient(const std::string& name, View<const T> values) {
  gradients_.push_front(entry(name, true, values));
}

template <class T>
void PassTrace<T>::add_map(View<const T> values) {
  if (!any_steps_) entries_.push_front(entry("map", false, values));
}

template <class T>
void PassTrace<T>::write(const std::string& path, const std::string& step) {
  if (backward_) add_steps();  // without a backward pass, the remaining steps come from computing the map
  std::map<std::string, std::string> layers;  // by the name of their only operation
  for (const TraceEntry& entry : operations_)
    if (is_whole_layer(entry, operations_) && std::ranges::count(gradients_, entry.layer, &Entry::name) == 0)
      layers[fmt::format("{}/{}", entry.layer, entry.operation)] = entry.layer;
  SafetensorsWriter file;
  for (const Entry& entry : entries_) {
    const auto layer = layers.find(entry.name);
    file.add((layer != layers.end() ? layer->second : entry.name) + entry.suffix, entry.values.view());
  }
  for (const Entry& entry : gradients_) file.add(entry.name + entry.suffix, entry.values.view());
  file.metadata(trace_key, "1");
  if (!step.empty()) file.metadata("heed.step", step);
  file.write(path);
}

template class PassTrace<float>;
template class PassTrace<double>;

}  // namespace heed::cli
