#include "heed/base/parallel.h"

#ifndef HEED_NO_THREADS
#ifdef HEED_STD_THREADS
#include <condition_variable>
#else
#include "heed/base/fork_join.h"

#include <omp.h>
#endif

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#endif

namespace heed {

#ifdef HEED_NO_THREADS

// Runs on the calling thread, one piece after the other.

void set_threads(int count, std::string) {
  require(count >= 1, "threads: {} is not a number of threads; 1 or more are needed", count);
}
int threads() { return 1; }
const std::string& threads_reason() {
  static const std::string reason = "a build without threads";
  return reason;
}
int worker() { return 0; }

bool detail::alone() { return true; }

void detail::parallel_run(Index pieces, void (*call)(const void*, Index), const void* function) {
  for (Index piece = 0; piece < pieces; ++piece) call(function, piece);
}

#else

namespace {

int thread_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
std::string reason_of_count = "all cores";

/// The exception of the lowest-numbered piece that threw.
class FirstError {
 public:
  /// Called in the handler of a piece's exception.
  void keep(Index piece) {
    const std::lock_guard lock(mutex_);
    if (error_ && piece_ < piece) return;
    error_ = std::current_exception();
    piece_ = piece;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
  Index piece_ = 0;
  std::mutex mutex_;
};

/// Throws Error: `count` threads were requested, including the calling one, and the system refuses more than `started`
/// others.
[[noreturn]] void refuse(std::size_t started, int count, const std::exception& refused) {
  fail("threads: the system refuses thread {} of {} ({}): too little memory, or too many processes", started + 2, count,
       refused.what());
}

}  // namespace

void set_threads(int count, std::string reason) {
  require(count >= 1, "threads: {} is not a number of threads; 1 or more are needed", count);
  thread_count = count;
  reason_of_count = std::move(reason);
}
int threads() { return thread_count; }
const std::string& threads_reason() { return reason_of_count; }

#ifdef HEED_STD_THREADS

namespace {

/// The index of the calling thread, and whether it is in a loop.
thread_local int own_number = 0;
thread_local bool at_work = false;

/// A loop that threads share: each takes the next piece until none is left.
struct Loop {
  Index pieces;
  void (*call)(const void*, Index);
  const void* function;
  std::atomic<Index> next = 0;
  FirstError error{};

  void take_pieces() {
    at_work = true;
    for (Index piece = next++; piece < pieces; piece = next++) {
      try {
        call(function, piece);
      } catch (...) {
        error.keep(piece);
      }
    }
    at_work = false;
  }
};

/// Threads that wait for loops. They start on first use and persist.
class Team {
 public:
  ~Team() {
    hand_out(nullptr, static_cast<int>(team_.size()));
    for (std::thread& thread : team_) thread.join();
  }

  /// Runs a loop on the calling thread and `others` more. One loop at a time.
  void run(Loop& loop, int others) {
    try {
      while (static_cast<int>(team_.size()) < others)
        team_.emplace_back([this, number = static_cast<int>(team_.size()) + 1, turn = turn_] { serve(number, turn); });
    } catch (const std::exception& refused) {
      refuse(team_.size(), others + 1, refused);
    }
    hand_out(&loop, others);
    loop.take_pieces();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void hand_out(Loop* loop, int others) {
    {
      const std::lock_guard lock(mutex_);
      loop_ = loop, wanted_ = busy_ = others;
      ++turn_;
    }
    begin_.notify_all();
  }

  void serve(int number, Index turn) {
    own_number = number;
    while (true) {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return turn_ != turn; });
      turn = turn_;
      if (!loop_) return;
      if (number > wanted_) continue;
      lock.unlock();
      loop_->take_pieces();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> team_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  Loop* loop_ = nullptr;  ///< nullptr ends the threads
  int wanted_ = 0, busy_ = 0;
  Index turn_ = 0;
};

}  // namespace

int worker() { return at_work ? own_number : 0; }

bool detail::alone() { return threads() == 1 || at_work; }

void detail::parallel_run(Index pieces, void (*call)(const void*, Index), const void* function) {
  if (pieces <= 1 || alone()) {
    for (Index piece = 0; piece < pieces; ++piece) call(function, piece);
    return;
  }
  static Team team;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Loop loop{pieces, call, function};
  team.run(loop, threads() - 1);
  loop.error.rethrow();
}

#else

namespace {

/// Throws Error if the system refuses `count` threads. The OpenMP library would end the program instead, so
/// std::threads are started first, all at the same time, and joined.
void require_threads(int count) {
  std::mutex all_there;
  std::vector<std::thread> team;
  const auto give_back = [&] {
    for (std::thread& thread : team) thread.join();
  };
  try {
    const std::lock_guard lock(all_there);
    for (int i = 1; i < count; ++i) team.emplace_back([&] { const std::lock_guard wait(all_there); });
  } catch (const std::exception& refused) {
    give_back();
    refuse(team.size(), count, refused);
  }
  give_back();
}

}  // namespace

int worker() { return omp_in_parallel() ? omp_get_thread_num() : 0; }

bool detail::alone() { return threads() == 1 || omp_in_parallel(); }

// ThreadSanitizer takes the compiler-generated passing of the loop's variables to threads for races. (A nested function
// does not inherit the attribute.)
[[gnu::no_sanitize("thread")]] void detail::parallel_run(Index pieces, void (*call)(const void*, Index),
                                                         const void* function) {
  if (pieces <= 1 || alone()) {
    for (Index piece = 0; piece < pieces; ++piece) call(function, piece);
    return;
  }
  static std::atomic<int> granted = 1;
  const int count = threads();
  if (granted < count) {
    require_threads(count);
    granted = count;
  }
  FirstError error;
  ForkJoin work;
  const auto run = [&](Index piece) __attribute__((no_sanitize("thread"))) {
    work.begin();
    try {
      call(function, piece);
    } catch (...) {
      error.keep(piece);
    }
    work.end();
  };
  // With one thread per piece, a piece always runs on the same thread, whose cache may still hold its operands.
  // NOLINTNEXTLINE(bugprone-branch-clone): the schedules differ.
  if (pieces <= count) {
#pragma omp parallel for schedule(static, 1) num_threads(count)
    for (Index piece = 0; piece < pieces; ++piece) run(piece);
  } else {
#pragma omp parallel for schedule(dynamic, 1) num_threads(count)
    for (Index piece = 0; piece < pieces; ++piece) run(piece);
  }
  work.join();
  error.rethrow();
}

#endif

#endif

}  // namespace heed
