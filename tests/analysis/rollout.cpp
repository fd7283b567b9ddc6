// Product of attention maps of several layers, calculated by hand.
#include "heed/analysis/rollout.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace heed;

namespace {

void check_product(const AttentionRollout& rollout, const std::vector<double>& expected) {
  const Tensor<float>& product = rollout.product();
  BOOST_REQUIRE(product.size() == static_cast<Index>(expected.size()));
  for (Index i = 0; i < product.size(); ++i)
    BOOST_TEST(std::abs(static_cast<double>(product[i]) - expected[static_cast<std::size_t>(i)]) < 1e-6);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rollout)

// A layer's matrix B is its mean map plus the identity, with rows divided by their sums.
// Heads ((1, 0), (0, 1)) and ((0, 1), (1, 0)) have the mean 1/2 everywhere: B = ((3, 1), (1, 3)) / 4.
// A layer whose second token copies the first, ((1, 0), (1, 0)), has B = ((1, 0), (1/2, 1/2)).
BOOST_AUTO_TEST_CASE(by_hand) {
  AttentionRollout rollout;
  rollout.add(Tensor<float>(Shape{2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0}).view());
  check_product(rollout, {0.75, 0.25, 0.25, 0.75});
  rollout.add(Tensor<float>(Shape{1, 2, 2}, {1, 0, 1, 0}).view());
  check_product(rollout, {0.75, 0.25, 0.5, 0.5});
}

// Three layers of two heads, compared with numpy and with a sum over all paths through the layers, whose edges are B's
// elements:
//   w = ((7 * i + 3 * j + 5 * h + 11 * l) % 10 + 1); A += w / w.sum(1, keepdims=True) / 2      for h in (0, 1)
//   B = A + np.eye(3); B /= B.sum(1, keepdims=True); R = B @ R                                 for l in (0, 1, 2)
BOOST_AUTO_TEST_CASE(by_numpy_and_by_paths) {
  constexpr Index N = 3, heads = 2, layers = 3;
  AttentionRollout rollout;
  double B[layers][N][N] = {};
  for (Index l = 0; l < layers; ++l) {
    Tensor<float> maps(Shape{heads, N, N});
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < N; ++i) {
        double sum = 0;
        const auto w = [=](Index j) { return static_cast<double>((7 * i + 3 * j + 5 * h + 11 * l) % 10 + 1); };
        for (Index j = 0; j < N; ++j) sum += w(j);
        for (Index j = 0; j < N; ++j) {
          maps[(h * N + i) * N + j] = static_cast<float>(w(j) / sum);
          B[l][i][j] += w(j) / sum / heads / 2 + (i == j ? 0.5 / heads : 0);
        }
      }
    rollout.add(maps.view());
  }
  std::vector<double> paths(N * N);
  for (Index i = 0; i < N; ++i)
    for (Index a = 0; a < N; ++a)
      for (Index b = 0; b < N; ++b)
        for (Index j = 0; j < N; ++j)
          paths[static_cast<std::size_t>(i * N + j)] += B[2][i][a] * B[1][a][b] * B[0][b][j];
  check_product(rollout, paths);
  check_product(rollout, {0.3981592645, 0.3037944777, 0.2980462578, 0.3157296507, 0.3958761206, 0.2883942287,
                          0.2860624134, 0.3137697553, 0.4001678313});
}

// Rows are divided by their sums of magnitudes: 3 for (-3, 1) + (1, 0). A zero row is not divided.
BOOST_AUTO_TEST_CASE(negative_weights) {
  AttentionRollout rollout;
  rollout.add(Tensor<float>(Shape{1, 2, 2}, {-3, 1, 0, -1}).view());
  check_product(rollout, {-2.0 / 3, 1.0 / 3, 0, 0});
}

BOOST_AUTO_TEST_CASE(maps_that_cannot_be_multiplied) {
  AttentionRollout rollout;
  const auto error = [&](const Tensor<float>& maps) { return error_of([&] { rollout.add(maps.view()); }); };
  BOOST_TEST(error(Tensor<float>(Shape{2, 3, 4})).find("is 3 x 4; expected 3 x 3") != std::string::npos);
  rollout.add(Tensor<float>(Shape{1, 3, 3}).view());
  BOOST_TEST(error(Tensor<float>(Shape{1, 2, 2})).find("is 2 x 2; expected 3 x 3") != std::string::npos);
  const float infinity = std::numeric_limits<float>::infinity();
  BOOST_TEST(error(Tensor<float>(Shape{1, 3, 3}, {0, 0, 0, 0, 0, 0, 0, 0, infinity})) ==
             "[rollout] an attention map contains inf; expected finite numbers");
}

BOOST_AUTO_TEST_SUITE_END()
