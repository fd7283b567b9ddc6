// Cutting rows into pieces that run side by side. Where they are summed, the cut depends on shapes alone.
#pragma once

#include "heed/parallel.h"
#include "heed/tape.h"

namespace heed {

/// Work that is worth a thread of its own, in elementary operations; some ten microseconds.
inline constexpr Index parallel_grain = Index{1} << 18;

/// Calls f(begin, end) for ranges of rows that cost about `row_work` elementary operations each.
template <class F>
void for_row_ranges(Index rows, Index row_work, const F& f) {
  parallel_ranges(rows, parallel_grain / std::max<Index>(row_work, 1), f);
}

/// Calls f(first row, last row, first column, last column) for parts of a matrix whose elements cost about `work`
/// elementary operations each and do not depend on the part they are in. The longer side is cut: a product with few rows
/// is divided by columns, so that threads do not all arrange the same operand.
template <class F>
void for_parts(Index rows, Index columns, Index work, const F& f) {
  if (rows >= columns)
    return for_row_ranges(rows, columns * work, [&](Index begin, Index end) { f(begin, end, Index{0}, columns); });
  constexpr Index strip = 16, least = parallel_grain / 8;  // columns; work that is worth waking a thread
  const Index strips = (columns + strip - 1) / strip;
  const Index parts = std::clamp<Index>(rows * columns * work / least, 1, std::min<Index>(threads(), strips));
  parallel_for(parts, [&](Index part) {
    f(Index{0}, rows, strips * part / parts * strip, std::min(columns, strips * (part + 1) / parts * strip));
  });
}

/// A gradient that is a sum over rows: calls f(begin, end, update, data) with ranges of rows and a place of
/// `width` numbers for each range's share, and adds the shares to `data` in order.
template <class T, class F>
void sum_over_row_ranges(Tape<T>& tape, Index rows, Index row_work, Index width, Update update, T* data, const F& f) {
  const Index pieces = std::clamp<Index>(rows * row_work / parallel_grain, 1, 16);
  if (pieces == 1) return f(Index{0}, rows, update, data);
  T* const shares = tape.memory(pieces * width);
  parallel_for(pieces, [&](Index piece) {
    f(rows * piece / pieces, rows * (piece + 1) / pieces, Update::assign, shares + piece * width);
  });
  for (Index piece = 0; piece < pieces; ++piece) {
    const Update share_update = piece == 0 ? update : Update::accumulate;
    for (Index i = 0; i < width; ++i) write(share_update, data[i], shares[piece * width + i]);
  }
}

}  // namespace heed
