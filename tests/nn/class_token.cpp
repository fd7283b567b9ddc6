// If the head reads the class token only, the last block drops the other tokens after its attention.
#include "heed/nn/vit.h"
#include "heed/ops/cross_entropy.h"
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

struct PassResult {
  std::vector<double> logits, gradients;
};

/// Runs a training pass over two images. A pass with a trace computes all tokens, since costs count them.
PassResult pass_over(const Experiment& x, bool all_tokens) {
  const VisionTransformer model(x.model, x.attention);
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  Gradients<double> gradients(parameters);
  gradients.reset();
  std::vector<TraceEntry> trace;
  Tape<double> tape({.parameters = &parameters,
                     .gradients = &gradients,
                     .training = true,
                     .observers = {.trace = all_tokens ? &trace : nullptr}});
  Tensor<double> images(Shape{2, 1, 8, 8}), targets(Shape{2, 10});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(2).normal(i);
  targets[3] = targets[10 + 7] = 1;
  const auto logits = model.logits<double>(tape, {images.view()});
  tape.backward(cross_entropy(logits, std::as_const(targets).view(), 0.0, 2));
  gradients.complete();
  return {{logits.data(), logits.data() + logits.size()}, {gradients.data(), gradients.data() + gradients.size()}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_class_token)

// The shorter sums over tokens lack only zero terms, so results differ by the rounding of values of order one.
BOOST_AUTO_TEST_CASE(logits_and_gradients_are_those_of_all_tokens) {
  Experiment x = Workshop(10, 10).experiment();
  for (const std::string linear : {"mul", "adder"})
    for (const bool gate : {false, true}) {
      x.model.linear = {linear};
      x.model.gate = gate;
      const PassResult needed = pass_over(x, false), all = pass_over(x, true);
      const auto check = [&](const std::vector<double>& a, const std::vector<double>& b, const char* what) {
        double worst = 0;
        for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
        BOOST_TEST(worst < 1e-13, what << " with linear = " << linear << ", gate = " << gate);
      };
      check(needed.logits, all.logits, "logits");
      check(needed.gradients, all.gradients, "gradients");
    }
}

BOOST_AUTO_TEST_SUITE_END()
