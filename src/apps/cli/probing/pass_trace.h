// The trace of a probe: every operation's result and gradient.
#pragma once

#include "heed/attention/steps.h"
#include "heed/tape/tape.h"

#include <deque>
#include <string>
#include <vector>

namespace heed::cli {

/// Metadata of a trace: its tensors are in the order of computation.
inline constexpr const char* trace_key = "heed.trace";

/// Collects the tensors of a pass on the thread that created it, in the order of computation: results as NAME.out,
/// gradients as NAME.grad. The name of an operation is that of its layer if it is the layer's only one, so that the
/// tensor is what a module of PyTorch with this name returns; "layer/operation" otherwise. Steps within a mechanism
/// (attention/steps.h) are "layer/S".
template <class T>
class PassTrace final : public TensorObserver<T> {
 public:
  PassTrace();

  /// Returns the observers of the pass. Its operations are computed one by one, as in cost tables.
  Observers<T> observers() { return {.trace = &operations_, .tensors = this}; }

  void observe(const ObservedTensor<T>& tensor) override;

  /// Adds the gradient of an input or a weight. The first one added is written last, as the backward pass computes it.
  void add_gradient(const std::string& name, View<const T> values);

  /// Adds a mechanism's map as map.out, before its result; not if the mechanism has reported its steps.
  void add_map(View<const T> values);

  /// Writes the trace; `step`, if not empty, is the training step of the weights.
  void write(const std::string& path, const std::string& step);

 private:
  struct Entry {
    std::string name;
    const char* suffix;  ///< ".out" or ".grad"
    Tensor<T> values;
  };
  /// Matrices of a step: images, heads, rows.
  struct Step {
    std::string name;
    Index heads, rows, columns;
    std::vector<double> values;
  };

  static Entry entry(const std::string& name, bool gradient, View<const T> values);
  void see(const std::string& step, Index head, const Matrix<const double>& value);
  void add_steps();

  StepObserver steps_observer_;
  std::vector<TraceEntry> operations_;
  ResultNames names_;
  std::string operation_;  ///< the one whose steps are collected
  std::vector<Step> steps_;
  bool any_steps_ = false, backward_ = false;
  std::deque<Entry> entries_, gradients_;
};

}  // namespace heed::cli
