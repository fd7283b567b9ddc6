#include "heed/kernels/gaussian.h"

#ifndef HEED_REFERENCE

#include "pair_sums.h"
#include "sums_over_rows.h"

namespace heed::kernels {

using namespace simd;

namespace {

struct AddSquaredDifference {
  Vector operator()(Vector sum, Broadcast a, Vector b) const {
    const Vector difference = subtract(b, a);
    return hn::MulAdd(difference, difference, sum);
  }
};

}  // namespace

void squared_distances(Index m, Index n, Index d, const float* x, Index x_stride, const float* y, Index y_stride,
                       float* out, Index out_stride) {
  sum_pairs<AddSquaredDifference>(operand(Transpose::no, m, d, x, x_stride), operand(Transpose::yes, d, n, y, y_stride),
                                  Update::assign, Matrix<float>(out, m, n, out_stride));
}

void gaussian_backward(Index m, Index n, Index d, const float* x, Index x_stride, const float* y, Index y_stride,
                       double scale, const float* g, const float* dg, Index g_stride, Update update_x, float* dx,
                       Index dx_stride, Update update_y, float* dy, Index dy_stride) {
  const float factor = static_cast<float>(2 * scale);
  // From x_i to y_j, times a weight that is positive where the pair is to move together.
  const auto add_term = [](Vector sum, float weight, Vector to, Vector from, Index) {
    return hn::MulAdd(set(weight), hn::Sub(to, from), sum);
  };
  // Made beforehand, since every channel asks for a weight again, on either side.
  thread_local Buffer<float> memory;
  if (memory.size() < m * n) memory = Buffer<float>(m * n);
  float* const weights = memory.data();
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) weights[i * n + j] = factor * (g[i * g_stride + j] * dg[i * g_stride + j]);
  if (dx)
    sum_over_rows(
        m, n, d, x, x_stride, y, y_stride, [=](Index i, Index j) { return weights[i * n + j]; }, update_x, dx,
        dx_stride, add_term);
  if (dy)
    sum_over_rows(
        n, m, d, y, y_stride, x, x_stride, [=](Index j, Index i) { return weights[i * n + j]; }, update_y, dy,
        dy_stride, add_term);
}

}  // namespace heed::kernels

#endif
