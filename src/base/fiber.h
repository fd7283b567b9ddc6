// Functions that pause in the middle, and are resumed later, perhaps by another thread.
#pragma once

#include <functional>
#include <memory>

namespace heed {

/// A stack of its own for one function after the other.
class Fiber {
 public:
  /// Throws Error where there is no memory for a stack.
  Fiber();
  /// The function must have ended, or not begun.
  ~Fiber();
  Fiber(const Fiber&) = delete;

  /// The next resume() calls `function`; the one before must have ended.
  void prepare(std::function<void()> function);

  /// Runs it until it pauses or ends; one thread at a time. What it throws it must catch.
  void resume();
  bool ended() const;

  /// For the function itself: returns when it is resumed.
  void pause();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
