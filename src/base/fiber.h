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
  /// The function must have ended or never have started.
  ~Fiber();
  Fiber(const Fiber&) = delete;

  /// Sets the function that the next resume() starts; the previous one must have ended.
  void prepare(std::function<void()> function);

  /// Runs the function until it pauses or ends. Only one thread at a time may call this. The function must catch its
  /// exceptions.
  void resume();
  bool ended() const;

  /// Pauses the running function, which must be the caller; returns when the function is resumed.
  void pause();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
