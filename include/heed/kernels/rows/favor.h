// Positive random features of FAVOR+ (Choromanski et al., "Rethinking Attention with Performers", 2021,
// arXiv:2009.14794v4, Lemma 1), row by row:
//
//   feature_j(x) = exp(u_j - h - c),   u = omega x',  h = |x'|^2 / 2,  x' = scale x
//
// U [rows, m] holds omega x, to be multiplied by `scale`; c is what keeps the exponent from growing: the largest u_j of
// some rows. h is kept apart from U, for both are large where x is.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// The largest element of each row, and the place of the first that is as large: [rows] each.
template <class T>
struct RowMaxima {
  T *maximum, *place;
};

namespace reference {

/// Of scale U, which holds no NaN.
template <class T>
void favor_maxima(double scale, MatrixFor<T> U, const RowMaxima<T>& maxima) {
  for (Index r = 0; r < U.rows; ++r) {
    T maximum = T(scale) * U(r, 0);
    Index place = 0;
    for (Index j = 1; j < U.columns; ++j) {
      const T u = T(scale) * U(r, j);
      if (u > maximum) maximum = u, place = j;
    }
    maxima.maximum[r] = maximum;
    maxima.place[r] = T(static_cast<double>(place));
  }
}

/// In place, U[r,j] = exp((scale U[r,j] - c[r]) - h[r]) + added; sums[r], of row r of it, may be left out. c, h and
/// sums [rows]. Fast float: relative error at most 3e-7 + 2.4e-7 (|scale U| + |c| + h) of the exponential, and 1.2e-7
/// of the sum.
template <class T>
void favor_features(double scale, const T* c, const T* h, double added, Matrix<T> U, T* sums) {
  for (Index r = 0; r < U.rows; ++r) {
    for (Index j = 0; j < U.columns; ++j) U(r, j) = exp((T(scale) * U(r, j) - c[r]) - h[r]) + T(added);
    if (!sums) continue;
    sums[r] = U(r, 0);
    for (Index j = 1; j < U.columns; ++j) sums[r] += U(r, j);
  }
}

/// In place, from dF, the gradient of features F = e + added: du = e dF, the gradient of scale U, and sums[r], the sum
/// of row r of it, which is what -h and -c get. Fast float: relative to |F + added| |dF| the error is at most eps, of a
/// sum to that of these (m + 2) eps.
template <class T>
void favor_features_backward(double added, MatrixFor<T> F, Matrix<T> dF, T* sums) {
  for (Index r = 0; r < dF.rows; ++r) {
    for (Index j = 0; j < dF.columns; ++j) {
      dF(r, j) = (F(r, j) - T(added)) * dF(r, j);
      write(j == 0 ? Update::assign : Update::accumulate, sums[r], dF(r, j));
    }
  }
}

}  // namespace reference

using reference::favor_features, reference::favor_features_backward, reference::favor_maxima;
#ifndef HEED_NO_SIMD
void favor_maxima(double scale, Matrix<const float> U, const RowMaxima<float>& maxima);
void favor_features(double scale, const float* c, const float* h, double added, Matrix<float> U, float* sums);
void favor_features_backward(double added, Matrix<const float> F, Matrix<float> dF, float* sums);
#endif

inline Counts favor_maxima_counts(Index rows, Index m) { return rows * Counts{.mul = m, .cmp = m - 1}; }
/// Sums take m - 1 additions more for each row.
inline Counts favor_features_counts(Index rows, Index m) { return rows * m * Counts{.mul = 1, .add = 3, .exp = 1}; }
inline Counts favor_features_backward_counts(Index rows, Index m) { return rows * Counts{.mul = m, .add = 2 * m - 1}; }

}  // namespace heed::kernels
