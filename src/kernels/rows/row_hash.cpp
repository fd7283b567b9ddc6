#include "heed/kernels/rows/row_hash.h"

#ifndef HEED_NO_SIMD

#include "first_equal.h"

namespace heed::kernels {

using namespace simd;

void hash_rows(Matrix<const float> U, float* buckets) {
  const Vector lowest = set(-HUGE_VALF);
  for (Index r = 0; r < U.rows; ++r) {
    const float* const row = U[r];
    Vector largest = lowest, opposite = lowest;  // maxima of U_r and of -U_r
    for_each_vector(U.columns, [&](Index j, auto use) {
      const Vector u = use.load(row + j);
      largest = hn::Max(largest, use.otherwise(u, lowest));
      opposite = hn::Max(opposite, use.otherwise(hn::Neg(u), lowest));
    });
    const float above = maximum(largest), below = maximum(opposite);
    const bool negative = below > above;
    const Index index = first_equal(U.columns, row, set(1.0f), negative ? -below : above);
    buckets[r] = static_cast<float>(negative ? U.columns + index : index);
  }
}

}  // namespace heed::kernels

#endif
