// Named intermediate results of mechanisms, to compare a hand-written mechanism with its composed form.
#pragma once

#include "heed/base/matrix.h"

#include <functional>
#include <type_traits>

namespace heed {

/// Observer of the steps reported on the thread that created it; receives the name, head and matrix of each step.
class StepObserver {
 public:
  using See = std::function<void(const char* name, Index head, const Matrix<const double>& value)>;

  explicit StepObserver(See see);
  ~StepObserver();
  StepObserver(const StepObserver&) = delete;

  /// Returns the observer of the calling thread; null if it has none.
  static const StepObserver* current();

  void see(const char* name, Index head, const Matrix<const double>& value) const { see_(name, head, value); }

 private:
  See see_;
  const StepObserver* outer_;
};

/// Reports a result of run_forward() or run_backward() under its name in the composed form: "S" in the forward pass,
/// "dS" for its gradient. `heed gradcheck` compares both forms; report only matrices that are computed as a whole.
/// Reports nothing for number types other than double.
template <class T>
void report_step(const char* name, Index head, const Matrix<T>& value) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, double>)
    if (const StepObserver* const observer = StepObserver::current()) observer->see(name, head, value);
}

}  // namespace heed
