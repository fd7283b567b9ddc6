// Search for the first non-finite value among lanes in lockstep, one of which computes a penalty.
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/linear.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/step.h"
#include "support/processes.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

namespace {

/// Vectors of two elements, normalised over the batch: logits = W2 W1 batch_norm(W0 x), and a penalty with many
/// operations. Unless `normed`, the norm is left out.
class Steep : public ModelBase<Steep> {
 public:
  explicit Steep(bool normed = true) : normed_(normed) {
    for (const char* name : {"w0", "w1", "w2"})
      weights_.push_back(list_.add({.name = name, .shape = {2, 2}, .initial = Initial::constant(0)}));
    for (const char* name : {"gamma", "beta"})
      channels_.push_back(list_.add({.name = name, .shape = {2}, .initial = Initial::constant(0)}));
    for (const char* name : {"mean", "variance"})
      channels_.push_back(list_.add(
          {.name = name, .shape = {2}, .initial = Initial::constant(1), .trainable = false, .running = true}));
    penalised_ = list_.add({.name = "penalised", .shape = {1}, .initial = Initial::constant(1)});
  }

  ModelInput<float> example() const override { return {.images = {nullptr, Shape{1, 2}}}; }
  Shape outputs() const override { return Shape{2}; }
  double most_operations() const override { return 1e3; }
  bool examples_depend(Index) const override { return normed_; }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const {
    Tape<T>& tape = pass.tape;
    const Var<T> x = linear(tape.constant(pass.examples.images), tape.parameter(weights_[0]));
    const Var<T> xn = normed_ ? batch_norm(x, tape.parameter(channels_[0]), tape.parameter(channels_[1]),
                                           tape.buffer(channels_[2]), tape.buffer(channels_[3]))
                              : x;
    return linear(linear(xn, tape.parameter(weights_[1])), tape.parameter(weights_[2]));
  }

  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const {
    Var<T> penalty = tape.parameter(penalised_);
    for (int i = 0; i < 5; ++i) penalty = add(penalty, penalty);
    return tape.record(
        {"scalar", {}}, Shape{}, {penalty}, [=](T* y) { *y = *penalty.data(); },
        [=](const Adjoint<T>& dy) { dy.add_to(penalty); });
  }

 private:
  bool normed_;
  std::vector<ParameterId> weights_, channels_;
  ParameterId penalised_;
};

/// Returns weights of 1e-200 in w0, and of 1e100 in w1 and w2.
Parameters<double> steep_weights(const Steep& model) {
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  const double scales[] = {1e-200, 1e100, 1e100};
  for (ParameterId w = 0; w < 3; ++w) parameters[w][0] = parameters[w][3] = scales[w];
  for (const Index c : {0, 1}) parameters[model.parameters().find("gamma")][c] = 1;
  return parameters;
}

/// Four images with elements of order 1e200; x = W0 image is of order 1. The gradient with respect to x is of order
/// 1e200 for the first image and, with the norm, for all images; its product with the image overflows.
struct LargeImages {
  Tensor<double> images{Shape{4, 2}, {1e200, -1e200, 2e200, -2e200, -1e200, 1e200, -2e200, 2e200}};
  Tensor<double> targets{Shape{4, 2}, {0, 1, 1, 0, 0, 1, 0, 1}};
  std::vector<int> labels{1, 0, 1, 1};

  ClassificationBatch<double> batch() const {
    return ClassificationBatch<double>({images.view()}, targets.view(), labels.data());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_first_non_finite)

// In the backward pass, the first example's gradient overflows before it reaches the norm; those of the other examples
// overflow only after the norm has summed over the batch. The first lane computes the penalty, but these additional
// operations do not delay it.
BOOST_AUTO_TEST_CASE(a_penalty_delays_no_lane) {
  const Steep model;
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  const double scales[] = {1, 1e300, 1e20};
  for (ParameterId w = 0; w < 3; ++w) parameters[w][0] = parameters[w][3] = scales[w];
  for (const Index c : {0, 1}) parameters[model.parameters().find("gamma")][c] = 1e-300;
  // All images are predicted correctly with certainty, except the first.
  const Tensor<double> images(Shape{4, 2}, {1, -1, 2, -2, -1, 1, -2, 2}),
      targets(Shape{4, 2}, {0, 1, 1, 0, 0, 1, 0, 1});
  const std::vector<int> labels{1, 0, 1, 1};
  BatchGradient<double> gradient(model, parameters, 4, {.microbatch = 1});
  const ClassificationBatch<double> batch({images.view()}, targets.view(), labels.data());
  BOOST_TEST(std::isfinite(gradient.run(batch, RandomStream(1)).loss));
  BOOST_TEST(gradient.first_non_finite() == "the gradient with respect to the result of batch_norm");
}

BOOST_AUTO_TEST_CASE(the_gradient_of_a_weight_may_be_the_first) {
  for (const bool normed : {true, false}) {
    const Steep model(normed);
    Parameters<double> parameters = steep_weights(model);
    const LargeImages images;
    const ClassificationBatch<double> batch = images.batch();
    BatchGradient<double> gradient(model, parameters, 4, {.microbatch = 1});
    BOOST_TEST(std::isfinite(gradient.run(batch, RandomStream(1)).loss));
    BOOST_TEST(gradient.first_non_finite() == "the gradient with respect to w0", normed);
    parameters[1][1] = parameters[2][1] = NAN;
    gradient.run(batch, RandomStream(1));
    BOOST_TEST(gradient.first_non_finite() == "the tensor w1", normed);
  }
}

// The gradient of w0 overflows for the first image, and the last image is infinite. If lanes run in order, the first
// image is reported, even if each lane has its own process; in lockstep, the last image fails earlier.
BOOST_AUTO_TEST_CASE(processes_agree_on_the_order) {
  for (const bool normed : {true, false}) {
    const auto where = [&](Ranks& ranks) {
      const Steep model(normed);
      Parameters<double> parameters = steep_weights(model);
      LargeImages images;
      images.images[6] = INFINITY;
      const ClassificationBatch<double> batch = images.batch();
      BatchGradient<double> gradient(model, parameters, 4, {.microbatch = 1}, ranks);
      gradient.run(batch, RandomStream(1));
      return gradient.first_non_finite();
    };
    const std::string expected = normed ? "the result of linear" : "the gradient with respect to w0";
    BOOST_TEST(where(one_process()) == expected);
    std::vector<std::string> found(4);
    heed::test::in_processes(4, [&](Ranks& ranks) { found[static_cast<std::size_t>(ranks.rank())] = where(ranks); });
    for (const std::string& text : found) BOOST_TEST(text == expected);
  }
}

// A non-finite penalty is found.
BOOST_AUTO_TEST_CASE(nor_is_it_overlooked) {
  const Steep model;
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  parameters[model.parameters().find("penalised")][0] = 1e308;
  const Tensor<double> images(Shape{4, 2}), targets(Shape{4, 2});
  const std::vector<int> labels(4);
  BatchGradient<double> gradient(model, parameters, 4, {.microbatch = 1});
  const ClassificationBatch<double> batch({images.view()}, targets.view(), labels.data());
  gradient.run(batch, RandomStream(1));
  BOOST_TEST(gradient.first_non_finite() == "the result of add");
}

BOOST_AUTO_TEST_SUITE_END()
