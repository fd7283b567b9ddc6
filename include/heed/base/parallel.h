// The only place that starts threads for computation (the data pipeline has oneTBB's, see
// data/loader.h). Work is cut by its shape, never by the number of threads, so results do not depend on it.
#pragma once

#include "heed/base/tensor.h"

#include <memory>

namespace heed {

/// Number of threads that parallel_for may use; at first the number of cores. Throws Error below 1. In a build without
/// threads it is 1, whatever is set.
void set_threads(int count);
int threads();

/// Number of the calling thread inside a parallel_for, 0 outside: 0 <= worker() < threads().
int worker();

namespace detail {
/// Would parallel_for run its pieces on the calling thread alone?
bool alone();
void parallel_run(Index pieces, void (*call)(const void*, Index), const void* function);
}  // namespace detail

/// Calls f(piece) once for each piece in [0, pieces), on all threads; inside another parallel_for, on the
/// calling thread. Pieces must not depend on each other. If some throw, the exception of the lowest-numbered
/// piece is rethrown after all have ended.
template <class F>
void parallel_for(Index pieces, const F& f) {
  detail::parallel_run(
      pieces, [](const void* function, Index piece) { (*static_cast<const F*>(function))(piece); }, std::addressof(f));
}

/// Cuts [0, size) into ranges of at least `grain` elements, at most 64 of them, and calls f(begin, end) for each on all
/// threads; where there is no other thread to take one, it is a single range, so that f prepares what it needs once. So
/// what f does to an element must not depend on the range it is in: for sums over ranges, cut by parallel_for.
template <class F>
void parallel_ranges(Index size, Index grain, const F& f) {
  const Index pieces = detail::alone() ? 1 : std::clamp<Index>(size / std::max<Index>(grain, 1), 1, 64);
  parallel_for(pieces, [&](Index piece) {
    const Index begin = size * piece / pieces, end = size * (piece + 1) / pieces;
    if (begin < end) f(begin, end);
  });
}

}  // namespace heed
