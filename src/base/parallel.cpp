#include "heed/base/parallel.h"

#ifndef HEED_NO_THREADS
#include "heed/base/fork_join.h"

#include <omp.h>

#include <exception>
#include <mutex>
#include <thread>
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
}

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
