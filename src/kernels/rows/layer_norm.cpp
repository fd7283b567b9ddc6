// A row of a small transformer fits the L1 cache, so passes over it after the first are cheap. The forward pass of a
// row is a chain: its sum, its sum of squares, a root and a division. Processing four rows at a time hides the latency.
#include "heed/kernels/rows/layer_norm.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

#include <array>

namespace heed::kernels {

using namespace simd;

namespace {

constexpr Index group = 4;

/// Calls f(first row, number of rows as a constant) for groups of rows, then for single rows.
template <class F>
void for_row_groups(Index rows, const F& f) {
  Index r = 0;
  for (; r + group <= rows; r += group) f(r, std::integral_constant<Index, group>{});
  for (; r < rows; ++r) f(r, std::integral_constant<Index, 1>{});
}

/// Calls f(r) for r < count, unrolled.
template <class F>
void each(Index count, const F& f) {
#pragma GCC unroll 4
  for (Index r = 0; r < count; ++r) f(r);
}

/// Returns xn for a vector of x.
Vector normalize(Vector x, Vector mean, Vector scale) { return hn::Mul(hn::Sub(x, mean), scale); }

}  // namespace

void layer_norm_forward(const RowNorm<float>& norm, Matrix<const float> x, Matrix<const float> residual,
                        Matrix<float> y, Matrix<float> statistics) {
  const Index n = x.columns;
  const float share = 1.0f / static_cast<float>(n);
  for_row_groups(x.rows, [=](Index first, auto count) {
    std::array<Vector, count> means, scales;
    std::array<RowSum, count> sums, squares;
    for_each_part(n, [&](auto part, Index i, auto use) {
      each(count, [&](Index r) { sums[r][part] = hn::Add(sums[r][part], use.load(x[first + r] + i)); });
    });
    each(count, [&](Index r) { means[r] = set(statistics(first + r, 0) = sums[r].total() * share); });

    for_each_part(n, [&](auto part, Index i, auto use) {
      each(count, [&](Index r) {
        const Vector centred = use.otherwise(hn::Sub(use.load(x[first + r] + i), means[r]), hn::Zero(tag));
        squares[r][part] = hn::MulAdd(centred, centred, squares[r][part]);
      });
    });
    each(count, [&](Index r) {
      const float variance = squares[r].total() * share;
      scales[r] = set(statistics(first + r, 1) = 1.0f / std::sqrt(variance + static_cast<float>(norm.eps)));
    });

    for_each_vector(n, [&](Index i, auto use) {
      const Vector gamma_i = use.load(norm.gamma + i), beta_i = use.load(norm.beta + i);
      each(count, [&](Index r) {
        const Vector normalized = normalize(use.load(x[first + r] + i), means[r], scales[r]);
        const Vector normed = hn::MulAdd(normalized, gamma_i, beta_i);
        use.store(residual ? hn::Add(normed, use.load(residual[first + r] + i)) : normed, y[first + r] + i);
      });
    });
  });
}

void layer_norm_again(const RowNorm<float>& norm, Matrix<const float> x, Matrix<const float> statistics,
                      Matrix<float> y) {
  for_row_groups(x.rows, [=](Index first, auto count) {
    std::array<Vector, count> means, scales;
    each(count, [&](Index r) { means[r] = set(statistics(first + r, 0)), scales[r] = set(statistics(first + r, 1)); });
    for_each_vector(x.columns, [&](Index i, auto use) {
      const Vector gamma_i = use.load(norm.gamma + i), beta_i = use.load(norm.beta + i);
      each(count, [&](Index r) {
        const Vector normalized = normalize(use.load(x[first + r] + i), means[r], scales[r]);
        use.store(hn::MulAdd(normalized, gamma_i, beta_i), y[first + r] + i);
      });
    });
  });
}

void layer_norm_backward(const float* gamma, Matrix<const float> x, Matrix<const float> statistics,
                         Matrix<const float> dy, Update update, Matrix<float> dx) {
  const float share = 1.0f / static_cast<float>(x.columns);
  for (Index r = 0; r < x.rows; ++r) {
    const float *const x_row = x[r], *const dy_row = dy[r];
    float* const dx_row = dx[r];
    const Vector mean = set(statistics(r, 0)), scale = set(statistics(r, 1));
    RowSum g_sum, product_sum;
    for_each_part(x.columns, [&](auto part, Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy_row + i));  // zero beyond the row
      g_sum[part] = hn::Add(g_sum[part], g);
      product_sum[part] = hn::MulAdd(g, normalize(use.load(x_row + i), mean, scale), product_sum[part]);
    });
    const Vector mean_g = set(g_sum.total() * share), mean_product = set(product_sum.total() * share);
    for_each_vector(x.columns, [&](Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy_row + i));
      const Vector normalized = normalize(use.load(x_row + i), mean, scale);
      const Vector change = hn::NegMulAdd(normalized, mean_product, hn::Sub(g, mean_g));
      write(update, use, hn::Mul(scale, change), dx_row + i);
    });
  }
}

void layer_norm_parameter_gradients(Matrix<const float> x, Matrix<const float> statistics, Matrix<const float> dy,
                                    Update update, Matrix<float> sums) {
  for_each_block<2>(x.columns, [=](Index i, auto vectors, auto use) {
    Vector gamma[vectors], beta[vectors];
    for (int v = 0; v < vectors; ++v) gamma[v] = beta[v] = hn::Zero(tag);
    for (Index r = 0; r < x.rows; ++r) {
      const float *const x_row = x[r] + i, *const dy_row = dy[r] + i;
      const Vector mean = set(statistics(r, 0)), scale = set(statistics(r, 1));
      for (int v = 0; v < vectors; ++v) {
        const Vector dy_v = use.load(dy_row + v * lanes);
        gamma[v] = hn::MulAdd(dy_v, normalize(use.load(x_row + v * lanes), mean, scale), gamma[v]);
        beta[v] = hn::Add(beta[v], dy_v);
      }
    }
    for (int v = 0; v < vectors; ++v) {
      write(update, use, gamma[v], sums[0] + i + v * lanes);
      write(update, use, beta[v], sums[1] + i + v * lanes);
    }
  });
}

}  // namespace heed::kernels

#endif
