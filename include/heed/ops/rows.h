// Division of rows into ranges for threads. For sums over rows the division depends only on shapes.
#pragma once

#include "heed/base/parallel.h"
#include "heed/tape/tape.h"

namespace heed {

/// Minimum work, in elementary operations, of a partial sum, of a part of a product, or of a head computed separately;
/// about ten microseconds. The bits of results depend on it.
inline constexpr Index parallel_grain = Index{1} << 18;

/// Minimum work of a range of rows: about three microseconds, several times the cost of passing it to another thread.
inline constexpr Index row_grain = Index{1} << 16;

/// Returns the number of rows of `width` elements that a fused operation processes at a time: the largest multiple of
/// 24, in whole product tiles of 4, 6 or 8 rows (src/kernels/products/pair_sums.h), whose floats fit in a quarter of a
/// 1 MB L2 cache; at least 24.
constexpr Index rows_in_cache(Index width) {
  constexpr Index elements = Index{1} << 16, tiles = 24;
  return std::max(tiles, elements / std::max<Index>(width, 1) / tiles * tiles);
}

/// Returns uninitialised memory of the calling thread, valid until the thread's next call. It must not be used across
/// WholeBatch::sum(), during which other lanes run on this thread.
template <class T>
T* thread_memory(Index count) {
  // glibc allocates memory to register a thread-local destructor, and terminates the program on failure. A larger
  // allocation beforehand throws std::bad_alloc instead.
  thread_local const bool can_register = (::operator delete(::operator new(4096)), true);
  static_cast<void>(can_register);
  thread_local Buffer<T> buffer;
  if (buffer.size() < count) buffer = Buffer<T>(count);
  return buffer.data();
}

/// Calls f(begin, end) for ranges of rows; a row takes about `row_work` elementary operations.
template <class F>
void for_row_ranges(Index rows, Index row_work, const F& f) {
  parallel_ranges(rows, row_grain / std::max<Index>(row_work, 1), f);
}

/// Calls f(begin, end) for ranges of rows of a product. An element of a float product does not depend on its range. In
/// double, BLAS results may, so the ranges for double depend only on shapes.
template <class T, class F>
void for_product_ranges(Index rows, Index row_work, const F& f) {
  if constexpr (std::is_same_v<T, float>) return for_row_ranges(rows, row_work, f);
  const Index ranges = std::clamp<Index>(rows * row_work / parallel_grain, 1, std::clamp<Index>(rows, 1, 64));
  parallel_for(ranges, [&](Index range) { f(rows * range / ranges, rows * (range + 1) / ranges); });
}

/// A block of a product: a range of rows of its first operand and result, and a range of columns of its second operand
/// and result.
struct ProductPart {
  Index row, rows, column, columns;

  /// Returns the block's rows of the first operand.
  template <class T>
  Matrix<T> rows_of(Matrix<T> m) const {
    return m.middle_rows(row, rows);
  }
  /// Returns the block of the result, or of a matrix of the same shape.
  template <class T>
  Matrix<T> of(Matrix<T> m) const {
    return rows_of(m).middle_columns(column, columns);
  }
};

/// Calls f(part) for blocks of a product [rows, columns] of `terms` multiply-adds per element. Float products with
/// fewer rows than columns are divided by columns, so that threads read different parts of the second operand.
template <class T, class F>
void for_product_parts(Index rows, Index columns, Index terms, const F& f) {
  if (rows >= columns || !std::is_same_v<T, float>)
    return for_product_ranges<T>(rows, columns * terms / 8, [&](Index begin, Index end) {
      f(ProductPart{begin, end - begin, 0, columns});
    });
  // Parts begin at multiples of a cache line, 64 bytes.
  constexpr Index strip = 16;
  // Minimum multiply-adds per thread. With fewer than four rows, reading the weights takes longer than the arithmetic:
  // a second thread pays off for half of 2^17 weights, but not for half of 2^16. (Measured for token-by-token decoding
  // with models of width 96 to 256, on two cores of Zen 5.)
  constexpr Index few = 4, slower = 4;
  const Index least = rows < few ? parallel_grain / slower : parallel_grain;
  const Index strips = (columns + strip - 1) / strip;
  const Index parts =
      std::clamp<Index>(rows * columns * terms / least, 1, std::min<Index>(detail::alone() ? 1 : threads(), strips));
  parallel_for(parts, [&](Index part) {
    const Index begin = strips * part / parts * strip, end = std::min(columns, strips * (part + 1) / parts * strip);
    f(ProductPart{0, rows, begin, end - begin});
  });
}

/// Computes a gradient that is a sum over rows. Each call f(begin, end, update, data) computes the partial sum of a
/// range of rows, `width` elements; the partial sums are added to `data` in order. A range has enough work for a
/// thread, and at least 64 operations per element of its sum, so that the additions take less than 2 % of the time.
template <class T, class F>
void sum_over_row_ranges(Tape<T>& tape, Index rows, Index row_work, Index width, Update update, T* data, const F& f) {
  const Index least = std::max(parallel_grain, 64 * width);
  const Index ranges = std::clamp<Index>(rows * row_work / least, 1, std::clamp<Index>(rows, 1, 16));
  if (ranges == 1) return f(Index{0}, rows, update, data);
  const typename Tape<T>::Scratch scratch(tape, ranges * width);
  T* const sums = scratch.data();
  parallel_for(ranges, [&](Index range) {
    f(rows * range / ranges, rows * (range + 1) / ranges, Update::assign, sums + range * width);
  });
  for (Index range = 0; range < ranges; ++range)
    write_all(term_update(range, update), width, sums + range * width, data);
}

}  // namespace heed
