// head_norm compared with layer_norm of each head's queries and keys, and silu for large inputs. tests/checks/cases.cpp
// checks gradients and costs.
#include "heed/kernels/elements/activation.h"
#include "heed/ops/activation.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/layer_norm.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(head_norms)

// Two heads of q with 3 channels; two heads of k and v with 5 and 4 channels, or one that both heads of q share.
BOOST_AUTO_TEST_CASE(each_head_is_normalised_by_itself) {
  for (const AttentionLayout& layout : {AttentionLayout{2, 3, 5, 4}, AttentionLayout{2, 3, 5, 4, 1}}) {
    const Index rows = 3, n = layout.total(), v_first = 6 + 5 * layout.key_heads;
    Tensor<double> x(Shape{rows, n}), q_gamma(Shape{3}), q_beta(Shape{3}), k_gamma(Shape{5}), k_beta(Shape{5});
    Index seed = 0;
    for (Tensor<double>* tensor : {&x, &q_gamma, &q_beta, &k_gamma, &k_beta})
      for (double& value : *tensor) value = std::sin(1.7 * static_cast<double>(++seed));
    Tape<double> tape;
    const auto constant = [&](const Tensor<double>& tensor) { return tape.constant(tensor.view()); };
    const auto y =
        head_norm(constant(x), layout, {constant(q_gamma), constant(q_beta)}, {constant(k_gamma), constant(k_beta)});
    const auto check_part = [&](Index first, Index width, const Tensor<double>& gamma, const Tensor<double>& beta) {
      for (Index r = 0; r < rows; ++r) {
        const auto alone =
            layer_norm(tape.constant({x.data() + r * n + first, Shape{1, width}}), constant(gamma), constant(beta));
        for (Index i = 0; i < width; ++i) BOOST_TEST(y.data()[r * n + first + i] == alone.data()[i]);
      }
    };
    for (const Index first : {0, 3}) check_part(first, 3, q_gamma, q_beta);
    for (Index first = 6; first < v_first; first += 5) check_part(first, 5, k_gamma, k_beta);
    for (Index r = 0; r < rows; ++r)
      for (Index i = v_first; i < n; ++i) BOOST_TEST(y.data()[r * n + i] == x[r * n + i]);
  }
}

BOOST_AUTO_TEST_CASE(silu_far_out) {
  const std::vector<float> x{-1e4f, -100, -1, 0, 1, 100, 1e4f}, ones(7, 1.0f);
  std::vector<float> y(7), dx(7);
  kernels::logistic_forward<kernels::Silu>(7, x.data(), y.data());
  kernels::logistic_backward<kernels::Silu>(7, x.data(), ones.data(), Update::assign, dx.data());
  const std::vector<double> expected{0, 0, -0.2689414214, 0, 0.7310585786, 100, 1e4};
  const std::vector<double> slope{0, 0, 0.0723294881, 0.5, 0.9276705119, 1, 1};
  for (std::size_t i = 0; i < 7; ++i) {
    BOOST_TEST(std::abs(static_cast<double>(y[i]) - expected[i]) <= 1e-6 * std::max(1.0, expected[i]));
    BOOST_TEST(std::abs(static_cast<double>(dx[i]) - slope[i]) <= 1e-6);
  }
}

BOOST_AUTO_TEST_SUITE_END()
