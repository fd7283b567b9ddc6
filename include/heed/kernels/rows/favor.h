// Positive random features of FAVOR+ (Choromanski et al., "Rethinking Attention with Performers", 2021,
// arXiv:2009.14794v4, Lemma 1), for each row x:
//
//   feature_j(x) = exp(u_j - h - c),   u = omega x',  h = |x'|^2 / 2,  x' = scale x
//
// U [rows, m] holds omega x, which the kernels multiply by `scale`. c keeps the exponent from overflowing: it is the
// largest u_j of a set of rows. h is stored separately from U: u_j and h are both large for large x, so the exponent is
// computed as (u_j - c) - h.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// The largest element of each row, and the index of its first occurrence: [rows] each.
template <class T>
struct RowMaxima {
  T *maximum, *index;
};

inline namespace reference {

/// Finds the maxima of the rows of scale U. U must not contain NaN.
template <class T>
void favor_maxima(double scale, MatrixFor<T> U, const RowMaxima<T>& maxima) {
  for (Index r = 0; r < U.rows; ++r) {
    T maximum = T(scale) * U(r, 0);
    Index index = 0;
    for (Index j = 1; j < U.columns; ++j) {
      const T u = T(scale) * U(r, j);
      if (u > maximum) maximum = u, index = j;
    }
    maxima.maximum[r] = maximum;
    maxima.index[r] = T(static_cast<double>(index));
  }
}

/// Replaces U[r,j] by exp((scale U[r,j] - c[r]) - h[r]) + added, and writes the sum of row r of U to sums[r]. c, h and
/// sums [rows]; sums may be nullptr. Fast float: relative error of the exp at most 3e-7 + 2.4e-7 (|scale U| + |c| + h),
/// plus 1.2e-7 for the addition.
template <class T>
void favor_features(double scale, const T* c, const T* h, double added, Matrix<T> U, T* sums) {
  for (Index r = 0; r < U.rows; ++r) {
    for (Index j = 0; j < U.columns; ++j) U(r, j) = exp((T(scale) * U(r, j) - c[r]) - h[r]) + T(added);
    if (!sums) continue;
    sums[r] = U(r, 0);
    for (Index j = 1; j < U.columns; ++j) sums[r] += U(r, j);
  }
}

/// Replaces dF, the gradient of features F = e + added, by du = e dF, the gradient of scale U, and writes the sum of
/// row r of du to sums[r], the gradient of -h and of -c. Fast float: error at most eps relative to |F + added| |dF|;
/// for a sum, (m + 2) eps relative to the sum of |F + added| |dF|.
template <class T>
void favor_features_backward(double added, MatrixFor<T> F, Matrix<T> dF, T* sums) {
  for (Index r = 0; r < dF.rows; ++r) {
    for (Index j = 0; j < dF.columns; ++j) {
      dF(r, j) = (F(r, j) - T(added)) * dF(r, j);
      write(term_update(j), sums[r], dF(r, j));
    }
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void favor_maxima(double scale, Matrix<const float> U, const RowMaxima<float>& maxima);
void favor_features(double scale, const float* c, const float* h, double added, Matrix<float> U, float* sums);
void favor_features_backward(double added, Matrix<const float> F, Matrix<float> dF, float* sums);
#endif

/// Returns the counts for `rows` rows of m features.
inline Counts favor_maxima_counts(Index rows, Index m) { return rows * Counts{.mul = m, .cmp = m - 1}; }
/// Returns the counts, excluding the row sums, which take m - 1 more additions per row.
inline Counts favor_features_counts(Index rows, Index m) { return rows * m * Counts{.mul = 1, .add = 3, .exp = 1}; }
/// Returns the counts for `rows` rows of m features.
inline Counts favor_features_backward_counts(Index rows, Index m) { return rows * Counts{.mul = m, .add = 2 * m - 1}; }

}  // namespace heed::kernels
