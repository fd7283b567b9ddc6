// Trace of a probe: every operation's result and gradient.
#pragma once

#include "heed/attention/steps.h"
#include "heed/tape/tape.h"

#include <deque>
#include <string>
#include <vector>

namespace heed::cli {

/// Metadata key of a trace, whose tensors are in the order of computation.
inline constexpr const char* trace_key = "heed.trace";

/// Collector of a pass's tensors on the thread that created it, in the order of computation: results as NAME.out,
/// gradients as NAME.grad. An operation has its layer's name if it is the layer's only operation, so that the tensor
/// equals the output of PyTorch's module of this name; otherwise "layer/operation". Steps within a mechanism
/// (attention/steps.h) are "layer/S".
template <class T>
class PassTrace final : public TensorObserver<T> {
 public:
  PassTrace();

  /// Returns the observers of the pass; they prevent the fusion of its operations, as for cost tables.
  Observers<T> observers() { return {.trace = &operations_, .tensors = this}; }

  void observe(const ObservedTensor<T>& tensor) override;

  /// Adds the gradient of an input or a weight. The file has these gradients in reverse order of the calls, which is
  /// the order of the backward pass.
  void add_gradient(const std::string& name, View<const T> values);

  /// Adds a mechanism's map as map.out, the first tensor of the trace, unless the mechanism has reported its steps.
  void add_map(View<const T> values);

  /// Writes the trace; `step`, if not empty, is the training step of the weights.
  void write(const std::string& path, const std::string& step);

 private:
  struct Entry {
    std::string name;
    const char* suffix;  ///< ".out" or ".grad"
    Tensor<T> values;
  };
  /// Matrices of a step, by image, head and row.
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
  std::string operation_;  ///< operation whose steps are being collected
  std::vector<Step> steps_;
  bool any_steps_ = false, backward_ = false;
  std::deque<Entry> entries_, gradients_;
};

}  // namespace heed::cli
