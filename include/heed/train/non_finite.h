// Search for the first infinity or NaN of a pass.
#pragma once

#include "heed/tape/tensor_observer.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace heed {

/// First non-finite tensor among those checked, in order.
template <class T>
class NonFinite : public TensorObserver<T> {
 public:
  /// Returns the tensor's description; empty if all tensors were finite.
  const std::string& where() const { return where_; }

  /// Returns the number of finite tensors checked before the first non-finite one.
  Index finite_before() const { return finite_before_; }

  /// Checks a tensor unless a non-finite one has been found; describe() returns, e.g., "the result of softmax in
  /// blocks.0.attn".
  template <class Describe>
  void check(View<const T> values, const Describe& describe) {
    if (!where_.empty()) return;
    if (std::all_of(values.data(), values.data() + values.size(), [](T x) { return std::isfinite(x); }))
      ++finite_before_;
    else
      where_ = describe();
  }

  void observe(const ObservedTensor<T>& tensor) override {
    check(tensor.values, [&] {
      const auto& [index, operation, layer] = tensor.result;
      return fmt::format("{} {}{}{}", tensor.gradient ? "the gradient with respect to the result of" : "the result of",
                         operation, layer ? " in " : "", layer ? *layer : "");
    });
  }

 private:
  std::string where_;
  Index finite_before_ = 0;
};

}  // namespace heed
