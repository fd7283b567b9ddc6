#include "heed/kernels/distances/gaussian.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/products/pair_sums.h"
#include "sums_over_rows.h"

namespace heed::kernels {

using namespace simd;

namespace {

struct AddSquaredDifference {
  static constexpr int registers = 1;

  Vector operator()(Vector sum, Broadcast a, Vector b) const {
    const Vector difference = subtract(b, a);
    return hn::MulAdd(difference, difference, sum);
  }
};

}  // namespace

void squared_distances(Matrix<const float> x, Matrix<const float> y, Matrix<float> out) {
  sum_pairs<AddSquaredDifference>(x, transposed(y), Update::assign, out);
}

void gaussian_backward(const GaussianMatrix<float>& of, Matrix<const float> dG, Update update_x, Matrix<float> dx,
                       Update update_y, Matrix<float> dy) {
  const Index m = dG.rows, n = dG.columns;
  const float factor = static_cast<float>(2 * of.scale);
  // Adds weight (to - from). The weights are 2 scale G dG, without the minus sign of w in the reference kernel, since
  // the difference is reversed.
  const auto add_term = [](Vector sum, Broadcast weight, Vector to, Vector from, Index) {
    return multiply_add(hn::Sub(to, from), weight, sum);
  };
  // The weights are computed once, for all channels of x and of y.
  thread_local Buffer<float> memory;
  if (memory.size() < m * n) memory = Buffer<float>(m * n);
  const Matrix<float> weights(memory.data(), m, n);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) weights(i, j) = factor * (of.G(i, j) * dG(i, j));
  sum_over_rows(of.x, of.y, weights, update_x, dx, add_term);
  if (dy) sum_over_rows(of.y, of.x, transposed(weights), update_y, dy, add_term);
}

}  // namespace heed::kernels

#endif
