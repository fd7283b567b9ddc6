#include "heed/kernels/rows/favor.h"

#ifndef HEED_NO_SIMD

#include "first_equal.h"

namespace heed::kernels {

using namespace simd;

void favor_maxima(double scale, Matrix<const float> U, const RowMaxima<float>& maxima) {
  const Vector factor = set(static_cast<float>(scale)), lowest = set(-HUGE_VALF);
  for (Index r = 0; r < U.rows; ++r) {
    const float* const row = U[r];
    Vector largest = lowest;
    for_each_vector(U.columns, [&](Index j, auto use) {
      largest = hn::Max(largest, use.otherwise(hn::Mul(factor, use.load(row + j)), lowest));
    });
    const float maximum = simd::maximum(largest);
    maxima.maximum[r] = maximum;
    maxima.index[r] = static_cast<float>(first_equal(U.columns, row, factor, maximum));
  }
}

void favor_features(double scale, const float* c, const float* h, double added, Matrix<float> U, float* sums) {
  const Exp exp;
  const Vector factor = constant(static_cast<float>(scale)), more = constant(static_cast<float>(added));
  for (Index r = 0; r < U.rows; ++r) {
    float* const row = U[r];
    const Vector largest = set(c[r]), half = set(h[r]);
    RowSum sum;
    for_each_part(U.columns, [&](auto part, Index j, auto use) {
      const Vector u = hn::Mul(factor, use.load(row + j));
      const Vector feature = hn::Add(exp.below_88(hn::Sub(hn::Sub(u, largest), half)), more);
      use.store(feature, row + j);
      sum[part] = hn::Add(sum[part], use.otherwise(feature, hn::Zero(tag)));
    });
    if (sums) sums[r] = sum.total();
  }
}

void favor_features_backward(double added, Matrix<const float> F, Matrix<float> dF, float* sums) {
  const Vector more = set(static_cast<float>(added));
  for (Index r = 0; r < dF.rows; ++r) {
    const float* const features = F[r];
    float* const row = dF[r];
    RowSum sum;
    for_each_part(dF.columns, [&](auto part, Index j, auto use) {
      const Vector du = hn::Mul(hn::Sub(use.load(features + j), more), use.load(row + j));
      use.store(du, row + j);
      sum[part] = hn::Add(sum[part], use.otherwise(du, hn::Zero(tag)));
    });
    sums[r] = sum.total();
  }
}

}  // namespace heed::kernels

#endif
