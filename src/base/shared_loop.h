// A loop whose pieces are shared among threads, and functions with which threads wait for each other.
#pragma once

#include "heed/base/tensor.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace heed {

/// The index of the calling thread, and whether it is in a loop.
inline thread_local int own_index = 0;
inline thread_local bool in_loop = false;

/// Marks the calling thread as being in a loop.
struct InLoop {
  const bool nested = std::exchange(in_loop, true);
  InLoop() = default;
  InLoop(const InLoop&) = delete;
  ~InLoop() { in_loop = nested; }
};

/// Clock that measures loops once it is started. Sums are in nanoseconds.
struct LoopClock {
  using Time = std::chrono::steady_clock::time_point;

  std::atomic<bool> started = false;
  std::atomic<std::int64_t> open = 0, busy = 0;
  std::atomic<Index> loops = 0;

  Time now() const { return started ? std::chrono::steady_clock::now() : Time(); }
  /// Returns the nanoseconds since `start`, a result of now().
  static std::int64_t since(Time start) {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  }
  /// Adds `sign` times the time since `start`, a result of now(), to `busy`.
  void add_busy(Time start, int sign = 1) {
    if (started) busy += sign * since(start);
  }
  /// Adds a loop that was open since `start`, a result of now(). On one thread, the loop was busy all that time.
  void add_loop(Time start, bool one_thread) {
    if (!started) return;
    const std::int64_t duration = since(start);
    open += duration;
    if (one_thread) busy += duration;
    ++loops;
  }
};
inline LoopClock loop_clock;

/// Maximum number of spins, about 100 microseconds depending on the CPU, before a thread sleeps and leaves its core to
/// other programs.
inline constexpr int most_spins = 5000;

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns once `value` differs from `old`: spins first, then sleeps.
template <class V>
void wait_for_change(const std::atomic<V>& value, V old) {
  for (int spins = 0; spins < most_spins; ++spins) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  value.wait(old);
}

/// The exception of the lowest-numbered piece that threw.
class FirstError {
 public:
  /// Stores the exception being handled, which `piece` threw, unless a piece with a lower number has thrown.
  void keep(Index piece) {
    const std::lock_guard lock(mutex_);
    if (error_ && piece_ < piece) return;
    error_ = std::current_exception();
    piece_ = piece;
  }
  /// Returns the exception, or null, and resets it.
  std::exception_ptr take() { return std::exchange(error_, nullptr); }

 private:
  std::exception_ptr error_;
  Index piece_ = 0;
  std::mutex mutex_;
};

/// The pieces of a loop not yet taken by a thread.
class Pieces {
 public:
  void reset(Index count) {
    count_ = count;
    next_ = 0;
    left_ = count >= few ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  }

  bool any() const { return count_ > few ? next_ < count_ : left_ != 0; }

  /// Takes a piece for thread `index` of `threads`; returns -1 if none is left. If pieces are few, each thread searches
  /// from a fixed piece on, so that a piece mostly runs on the core whose cache has its operands from an earlier loop.
  Index take(int index, int threads) {
    if (count_ > few) {
      const Index piece = next_++;
      return piece < count_ ? piece : -1;
    }
    const auto first = static_cast<int>(count_ * index / threads);
    std::uint64_t left = left_;
    while (left != 0) {
      const std::uint64_t from_first = left >> first << first;
      const int piece = std::countr_zero(from_first != 0 ? from_first : left);
      if (left_.compare_exchange_weak(left, left & ~(std::uint64_t{1} << piece))) return piece;
    }
    return -1;
  }

 private:
  static constexpr Index few = 64;  ///< number of bits of left_

  std::atomic<Index> count_ = 0, next_ = 0;
  std::atomic<std::uint64_t> left_ = 0;
};

/// A loop shared by threads. The thread that opens the loop and its helpers, the threads that join it, take pieces
/// until none is left. join() counts a helper before the last check that the loop is open, so once the helpers of a
/// closed loop have left, no thread takes a piece of it.
struct alignas(64) Loop {
  std::atomic<bool> reserved = false, open = false;
  std::atomic<int> helpers = 0;
  Pieces pieces;
  void (*call)(const void*, Index) = nullptr;
  const void* function = nullptr;
  int threads = 1;
  FirstError error;

  /// Joins the loop as thread `index`, which must then call leave(). Returns false if the loop is closed, has no piece
  /// left, or is for fewer threads.
  bool join(int index) {
    if (!open || !pieces.any()) return false;
    ++helpers;
    if (open && index < threads) return true;
    leave();
    return false;
  }
  void leave() {
    if (--helpers == 0) helpers.notify_one();
  }

  void take_pieces() {
    const LoopClock::Time start = loop_clock.now();
    const InLoop mark;
    for (Index piece = pieces.take(own_index, threads); piece >= 0; piece = pieces.take(own_index, threads)) {
      try {
        call(function, piece);
      } catch (...) {
        error.keep(piece);
      }
    }
    if (!mark.nested) loop_clock.add_busy(start);
  }

  /// Closes the loop, waits until its helpers have left, and returns its error, or null if there is none.
  std::exception_ptr close() {
    open = false;
    const LoopClock::Time start = loop_clock.now();
    for (int count = helpers; count != 0; count = helpers) wait_for_change(helpers, count);
    if (in_loop) loop_clock.add_busy(start, -1);
    std::exception_ptr thrown = error.take();
    reserved = false;
    return thrown;
  }
};

}  // namespace heed
