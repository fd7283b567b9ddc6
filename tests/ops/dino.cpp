// The DINO loss compared with its definition.
#include "heed/ops/dino.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(ops_dino)

// For each image, every pair of a teacher's view i and a student's view j != i adds -q_i . log p_j / divisor, and
// (p_j - q_i) / (divisor temperature) to the gradient of j. A tolerance of 1e-13 allows sums of 18 pairs in any order.
BOOST_AUTO_TEST_CASE(views_of_an_image_are_paired) {
  constexpr Index K = 5, divisor = 7;
  constexpr double temperature = 0.3, tolerance = 1e-13;
  for (const auto& [B, views] : {std::pair<Index, Index>{1, 2}, {3, 2}, {1, 5}, {2, 3}, {3, 4}}) {
    Tensor<double> logits(Shape{views * B, K}), q(Shape{B, 2, K});
    for (Index i = 0; i < logits.size(); ++i) logits[i] = std::sin(1.3 * static_cast<double>(i));
    for (Index row = 0; row < 2 * B; ++row)
      for (Index k = 0; k < K; ++k) q[row * K + k] = static_cast<double>((row + 2 * k) % 5) / 10;  // 0 to 0.4

    double expected = 0;
    std::vector<double> slow(static_cast<std::size_t>(logits.size()));
    for (Index image = 0; image < B; ++image)
      for (Index j = 0; j < views; ++j) {
        const Index row = j < 2 ? 2 * image + j : 2 * B + (views - 2) * image + j - 2;
        const double* const x = logits.data() + row * K;
        double sum = 0;
        for (Index k = 0; k < K; ++k) sum += std::exp(x[k] / temperature);
        for (Index i = 0; i < 2; ++i)
          for (Index k = 0; k < K && i != j; ++k) {
            const double target = q[(2 * image + i) * K + k], p = std::exp(x[k] / temperature) / sum;
            expected -= target * std::log(p) / divisor;
            slow[static_cast<std::size_t>(row * K + k)] += (p - target) / (divisor * temperature);
          }
      }

    const Parameters<double> none(ParameterList{});
    Gradients<double> gradients(none);
    Tape<double> tape({.gradients = &gradients, .training = true});
    const Var<double> x = tape.input(logits.view()), loss = dino_loss(x, std::as_const(q).view(), temperature, divisor);
    const double one = 1;
    tape.backward(loss, View<const double>(&one, Shape{}));
    BOOST_TEST_CONTEXT(B << " images, " << views << " views") {
      BOOST_TEST(std::abs(*loss.data() - expected) <= tolerance * expected);
      for (Index i = 0; i < logits.size(); ++i)
        BOOST_TEST(std::abs(tape.gradient(x)[i] - slow[static_cast<std::size_t>(i)]) <= tolerance, i);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
