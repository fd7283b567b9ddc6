// Named intermediate results of mechanisms, for checks that compare a hand-written mechanism with its composed form.
#pragma once

#include "heed/base/matrix.h"

#include <functional>
#include <type_traits>

namespace heed {

/// Receives steps on the thread that created it, until it is destroyed: name, head, and the matrix of the head.
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

/// Reports a result of run_forward() or run_backward() under the name that the composed form gives it: "S" in the
/// forward pass, "dS" for its gradient. `heed gradcheck` compares the two, for matrices that are computed whole.
template <class T>
void report_step(const char* name, Index head, const Matrix<T>& value) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, double>)
    if (const StepObserver* const observer = StepObserver::current()) observer->see(name, head, value);
}

}  // namespace heed
