// Division of each channel by its norm over the tokens.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace heed {

/// The norm of a channel over its tokens: the sum of absolute values, or the root of the sum of squares.
enum class ChannelNorm { l1, l2 };

namespace kernels {

/// Lower bound on the divisor, so that a channel of zeros stays zero.
inline constexpr double least_norm = 1e-12;

namespace detail {

/// The type of sums over tokens: double if the elements are float, since the square of 2e19 overflows a float. A sum of
/// 4096 terms in double loses no digit of a float.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// Channels per block, whose sums are on the stack: four cache lines of a float row.
inline constexpr Index channels_at_once = 64;

}  // namespace detail

/// Computes y[r,c] = x[r,c] / max(norm_c, least), with the norm norm_c of column c of x, and writes norm_c to norms
/// [columns].
///
/// x and y [rows, columns], rows >= 1. y may be x. Relative error: at most 2 eps in float, rows eps in double; if the
/// norm of finite x overflows (l2 in double: its square), y is 0.
template <class T>
void normalize_channels(ChannelNorm norm, MatrixFor<T> x, Matrix<T> y, std::type_identity_t<T>* norms,
                        double least = least_norm) {
  using std::abs, std::sqrt;
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < x.columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, x.columns - first);
    Sum sums[detail::channels_at_once];
    T divisors[detail::channels_at_once];
    for (Index r = 0; r < x.rows; ++r) {
      const T* const row = x[r] + first;
      const Update update = term_update(r);
      if (norm == ChannelNorm::l1)
        for (Index c = 0; c < width; ++c) write(update, sums[c], Sum(abs(row[c])));
      else
        for (Index c = 0; c < width; ++c) write(update, sums[c], Sum(row[c]) * Sum(row[c]));
    }
    for (Index c = 0; c < width; ++c) {
      norms[first + c] = T(norm == ChannelNorm::l1 ? sums[c] : sqrt(sums[c]));
      divisors[c] = norms[first + c] < T(least) ? T(least) : norms[first + c];
    }
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c) y(r, first + c) = x(r, first + c) / divisors[c];
  }
}

/// Returns the counts. Per column: absolute values (l1), or squares and a root (l2); their sum; the comparison with
/// `least`; the quotients.
inline Counts normalize_channels_counts(ChannelNorm norm, Index rows, Index columns) {
  const Counts of_norm = norm == ChannelNorm::l1 ? Counts{.cmp = rows} : Counts{.mul = rows, .sqrt = 1};
  return columns * (of_norm + sum_counts(rows) + Counts{.div = rows, .cmp = 1});
}

/// Operand and results of normalize_channels().
template <class T>
struct NormalizedChannels {
  Matrix<const T> x, y;
  const T* norms;
};

/// Computes the gradient of normalize_channels(). With y = x / n and n the norm of a column x, dn/dx is sign(x) for l1,
/// with sign(0) = 0, and y for l2, so
///
///   dx (+)= dy / n - (dn/dx) <x, dy> / n^2 = (dy - (dn/dx) <y, dy>) / n.
///
/// If the norm is below `least`, the divisor is a constant: dx (+)= dy / least. dx must not overlap anything.
template <class T>
void normalize_channels_backward(ChannelNorm norm, const NormalizedChannels<std::type_identity_t<T>>& of,
                                 MatrixFor<T> dy, Update update, Matrix<T> dx, double least = least_norm) {
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < dx.columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, dx.columns - first);
    Sum sums[detail::channels_at_once];
    T dots[detail::channels_at_once], divisors[detail::channels_at_once];
    for (Index r = 0; r < dx.rows; ++r) {
      const T *const y = of.y[r] + first, *const dy_row = dy[r] + first;
      for (Index c = 0; c < width; ++c) write(term_update(r), sums[c], Sum(y[c]) * Sum(dy_row[c]));
    }
    for (Index c = 0; c < width; ++c) {
      const bool clamped = of.norms[first + c] < T(least);
      dots[c] = clamped ? T(0) : T(sums[c]);
      divisors[c] = clamped ? T(least) : of.norms[first + c];
    }
    for (Index r = 0; r < dx.rows; ++r) {
      const T *const x = of.x[r] + first, *const y = of.y[r] + first, *const dy_row = dy[r] + first;
      T* const dx_row = dx[r] + first;
      for (Index c = 0; c < width; ++c) {
        T along(0);
        if (norm == ChannelNorm::l1) {
          const bool above = x[c] > T(0), below = x[c] < T(0);
          along = above ? dots[c] : below ? -dots[c] : T(0);
        } else {
          along = y[c] * dots[c];
        }
        write(update, dx_row[c], (dy_row[c] - along) / divisors[c]);
      }
    }
  }
}

/// Returns the counts for Update::assign. Per column: <y, dy> and the comparison with `least`; per element, two
/// comparisons for the sign or a product, then a difference and a quotient.
inline Counts normalize_channels_backward_counts(ChannelNorm norm, Index rows, Index columns) {
  const Counts along = norm == ChannelNorm::l1 ? Counts{.cmp = 2} : Counts{.mul = 1};
  return columns * (product_counts(1, 1, rows) + Counts{.cmp = 1} + rows * (along + Counts{.add = 1, .div = 1}));
}

}  // namespace kernels
}  // namespace heed
