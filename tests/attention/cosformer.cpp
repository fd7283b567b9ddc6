// cosFormer compared with hand-calculated values and its definition. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <numbers>

using namespace heed;

namespace {

constexpr double eps = 1e-6;

/// w(i, j) of the definition.
using Weight = std::function<double(Index i, Index j)>;

Weight along(Index extent) {
  return [=](Index i, Index j) {
    return std::cos(std::numbers::pi / 2 * static_cast<double>(i - j) / static_cast<double>(extent));
  };
}

Weight on_grid(Index height, Index width) {
  return [=](Index i, Index j) { return along(height)(i / width, j / width) * along(width)(i % width, j % width); };
}

MapDefinition definition(const Weight& weight) {
  return [=](const DefinitionHead& x) {
    SlowMatrix A(x.N(), x.M());
    for (Index i = 0; i < A.rows; ++i) {
      double sum = eps;
      for (Index j = 0; j < A.columns; ++j) {
        for (Index c = 0; c < x.d(); ++c) A(i, j) += std::max(x.q(i, c), 0.0) * std::max(x.k(j, c), 0.0);
        A(i, j) *= weight(i, j);
        sum += A(i, j);
      }
      for (Index j = 0; j < A.columns; ++j) A(i, j) /= sum;
    }
    return A;
  };
}

/// Returns random values away from zero, where relu has a kink.
Tensor<double> clear_of_zero(const Shape& shape, std::uint64_t seed) {
  Tensor<double> x = random_tensor(shape, seed, 2);
  for (double& value : x) value += value < 0 ? -0.0625 : 0.0625;
  return x;
}

void check(const char* reweight, Index N, Index M, const Weight& weight, const AttentionShape& place = {}) {
  check_definition("cosformer", {{"reweight", reweight}},
                   {{"q", clear_of_zero({2, 2, N, 5}, 1)},
                    {"k", clear_of_zero({2, 2, M, 5}, 2)},
                    {"v", random_tensor({2, 2, M, 3}, 3)},
                    {"dout", random_tensor({2, 2, N, 3}, 4)}},
                   definition(weight), place);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cosformer)

// q = (2, -1), k = (1, 3), v = (4, 8). Without weights A = (2, 6) / (8 + eps) for the first query; the second has no
// positive channel, which gives 0. With 1d, the weight between the two tokens is cos(pi/2 / 2) = sqrt(1/2).
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensors x{{"q", tokens(2, 1, {2, -1})}, {"k", tokens(2, 1, {1, 3})}, {"v", tokens(2, 1, {4, 8})}};
  const Tensors none = run_mechanism<double>("cosformer", {}, x);
  check_near(none.at("map"), {2 / (8 + eps), 6 / (8 + eps), 0, 0});
  check_near(none.at("out"), {56 / (8 + eps), 0});
  check_near(none.at("dv"), {2 / (8 + eps), 6 / (8 + eps)});
  const double far = 6 * std::sqrt(0.5), sum = 2 + far + eps;
  const Tensors one = run_mechanism<double>("cosformer", {{"reweight", "1d"}}, x);
  check_near(one.at("map"), {2 / sum, far / sum, 0, 0});
  check_near(one.at("out"), {(8 + 8 * far) / sum, 0});
  BOOST_TEST(one.at("dq")[1] == 0);
}

BOOST_AUTO_TEST_CASE(by_definition) {
  struct Sizes {
    Index N, M;
  };
  for (const auto& [N, M] : {Sizes{1, 1}, {50, 50}, {9, 40}, {40, 9}, {600, 300}}) {
    check("none", N, M, [](Index, Index) { return 1; });
    check("1d", N, M, along(std::max(N, M)));
  }
  for (const Index before : {1, 3})  // tokens before the grid have a position in the sequence, too
    check("1d", 12 + before, 12 + before, along(12 + before),
          {.grid_height = 3, .grid_width = 4, .class_token = before});
  check("2d", 12, 12, on_grid(3, 4), {.grid_height = 3, .grid_width = 4});
  check("2d", 7, 7, on_grid(1, 7), {.grid_height = 1, .grid_width = 7});
}

BOOST_AUTO_TEST_CASE(features_for_one_weight_two_or_four) {
  const AttentionShape shape{
      .heads = 3, .queries = 64, .keys = 64, .width = 16, .value_width = 8, .grid_height = 8, .grid_width = 8};
  for (const auto& [reweight, times] : {std::pair{"none", 1}, {"1d", 2}, {"2d", 4}}) {
    const Cost cost = make_mechanism("cosformer", {{"reweight", reweight}})->cost(shape);
    BOOST_TEST(cost.forward_contractions.mul == 3 * times * (2 * 64 * 16 * 8 + 64 * 16));
    BOOST_TEST(cost.forward_contractions.add == 3 * times * (2 * 64 * 16 * 8 + 2 * 64 * 16));
    BOOST_TEST(cost.attention_exp == 0);
  }
}

BOOST_AUTO_TEST_CASE(bad_options) {
  const OptionValues two{{"reweight", "2d"}};
  BOOST_TEST(
      refusal("cosformer", two, {.queries = 5, .keys = 5, .grid_height = 2, .grid_width = 2, .class_token = true}) ==
      "[cosformer] reweight is 2d; a class token or register has no position on the image grid: expected none or 1d");
  BOOST_TEST(refusal("cosformer", two, {.queries = 4, .keys = 4}) ==
             "[cosformer] reweight is 2d; 4 queries and 4 keys do not form an image grid of 0 x 0");
  BOOST_TEST(refusal("cosformer", two, {.queries = 4, .keys = 5, .grid_height = 2, .grid_width = 2}) ==
             "[cosformer] reweight is 2d; 4 queries and 5 keys do not form an image grid of 2 x 2");
  BOOST_TEST(refusal("cosformer", two, {.queries = 4, .keys = 4, .grid_height = 2, .grid_width = 2}) == "");
  BOOST_TEST(refusal("cosformer", two, {.queries = 4, .keys = 4, .longest = 4}) ==
             "[cosformer] reweight is 2d; a sequence has no image grid: expected none or 1d");
  BOOST_TEST(refusal("cosformer", {{"reweight", "3d"}}).starts_with("[cosformer] reweight is '3d'"));
}

BOOST_AUTO_TEST_SUITE_END()
