#include "heed/base/parallel.h"

#ifndef HEED_NO_THREADS
#include "shared_loop.h"

#ifndef HEED_STD_THREADS
#include <omp.h>
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#endif

#include <exception>

namespace heed {

namespace {

/// Calls the pieces in order on the calling thread.
void run_in_order(Index pieces, void (*call)(const void*, Index), const void* function) {
  std::exception_ptr first;
  for (Index piece = 0; piece < pieces; ++piece) {
    try {
      call(function, piece);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

#ifdef HEED_NO_THREADS

// Builds without threads run pieces sequentially on the calling thread.

void set_threads(int count, std::string) { require(count >= 1, "threads: {}; expected 1 or more", count); }
int threads() { return 1; }
const std::string& threads_reason() {
  static const std::string reason = "a build without threads";
  return reason;
}
int worker() { return 0; }

void start_loop_times() {}
LoopTimes loop_times() { return {}; }
double share_of_open_pieces(Index, const std::function<void()>& f) {
  f();
  return 0;
}

bool detail::alone() { return true; }

void detail::parallel_run(Index pieces, void (*call)(const void*, Index), const void* function) {
  run_in_order(pieces, call, function);
}

#else

namespace {

std::atomic<int> thread_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
std::string reason_of_count = "all cores";

/// The number of pieces open on the calling thread, and the time during which that number was at least `least`.
struct OpenPieces {
  using Clock = std::chrono::steady_clock;

  Index least = 1, count = 1;
  Clock::time_point since = Clock::now();
  Clock::duration enough{};

  /// Accounts for the time since the last call, then changes the count.
  void change(Index to) {
    const Clock::time_point now = Clock::now();
    if (count >= least) enough += now - since;
    since = now;
    count = to;
  }
};
thread_local OpenPieces* counted_pieces = nullptr;

/// Throws Error, which reports that the system refuses to start thread `index` of a team of `count`.
[[noreturn]] void refuse(int index, int count, const std::string& reason) {
  fail("threads: the system cannot start thread {} of {} ({}): too little memory, or too many processes", index, count,
       reason);
}

#ifndef HEED_STD_THREADS
/// Throws Error if the system refuses a team of `count` threads. The OpenMP library would terminate the program
/// instead, so the same number of std::threads is started first, all at once, and joined.
void require_threads(int count) {
  std::mutex all_there;
  std::vector<std::thread> team;
  std::string refused;
  try {
    const std::lock_guard lock(all_there);
    for (int i = 0; i < count; ++i) team.emplace_back([&] { const std::lock_guard wait(all_there); });
  } catch (const std::exception& error) {
    refused = error.what();
  }
  for (std::thread& thread : team) thread.join();
  if (!refused.empty()) refuse(std::min(static_cast<int>(team.size()) + 2, count), count, refused);
}
#endif

/// The helper threads and the loops. A piece of one loop may open another loop: threads without a piece of the outer
/// loop then help with the inner one. No loop waits for a thread that has not joined it.
class Team {
 public:
  /// Never destroyed: its threads outlive the program's static objects.
  static Team& shared() {
    static Team& team = *new Team;
    return team;
  }

  /// Returns true if a thread is waiting for a loop.
  bool has_idle() const { return idle_ > 0; }

  /// Shares a loop among up to threads() threads, the calling one included.
  void run(Index pieces, void (*call)(const void*, Index), const void* function) {
    const int count = thread_count;
    if (size_ < count) grow(count);
    Loop* const loop = reserve();
    if (!loop) return run_alone(pieces, call, function);
    loop->pieces.reset(pieces);
    loop->call = call;
    loop->function = function;
    loop->threads = count;
    loop->open = true;
    ++opened_;
    if (pieces > 2)
      opened_.notify_all();
    else
      opened_.notify_one();
    loop->take_pieces();
    if (const std::exception_ptr thrown = loop->close()) std::rethrow_exception(thrown);
  }

  static void run_alone(Index pieces, void (*call)(const void*, Index), const void* function) {
    const InLoop mark;
    run_in_order(pieces, call, function);
  }

  /// Notifies all waiting threads that the number of threads has changed.
  void recount() {
    ++opened_;
    opened_.notify_all();
  }

 private:
  /// Returns a loop that no thread uses, or null if there is none.
  Loop* reserve() {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      Loop& loop = loops_[(static_cast<std::size_t>(own_index) + i) % loops_.size()];
      if (!loop.reserved && !loop.reserved.exchange(true)) return &loop;
    }
    return nullptr;
  }

  /// Main function of thread `index` of the team `generation`.
  void serve(int index, int generation) {
    own_index = index;
    while (true) {
      const unsigned opened = opened_;
      if (generation_ != generation) break;
      if (const int count = thread_count; index >= count) {
        thread_count.wait(count);  // this thread is not needed at present
      } else if (!help(index)) {
        ++idle_;
        wait_for_change(opened_, opened);
        --idle_;
      }
    }
    if (--alive_ == 0) alive_.notify_one();
  }

  /// Helps with a loop. Returns false if none needs help. Threads start their search at different loops.
  bool help(int index) {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      Loop& loop = loops_[(static_cast<std::size_t>(index) + i) % loops_.size()];
      if (!loop.join(index)) continue;
      loop.take_pieces();
      loop.leave();
      return true;
    }
    return false;
  }

  /// Replaces the team by one of `count` threads, including the program's own, unless the team is that large already.
  void grow(int count) {
    const std::lock_guard lock(growing_);
    if (size_ >= count) return;
#ifndef HEED_STD_THREADS
    require_threads(count);
#endif
    end();
    start(count);
    size_ = count;
  }

  void end() {
    ++generation_;
    generation_.notify_all();
    recount();
    for (int alive = alive_; alive != 0; alive = alive_) wait_for_change(alive_, alive);
  }

  // OpenMP starts the threads and binds them to cores according to OMP_PROC_BIND and OMP_PLACES. Its team has one
  // thread more than the helpers: thread 0, which sleeps, since its index belongs to the program's own thread. In a
  // browser exactly count - 1 threads are ready, and others start only after the program returns to the event loop, so
  // the build for browsers has no require_threads().
  void start(int count) {
    const int generation = generation_;
#ifdef HEED_STD_THREADS
    for (int index = 1; index < count; ++index) {
      ++alive_;
      try {
        std::thread([this, index, generation] { serve(index, generation); }).detach();
      } catch (const std::exception& error) {
        --alive_;
        refuse(index + 1, count, error.what());
      }
    }
#else
    std::thread([this, count, generation] {
#pragma omp parallel num_threads(count)
      {
        const int index = omp_get_thread_num();
        if (index > 0) ++alive_;
#pragma omp barrier
        if (index > 0) {
          serve(index, generation);
        } else {
          started_ = generation;
          started_.notify_one();
          generation_.wait(generation);
        }
      }
    }).detach();
    started_.wait(generation - 1);
#endif
  }

  std::array<Loop, 64> loops_;
  std::atomic<unsigned> opened_ = 0;  ///< counts opened loops and calls of recount(); idle threads wait for a change
  std::atomic<int> idle_ = 0, alive_ = 0, size_ = 1, generation_ = 0, started_ = 0;
  std::mutex growing_;
};

}  // namespace

void set_threads(int count, std::string reason) {
  require(count >= 1, "threads: {}; expected 1 or more", count);
  thread_count = count;
  thread_count.notify_all();
  reason_of_count = std::move(reason);
  Team::shared().recount();
}
int threads() { return thread_count; }
const std::string& threads_reason() { return reason_of_count; }

int worker() { return own_index; }

bool detail::alone() { return !counted_pieces && (threads() == 1 || (in_loop && !Team::shared().has_idle())); }

void detail::parallel_run(Index pieces, void (*call)(const void*, Index), const void* function) {
  if (pieces == 1) return call(function, 0);
  if (OpenPieces* const counted = counted_pieces) {
    const Index outside = counted->count;
    counted->change(outside * pieces);
    Team::run_alone(pieces, call, function);
    return counted->change(outside);
  }
  const bool outermost = !in_loop;
  const LoopClock::Time start = loop_clock.now();
  if (pieces == 0 || alone())
    Team::run_alone(pieces, call, function);
  else
    Team::shared().run(pieces, call, function);
  if (outermost) loop_clock.add_loop(start, threads() == 1);
}

void start_loop_times() {
  loop_clock.open = loop_clock.busy = 0;
  loop_clock.loops = 0;
  loop_clock.started = true;
}
LoopTimes loop_times() {
  return {1e-9 * static_cast<double>(loop_clock.open), 1e-9 * static_cast<double>(loop_clock.busy), loop_clock.loops};
}

double share_of_open_pieces(Index least, const std::function<void()>& f) {
  struct Counting {
    OpenPieces pieces;
    // Loops may be divided by the number of threads.
    const int count = thread_count.exchange(static_cast<int>(pieces.least));
    explicit Counting(Index least) : pieces{.least = least} { counted_pieces = &pieces; }
    Counting(const Counting&) = delete;
    ~Counting() {
      counted_pieces = nullptr;
      thread_count = count;
    }
  } counting(least);
  const OpenPieces::Clock::time_point start = counting.pieces.since;
  f();
  counting.pieces.change(1);
  return std::chrono::duration<double>(counting.pieces.enough) / (counting.pieces.since - start);
}

#endif

}  // namespace heed
