#include "heed/base/parallel.h"

#ifndef HEED_NO_THREADS
#include "heed/base/fork_join.h"

#include <omp.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#endif

namespace heed {

#ifdef HEED_NO_THREADS

// On the calling thread, one piece after the other.

void set_threads(int count) {
  require(count >= 1, "threads: {} is not a number of threads; 1 or more are needed", count);
}
int threads() { return 1; }
int worker() { return 0; }

bool detail::alone() { return true; }

void detail::parallel_run(Index pieces, void (*call)(const void*, Index), const void* function) {
  for (Index piece = 0; piece < pieces; ++piece) call(function, piece);
}

#else

namespace {

int thread_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));

/// Throws Error if the system refuses so many threads. OpenMP's library would end the program: so they are asked for in
/// the ordinary way first, all at a time, and given back.
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
    fail("threads: the system refuses thread {} of {} ({}): too little memory, or too many processes", team.size() + 2,
         count, refused.what());
  }
  give_back();
}

}  // namespace

void set_threads(int count) {
  require(count >= 1, "threads: {} is not a number of threads; 1 or more are needed", count);
  thread_count = count;
}
int threads() { return thread_count; }
int worker() { return omp_in_parallel() ? omp_get_thread_num() : 0; }

bool detail::alone() { return thread_count == 1 || omp_in_parallel(); }

// What the compiler makes of the loop hands its variables to threads in ways that ThreadSanitizer takes for races.
[[gnu::no_sanitize("thread")]] void detail::parallel_run(Index pieces, void (*call)(const void*, Index),
                                                         const void* function) {
  if (pieces <= 1 || alone()) {
    for (Index piece = 0; piece < pieces; ++piece) call(function, piece);
    return;
  }
  static std::atomic<int> granted = 1;
  if (granted < thread_count) {
    require_threads(thread_count);
    granted = thread_count;
  }
  std::exception_ptr error;
  Index error_piece = pieces;
  std::mutex error_mutex;
  ForkJoin work;
#pragma omp parallel for schedule(dynamic, 1) num_threads(thread_count)
  for (Index piece = 0; piece < pieces; ++piece) {
    work.begin();
    try {
      call(function, piece);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (piece < error_piece) {
        error = std::current_exception();
        error_piece = piece;
      }
    }
    work.end();
  }
  work.join();
  if (error) std::rethrow_exception(error);
}

#endif

}  // namespace heed
