// A row of a small transformer fits the first-level cache, so each pass over it after the first is cheap. The forward
// pass waits for a row's sum, then its sum of squares, a root and a division: there rows go four at a time.
#include "heed/kernels/layer_norm.h"

#ifndef HEED_REFERENCE

#include "heed/kernels/simd.h"

#include <array>

namespace heed::kernels {

using namespace simd;

namespace {

constexpr Index group = 4;

/// Calls f(first row, how many, as a constant) for groups of rows, then for single ones.
template <class F>
void for_row_groups(Index rows, const F& f) {
  Index r = 0;
  for (; r + group <= rows; r += group) f(r, std::integral_constant<Index, group>{});
  for (; r < rows; ++r) f(r, std::integral_constant<Index, 1>{});
}

template <class F>
void each(Index count, const F& f) {
#pragma GCC unroll 4
  for (Index r = 0; r < count; ++r) f(r);
}

/// xn of a vector of x.
Vector normalize(Vector x, Vector mean, Vector scale) { return hn::Mul(hn::Sub(x, mean), scale); }

}  // namespace

void layer_norm_forward(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* beta,
                        double eps, const float* residual, float* y, float* mean, float* scale) {
  const float share = 1.0f / static_cast<float>(n);
  for_row_groups(rows, [=](Index first, auto count) {
    const float* const px = x + first * stride;
    float* const py = y + first * stride;
    std::array<Vector, count> sums, means, scales;
    sums.fill(hn::Zero(tag));
    for_each_vector(n, [&](Index i, auto use) {
      each(count, [&](Index r) { sums[r] = hn::Add(sums[r], use.load(px + r * stride + i)); });
    });
    each(count, [&](Index r) { means[r] = set(mean[first + r] = sum(sums[r]) * share); });

    sums.fill(hn::Zero(tag));
    for_each_vector(n, [&](Index i, auto use) {
      each(count, [&](Index r) {
        const Vector centred = use.otherwise(hn::Sub(use.load(px + r * stride + i), means[r]), hn::Zero(tag));
        sums[r] = hn::MulAdd(centred, centred, sums[r]);
      });
    });
    each(count, [&](Index r) {
      scales[r] = set(scale[first + r] = 1.0f / std::sqrt(sum(sums[r]) * share + static_cast<float>(eps)));
    });

    for_each_vector(n, [&](Index i, auto use) {
      const Vector gamma_i = use.load(gamma + i), beta_i = use.load(beta + i);
      each(count, [&](Index r) {
        const Vector normalized = normalize(use.load(px + r * stride + i), means[r], scales[r]);
        const Vector normed = hn::MulAdd(normalized, gamma_i, beta_i);
        use.store(residual ? hn::Add(normed, use.load(residual + (first + r) * stride + i)) : normed,
                  py + r * stride + i);
      });
    });
  });
}

void layer_norm_again(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* beta,
                      const float* mean, const float* scale, float* y) {
  for_row_groups(rows, [=](Index first, auto count) {
    std::array<Vector, count> means, scales;
    each(count, [&](Index r) { means[r] = set(mean[first + r]), scales[r] = set(scale[first + r]); });
    for_each_vector(n, [&](Index i, auto use) {
      const Vector gamma_i = use.load(gamma + i), beta_i = use.load(beta + i);
      each(count, [&](Index r) {
        const Index at = (first + r) * stride + i;
        use.store(hn::MulAdd(normalize(use.load(x + at), means[r], scales[r]), gamma_i, beta_i), y + at);
      });
    });
  });
}

void layer_norm_backward(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* mean,
                         const float* scale, const float* dy, Update update, float* dx) {
  const float share = 1.0f / static_cast<float>(n);
  for (Index r = 0; r < rows; ++r, x += stride, dy += stride, dx += stride) {
    const Vector row_mean = set(mean[r]), row_scale = set(scale[r]);
    Vector g_sum = hn::Zero(tag), product_sum = hn::Zero(tag);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy + i));  // zero beyond the row
      g_sum = hn::Add(g_sum, g);
      product_sum = hn::MulAdd(g, normalize(use.load(x + i), row_mean, row_scale), product_sum);
    });
    const Vector mean_g = set(sum(g_sum) * share), mean_product = set(sum(product_sum) * share);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy + i));
      const Vector normalized = normalize(use.load(x + i), row_mean, row_scale);
      const Vector change = hn::NegMulAdd(normalized, mean_product, hn::Sub(g, mean_g));
      write(update, use, hn::Mul(row_scale, change), dx + i);
    });
  }
}

void layer_norm_parameter_gradients(Index rows, Index n, Index stride, const float* x, const float* mean,
                                    const float* scale, const float* dy, Update update, float* dgamma, float* dbeta) {
  // Two vectors of columns at a time, each with both sums in registers over all rows.
  const auto columns = [=](Index i, auto use, auto next) {
    Vector gamma_0 = hn::Zero(tag), gamma_1 = gamma_0, beta_0 = gamma_0, beta_1 = gamma_0;
    for (Index r = 0; r < rows; ++r) {
      const Index at = r * stride + i;
      const Vector row_mean = set(mean[r]), row_scale = set(scale[r]);
      const Vector dy_0 = use.load(dy + at), dy_1 = next.load(dy + at + lanes);
      gamma_0 = hn::MulAdd(dy_0, normalize(use.load(x + at), row_mean, row_scale), gamma_0);
      gamma_1 = hn::MulAdd(dy_1, normalize(next.load(x + at + lanes), row_mean, row_scale), gamma_1);
      beta_0 = hn::Add(beta_0, dy_0);
      beta_1 = hn::Add(beta_1, dy_1);
    }
    write(update, use, gamma_0, dgamma + i);
    write(update, use, beta_0, dbeta + i);
    write(update, next, gamma_1, dgamma + i + lanes);
    write(update, next, beta_1, dbeta + i + lanes);
  };
  Index i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) columns(i, AllLanes{}, AllLanes{});
  for_each_vector(n - i, [&](Index j, auto use) { columns(i + j, use, FirstLanes(0)); });
}

}  // namespace heed::kernels

#endif
