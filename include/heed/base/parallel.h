// Threads for computation; no other file starts them (for the threads of the data pipeline, see data/loader.h).
// Results do not depend on the number of threads: if the division of the work affects a result, the division depends on
// sizes only. Loops nest: threads without a piece of an outer loop take pieces of the inner loops.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <memory>
#include <string>

namespace heed {

/// Set and return the number of threads of parallel_for, initially the number of logical cores. set_threads() throws
/// Error if count < 1. A build without threads always has 1.
void set_threads(int count, std::string reason = "asked for");
int threads();

/// Returns the reason for the number of threads, such as "asked for" or "all cores".
const std::string& threads_reason();

/// Returns the index of the calling thread inside a parallel_for, 0 <= worker() < threads(); 0 outside.
int worker();

/// Times of loops with more than one piece since start_loop_times(), in seconds. While a loop is open, each thread runs
/// a piece or waits.
struct LoopTimes {
  double open = 0;  ///< time in which loops were open; nested loops add nothing
  double busy = 0;  ///< time in pieces, summed over threads
  Index loops = 0;  ///< number of loops opened, without nested loops
};

/// Resets the times to zero and starts measuring.
void start_loop_times();

/// Returns the times since start_loop_times().
LoopTimes loop_times();

/// Calls f() on the calling thread alone. Returns the fraction of f's time in which at least `least` pieces were open,
/// enough work for `least` threads. The counts of nested loops multiply: a loop of 4 pieces inside one of 8 opens 32.
double share_of_open_pieces(Index least, const std::function<void()>& f);

namespace detail {
/// Returns true if parallel_for would run on the calling thread alone.
bool alone();
/// Implements parallel_for: calls call(function, piece) for each piece.
void parallel_run(Index pieces, void (*call)(const void*, Index), const void* function);
}  // namespace detail

/// Calls f(piece) once for each piece in [0, pieces), in parallel on the calling thread and all idle ones. Pieces must
/// not depend on each other. If some throw, the exception of the lowest-numbered piece is rethrown after all have
/// ended.
template <class F>
void parallel_for(Index pieces, const F& f) {
  detail::parallel_run(
      pieces, [](const void* function, Index piece) { (*static_cast<const F*>(function))(piece); }, std::addressof(f));
}

/// Divides [0, size) into at most 64 ranges of at least `grain` elements and calls f(begin, end) for each, in parallel.
/// If no other thread is available, calls f once for the whole range, which avoids repeated preparation in f. The
/// result for an element must therefore not depend on its range; sums over ranges need parallel_for.
template <class F>
void parallel_ranges(Index size, Index grain, const F& f) {
  const Index pieces = detail::alone() ? 1 : std::clamp<Index>(size / std::max<Index>(grain, 1), 1, 64);
  parallel_for(pieces, [&](Index piece) {
    const Index begin = size * piece / pieces, end = size * (piece + 1) / pieces;
    if (begin < end) f(begin, end);
  });
}

}  // namespace heed
