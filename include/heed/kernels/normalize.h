// Channels divided by their norm over the tokens.
#pragma once

#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace heed {

/// The norm of a channel over its tokens: sum of magnitudes, or root of the sum of squares.
enum class ChannelNorm { l1, l2 };

namespace kernels {

/// What a norm is at least taken to be, so that a channel of zeros stays one.
inline constexpr double least_norm = 1e-12;

namespace detail {

/// Sums over tokens run in double where numbers are float: the square of 2e19 is no float, and a sum of 4096 terms
/// loses no digits.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// Channels whose sums are kept at once, on the stack: four cache lines of a row of float.
inline constexpr Index channels_at_once = 64;

}  // namespace detail

/// y[r,c] = x[r,c] / max(norm_c, 1e-12), norm_c the norm of column c of x; norms [columns] keeps norm_c itself.
///
/// x [rows, columns], its rows `ldx` apart; y [rows, columns] without gaps, which may be x where ldx = columns.
/// rows >= 1. Finite for finite x, in float up to norms of 3e38. Relative error at most 2 eps in float, rows eps in
/// double. Counts per column: l1 `rows` cmp (magnitudes) or l2 `rows` mul and 1 sqrt; rows - 1 add, 1 cmp, rows div.
template <class T>
void normalize_channels(ChannelNorm norm, Index rows, Index columns, const T* x, Index ldx, T* y, T* norms) {
  using std::abs, std::sqrt;
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, columns - first);
    Sum sums[detail::channels_at_once];
    T divisors[detail::channels_at_once];
    for (Index r = 0; r < rows; ++r) {
      const T* const row = x + r * ldx + first;
      const Update update = r == 0 ? Update::assign : Update::accumulate;
      if (norm == ChannelNorm::l1)
        for (Index c = 0; c < width; ++c) write(update, sums[c], Sum(abs(row[c])));
      else
        for (Index c = 0; c < width; ++c) write(update, sums[c], Sum(row[c]) * Sum(row[c]));
    }
    for (Index c = 0; c < width; ++c) {
      norms[first + c] = T(norm == ChannelNorm::l1 ? sums[c] : sqrt(sums[c]));
      divisors[c] = norms[first + c] < T(least_norm) ? T(least_norm) : norms[first + c];
    }
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < width; ++c) y[r * columns + first + c] = x[r * ldx + first + c] / divisors[c];
  }
}

/// With y = x / n and n the norm of x (a column), dn/dx is sign(x) for l1, with sign(0) = 0, and y for l2, so
///
///   dx = dy / n - (dn/dx) <x, dy> / n^2 = (dy - (dn/dx) <y, dy>) / n.
///
/// Where the norm is below 1e-12 the divisor is a constant: dx (+)= dy / 1e-12.
/// x, y, norms as above; dy [rows, columns] without gaps; dx [rows, columns], its rows `lddx` apart, overlaps nothing.
/// Counts per column: rows mul, rows - 1 add, 1 cmp; rows add and rows div, and l1 2 rows cmp or l2 rows mul. One add
/// more per element to accumulate.
template <class T>
void normalize_channels_backward(ChannelNorm norm, Index rows, Index columns, const T* x, Index ldx, const T* y,
                                 const T* norms, const T* dy, Update update, T* dx, Index lddx) {
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, columns - first);
    Sum sums[detail::channels_at_once];
    T dots[detail::channels_at_once], divisors[detail::channels_at_once];
    for (Index r = 0; r < rows; ++r) {
      const Update row_update = r == 0 ? Update::assign : Update::accumulate;
      for (Index c = 0; c < width; ++c) {
        const Index i = r * columns + first + c;
        write(row_update, sums[c], Sum(y[i]) * Sum(dy[i]));
      }
    }
    for (Index c = 0; c < width; ++c) {
      const bool clamped = norms[first + c] < T(least_norm);
      dots[c] = clamped ? T(0) : T(sums[c]);
      divisors[c] = clamped ? T(least_norm) : norms[first + c];
    }
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < width; ++c) {
        const Index i = r * columns + first + c;
        T along(0);
        if (norm == ChannelNorm::l1) {
          const T value = x[r * ldx + first + c];
          const bool above = value > T(0), below = value < T(0);
          along = above ? dots[c] : below ? -dots[c] : T(0);
        } else {
          along = y[i] * dots[c];
        }
        write(update, dx[r * lddx + first + c], (dy[i] - along) / divisors[c]);
      }
  }
}

}  // namespace kernels
}  // namespace heed
