#include "heed/analysis/rollout.h"

#include "heed/base/error.h"
#include "heed/kernels/products/gemm.h"

#include <cmath>

namespace heed {

namespace {

/// Returns a layer's mean map over heads, plus the identity, with normalised rows: B in rollout.h, [1, N, N].
Tensor<float> with_residual(View<const float> maps) {
  const Index heads = maps.shape()[0], N = maps.shape()[1];
  Tensor<float> mixed(Shape{1, N, N});
  for (Index i = 0; i < N; ++i) {
    float* const row = mixed.data() + i * N;
    for (Index h = 0; h < heads; ++h)
      for (Index j = 0; j < N; ++j) row[j] += maps[(h * N + i) * N + j] / static_cast<float>(heads);
    row[i] += 1;
    float magnitudes = 0;
    for (Index j = 0; j < N; ++j) magnitudes += std::abs(row[j]);
    for (Index j = 0; j < N && magnitudes > 0; ++j) row[j] /= magnitudes;
  }
  return mixed;
}

}  // namespace

void AttentionRollout::add(View<const float> maps) {
  const Index N = maps.shape()[1], M = maps.shape()[2], before = product_.size() > 0 ? product_.shape()[1] : N;
  require(N == M && N == before,
          "[rollout] an attention map is {} x {}; expected {} x {}, since the maps of all blocks are multiplied", N, M,
          before, before);
  for (const float weight : maps)
    require(std::isfinite(weight), "[rollout] an attention map contains {}; expected finite numbers", weight);
  Tensor<float> mixed = with_residual(maps);
  if (product_.size() > 0) {
    const auto matrix = [N](Tensor<float>& t) { return Matrix<float>(t.data(), N, N); };
    Tensor<float> next(Shape{1, N, N});
    kernels::gemm(matrix(mixed), matrix(product_), matrix(next));
    mixed = std::move(next);
  }
  product_ = std::move(mixed);
}

}  // namespace heed
