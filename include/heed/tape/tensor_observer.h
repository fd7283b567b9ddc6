// Observation of all tensors of a pass, in the order of their computation.
#pragma once

#include "heed/base/tensor.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace heed {

/// The result of an operation in a pass.
struct ObservedResult {
  std::uint32_t index;       ///< index among the results of the pass; the same when the result is recomputed
  const char* operation;     ///< its name, such as "layer_norm"
  const std::string* layer;  ///< name of its layer, such as "blocks.0.norm1"; null outside of layers
};

/// A result, or the gradient of the loss with respect to it.
template <class T>
struct ObservedTensor {
  ObservedResult result;
  bool gradient = false;
  bool recomputed = false;  ///< the result was observed before (Tape::recompute)
  View<const T> values{};   ///< valid during the call
};

/// Observer of a pass: receives each result when it is computed, and each complete gradient before the backward
/// function of its operation runs. Gradients of weights are in the pass's Gradients.
template <class T>
class TensorObserver {
 public:
  virtual ~TensorObserver() = default;
  virtual void observe(const ObservedTensor<T>& tensor) = 0;
};

/// Unique names of the results of a pass: "blocks.0.norm1/layer_norm", and "blocks.0/add#2" for the second of this
/// name. of() must be called for every observed tensor, in order; a result, its gradient and its recomputation then
/// have the same name. The first result of a pass restarts the numbering.
class ResultNames {
 public:
  template <class T>
  const std::string& of(const ObservedTensor<T>& tensor) {
    const auto& [index, operation, layer] = tensor.result;
    if (index == 0 && !tensor.gradient && !tensor.recomputed) names_.clear(), counts_.clear();
    if (index >= names_.size()) {
      const std::string name = layer ? fmt::format("{}/{}", *layer, operation) : operation;
      const int count = ++counts_[name];
      names_.push_back(count == 1 ? name : fmt::format("{}#{}", name, count));
    }
    return names_[index];
  }

 private:
  std::vector<std::string> names_;  ///< by the results' indices
  std::map<std::string, int> counts_;
};

}  // namespace heed
