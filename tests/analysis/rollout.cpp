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

// Heads ((1, 0), (0, 1)) and ((0, 1), (1, 0)) have the mean 1/2 everywhere: B = ((3, 1), (1, 3)) / 4. A layer whose
// second token copies the first, ((1, 0), (1, 0)), has B = ((1, 0), (1/2, 1/2)).
BOOST_AUTO_TEST_CASE(by_hand) {
  AttentionRollout rollout;
  rollout.add(Tensor<float>(Shape{2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0}).view());
  check_product(rollout, {0.75, 0.25, 0.25, 0.75});
  rollout.add(Tensor<float>(Shape{1, 2, 2}, {1, 0, 1, 0}).view());
  check_product(rollout, {0.75, 0.25, 0.5, 0.5});
}

// Rows are divided by the sum of magnitudes, for (-3, 1) + (1, 0) 3; a zero row is not divided.
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
  BOOST_TEST(error(Tensor<float>(Shape{1, 1, 1}, {std::numeric_limits<float>::infinity()})) != "");
}

BOOST_AUTO_TEST_SUITE_END()
