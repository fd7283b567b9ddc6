// Sums over the rows of one matrix, for each element of another.
#pragma once

#include "heed/base/matrix.h"
#include "heed/kernels/shared/simd.h"

namespace heed::kernels::simd {

/// Computes out[r,i] (+)= sum over t of a term of weights[r,t], w[t,i] and x[r,i]; add_term(sum, weight, w, x, n) adds
/// a term, where r is the n-th row of its block. One vector of each of a few rows of the result stays in registers
/// while t runs over all rows of w.
template <class AddTerm>
void sum_over_rows(Matrix<const float> x, Matrix<const float> w, Operand<float> weights, Update update,
                   Matrix<float> out, const AddTerm& add_term) {
  const Index down = weights.down(), across = weights.across();
  const auto some_rows = [=]<Index R>(std::integral_constant<Index, R>, Index first) {
    // Not inlined, so that the loop over t can use all registers.
    for_each_vector(x.columns, [=](Index i, auto use) HWY_NOINLINE {
      Vector xs[R], sums[R];
#pragma GCC unroll 8
      for (Index r = 0; r < R; ++r) xs[r] = use.load(x[first + r] + i), sums[r] = hn::Zero(tag);
      const float *from = w.data + i, *weight = weights.data + first * down;
      for (Index t = w.rows; t > 0; --t, from += w.stride, weight += across) {
        const Vector wt = use.load(from);
#pragma GCC unroll 8
        for (Index r = 0; r < R; ++r) sums[r] = add_term(sums[r], Broadcast(weight + r * down), wt, xs[r], r);
      }
#pragma GCC unroll 8
      for (Index r = 0; r < R; ++r) write(update, use, sums[r], out[first + r] + i);
    });
  };
  constexpr Index most = registers == 32 ? 8 : 5;
  Index r = 0;
  for (; r + most <= x.rows; r += most) some_rows(std::integral_constant<Index, most>{}, r);
  for (; r + 4 <= x.rows; r += 4) some_rows(std::integral_constant<Index, 4>{}, r);
  for (; r < x.rows; ++r) some_rows(std::integral_constant<Index, 1>{}, r);
}

}  // namespace heed::kernels::simd
