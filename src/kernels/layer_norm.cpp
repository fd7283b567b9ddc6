// A row of a small transformer fits the first-level cache, so each pass over it after the first is cheap.
#include "heed/kernels/layer_norm.h"

#ifndef HEED_REFERENCE

#include "simd.h"

namespace heed::kernels {

using namespace simd;

void layer_norm_forward(Index rows, Index n, const float* x, const float* gamma, const float* beta, double eps,
                        float* y, float* mean, float* scale) {
  const float share = 1.0f / static_cast<float>(n);
  for (Index r = 0; r < rows; ++r, x += n, y += n) {
    Vector total = hn::Zero(tag);
    for_each_vector(n, [&](Index i, auto use) { total = hn::Add(total, use.load(x + i)); });
    mean[r] = sum(total) * share;

    const Vector row_mean = set(mean[r]);
    Vector squares = hn::Zero(tag);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector centred = use.otherwise(hn::Sub(use.load(x + i), row_mean), hn::Zero(tag));
      squares = hn::MulAdd(centred, centred, squares);
    });
    scale[r] = 1.0f / std::sqrt(sum(squares) * share + static_cast<float>(eps));

    const Vector row_scale = set(scale[r]);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector normalized = hn::Mul(hn::Sub(use.load(x + i), row_mean), row_scale);
      use.store(hn::MulAdd(normalized, use.load(gamma + i), use.load(beta + i)), y + i);
    });
  }
}

void layer_norm_backward(Index rows, Index n, const float* x, const float* gamma, const float* mean, const float* scale,
                         const float* dy, Update update, float* dx) {
  const float share = 1.0f / static_cast<float>(n);
  for (Index r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
    const Vector row_mean = set(mean[r]), row_scale = set(scale[r]);
    const auto normalized = [&](auto use, Index i) { return hn::Mul(hn::Sub(use.load(x + i), row_mean), row_scale); };
    Vector g_sum = hn::Zero(tag), product_sum = hn::Zero(tag);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy + i));  // zero beyond the row
      g_sum = hn::Add(g_sum, g);
      product_sum = hn::MulAdd(g, normalized(use, i), product_sum);
    });
    const Vector mean_g = set(sum(g_sum) * share), mean_product = set(sum(product_sum) * share);
    for_each_vector(n, [&](Index i, auto use) {
      const Vector g = hn::Mul(use.load(gamma + i), use.load(dy + i));
      const Vector change = hn::NegMulAdd(normalized(use, i), mean_product, hn::Sub(g, mean_g));
      write(update, use, hn::Mul(row_scale, change), dx + i);
    });
  }
}

void layer_norm_parameter_gradients(Index rows, Index n, const float* x, const float* mean, const float* scale,
                                    const float* dy, Update update, float* dgamma, float* dbeta) {
  // Two vectors of columns at a time, each with both sums in registers over all rows.
  const auto columns = [=](Index i, auto use, auto next) {
    Vector gamma_0 = hn::Zero(tag), gamma_1 = gamma_0, beta_0 = gamma_0, beta_1 = gamma_0;
    for (Index r = 0; r < rows; ++r) {
      const Index at = r * n + i;
      const Vector row_mean = set(mean[r]), row_scale = set(scale[r]);
      const Vector dy_0 = use.load(dy + at), dy_1 = next.load(dy + at + lanes);
      gamma_0 = hn::MulAdd(dy_0, hn::Mul(hn::Sub(use.load(x + at), row_mean), row_scale), gamma_0);
      gamma_1 = hn::MulAdd(dy_1, hn::Mul(hn::Sub(next.load(x + at + lanes), row_mean), row_scale), gamma_1);
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
