// The loss of rows processed in several blocks is the sum of the losses of single rows. tests/checks/cases.cpp checks
// gradients of one block.
#include "heed/ops/sequences.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

namespace {

struct LossAndGradient {
  double loss;
  std::vector<double> gradient;
};

LossAndGradient loss_of(const Tensor<double>& logits, const std::vector<int>& labels, Index divisor) {
  const Parameters<double> none(ParameterList{});
  Gradients<double> gradients(none);
  Tape<double> tape({.gradients = &gradients, .training = true});
  const Var<double> x = tape.input(logits.view()), loss = label_cross_entropy(x, labels.data(), divisor);
  const double one = 1;
  tape.backward(loss, View<const double>(&one, Shape{}));
  const View<const double> dx = tape.gradient(x);
  return {*loss.data(), {dx.data(), dx.data() + dx.size()}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(label_losses)

// A block has at most 8192 logits, but at least one row: two rows of 3000 classes, or one row of 10000. Of five rows,
// the last block has one. The order of rows is the same in both computations; a tolerance of 1e-14 allows dividing the
// sum or its terms by 7.
BOOST_AUTO_TEST_CASE(rows_in_several_blocks) {
  const std::vector<int> labels{2999, 7, -1, 0, 1500};
  for (const Index classes : {3000, 10000}) {
    Tensor<double> logits(Shape{5, classes});
    for (Index i = 0; i < logits.size(); ++i) logits[i] = 5 * std::sin(1.7 * static_cast<double>(i));
    const LossAndGradient all = loss_of(logits, labels, 7);
    double sum = 0;
    for (Index r = 0; r < 5; ++r) {
      Tensor<double> row(Shape{1, classes});
      std::copy_n(logits.data() + r * classes, classes, row.data());
      const LossAndGradient alone = loss_of(row, {labels[static_cast<std::size_t>(r)]}, 7);
      sum += alone.loss;
      const auto from = all.gradient.begin() + r * classes;
      BOOST_TEST(std::equal(alone.gradient.begin(), alone.gradient.end(), from), "row " << r << " of " << classes);
    }
    BOOST_TEST(std::abs(all.loss - sum) <= 1e-14 * std::abs(sum), all.loss << " and " << sum);
  }
}

BOOST_AUTO_TEST_SUITE_END()
