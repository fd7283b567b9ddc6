// Cutting rows into pieces that run side by side. Where they are summed, the cut depends on shapes alone.
#pragma once

#include "heed/base/parallel.h"
#include "heed/tape/tape.h"

namespace heed {

/// Work that is worth a thread of its own, in elementary operations; some ten microseconds.
inline constexpr Index parallel_grain = Index{1} << 18;

/// How many rows of `width` numbers go from one operation to the next at a time: of floats a quarter of an L2 cache of
/// 1 MB, and a multiple of 24 rows, which make whole tiles of a product (src/kernels/products/pair_sums.h).
constexpr Index rows_in_cache(Index width) {
  constexpr Index numbers = Index{1} << 16, tiles = 24;
  return std::max(tiles, numbers / std::max<Index>(width, 1) / tiles * tiles);
}

/// Uninitialised memory of the calling thread, which keeps it: what is in it lasts until the thread's next call. Not to
/// be held where an operation waits for other lanes (WholeBatch::sum): another lane computes on this thread meanwhile.
template <class T>
T* thread_memory(Index count) {
  // A thread's variable with a destructor is noted in memory of its own: where that is lacking, glibc ends the program.
  // Asking for more beforehand throws std::bad_alloc.
  thread_local const bool can_be_noted = (::operator delete(::operator new(4096)), true);
  static_cast<void>(can_be_noted);
  thread_local Buffer<T> buffer;
  if (buffer.size() < count) buffer = Buffer<T>(count);
  return buffer.data();
}

/// Calls f(begin, end) for ranges of rows that cost about `row_work` elementary operations each.
template <class F>
void for_row_ranges(Index rows, Index row_work, const F& f) {
  parallel_ranges(rows, parallel_grain / std::max<Index>(row_work, 1), f);
}

/// The same for products. An element of float's does not depend on the range that it is in; one of double's, which are
/// BLAS', may, and so its ranges follow from shapes alone.
template <class T, class F>
void for_product_ranges(Index rows, Index row_work, const F& f) {
  if constexpr (std::is_same_v<T, float>) return for_row_ranges(rows, row_work, f);
  const Index ranges = std::clamp<Index>(rows * row_work / parallel_grain, 1, std::clamp<Index>(rows, 1, 64));
  parallel_for(ranges, [&](Index range) { f(rows * range / ranges, rows * (range + 1) / ranges); });
}

/// A part of a product: some rows, and some columns of its second operand and of the result.
struct ProductPart {
  Index row, rows, column, columns;

  /// The part's rows of the first operand.
  template <class T>
  Matrix<T> rows_of(Matrix<T> m) const {
    return m.middle_rows(row, rows);
  }
  /// Its part of the result, or of a matrix of the same shape.
  template <class T>
  Matrix<T> of(Matrix<T> m) const {
    return rows_of(m).middle_columns(column, columns);
  }
};

/// Calls f(part) for parts of a product [rows, columns] of `terms` terms each. Where there are few rows, float's
/// columns are cut, so that threads do not all read the same operand.
template <class T, class F>
void for_product_parts(Index rows, Index columns, Index terms, const F& f) {
  if (rows >= columns || !std::is_same_v<T, float>)
    return for_product_ranges<T>(rows, columns * terms / 8, [&](Index begin, Index end) {
      f(ProductPart{begin, end - begin, 0, columns});
    });
  // Columns are cut where cache lines of 64 bytes end.
  constexpr Index strip = 16;
  // Terms that are worth waking a thread. Each weight is read for `rows` terms, and of less than four rows reading
  // takes longer than the terms: so much longer that half of 2^17 weights is worth a thread, and half of 2^16 is not.
  // (Models 96 to 256 wide that write token by token, on two cores of Zen 5.)
  constexpr Index few = 4, slower = 4;
  const Index least = rows < few ? parallel_grain / slower : parallel_grain;
  const Index strips = (columns + strip - 1) / strip;
  const Index parts = std::clamp<Index>(rows * columns * terms / least, 1, std::min<Index>(threads(), strips));
  parallel_for(parts, [&](Index part) {
    const Index begin = strips * part / parts * strip, end = std::min(columns, strips * (part + 1) / parts * strip);
    f(ProductPart{0, rows, begin, end - begin});
  });
}

/// A gradient that is a sum over rows: calls f(begin, end, update, data) with ranges of rows and a place of
/// `width` numbers for each range's share, and adds the shares to `data` in order. A range is worth a thread, and has
/// 64 operations for each number of its share, so that adding up shares takes less than 2 % of the time.
template <class T, class F>
void sum_over_row_ranges(Tape<T>& tape, Index rows, Index row_work, Index width, Update update, T* data, const F& f) {
  const Index least = std::max(parallel_grain, 64 * width);
  const Index pieces = std::clamp<Index>(rows * row_work / least, 1, std::clamp<Index>(rows, 1, 16));
  if (pieces == 1) return f(Index{0}, rows, update, data);
  const typename Tape<T>::Scratch scratch(tape, pieces * width);
  T* const shares = scratch.data();
  parallel_for(pieces, [&](Index piece) {
    f(rows * piece / pieces, rows * (piece + 1) / pieces, Update::assign, shares + piece * width);
  });
  for (Index piece = 0; piece < pieces; ++piece)
    write_all(piece == 0 ? update : Update::accumulate, width, shares + piece * width, data);
}

}  // namespace heed
