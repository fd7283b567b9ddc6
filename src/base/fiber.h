// Functions that can pause and be resumed, possibly by another thread.
#pragma once

#include <functional>
#include <memory>

namespace heed {

/// A separate stack on which functions run sequentially.
class Fiber {
 public:
  /// Throws Error if there is no memory for a stack.
  Fiber();
  /// The function must have ended or not have started.
  ~Fiber();
  Fiber(const Fiber&) = delete;

  /// Sets the function that the next resume() starts; the previous one must have ended.
  void prepare(std::function<void()> function);

  /// Runs the function until it pauses or ends; one thread at a time. The function must catch its exceptions.
  void resume();
  bool ended() const;

  /// Called by the function itself: returns when it is resumed.
  void pause();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
