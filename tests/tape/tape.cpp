// The tape: accumulation, depth, misuse, parameters, and effects of training and evaluation mode.
#include "heed/tape/tape.h"

#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/dropout.h"
#include "heed/ops/linear.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

using namespace heed;

namespace {

using D = Var<double>;

Tensor<double> numbers(Shape shape, std::uint64_t seed = 1) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(seed).uniform(i, -1, 1);
  return tensor;
}

/// Returns a parameter list of a weight [2, 3], an unused one [4], and a buffer [2].
ParameterList small_list() {
  ParameterList list;
  list.add({"weight", {2, 3}, Initial::normal(1)});
  list.add({"unused", {4}, Initial::constant(1)});
  list.add({"buffer", {2}, Initial::constant(7), false, false});
  return list;
}

template <class Values>
bool equal(const Values& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

const std::string stale = "[tape] the variable belongs to a tape that was cleared or destroyed";

}  // namespace

BOOST_AUTO_TEST_SUITE(tape)

// y = x x + 3 x + x: dy/dx = 2 x + 4, exact in these numbers.
BOOST_AUTO_TEST_CASE(gradients_of_several_uses_add_up) {
  const Tensor<double> values(Shape{3}, {0.5, -2, 4});
  const Tensor<double> cotangent(Shape{3}, {1, 10, -1});
  Tape<double> tape;
  const D x = tape.input(values.view());
  tape.backward(add(add(mul(x, x), scale(x, 3)), x), cotangent.view());
  BOOST_TEST(equal(tape.gradient(x), {5, 0, -12}));
}

// add() passes the memory of its gradient to its last operand; each operand still gets a separate gradient.
BOOST_AUTO_TEST_CASE(operands_of_a_sum_do_not_share_their_gradient) {
  const Tensor<double> values(Shape{2}, {1, 2}), cotangent(Shape{2}, {1, 1});
  Tape<double> tape;
  const D a = tape.input(values.view()), b = tape.input(values.view());
  const D twice = add(a, a);
  tape.backward(add(add(twice, b), scale(a, 5)), cotangent.view());
  BOOST_TEST(equal(tape.gradient(a), {7, 7}));
  BOOST_TEST(equal(tape.gradient(b), {1, 1}));
}

// A chain that would overflow the stack if run recursively: y = x + x + ... + x, exact in double.
BOOST_AUTO_TEST_CASE(a_graph_of_a_hundred_thousand_nodes) {
  const Tensor<double> value(Shape{}, {3.0});
  Tape<double> tape;
  for (int pass = 0; pass < 2; ++pass) {
    tape.clear();
    const D x = tape.input(value.view());
    D y = x;
    for (int i = 0; i < 100'000; ++i) y = add(y, x);
    tape.backward(y);
    BOOST_TEST(*y.data() == 300'003.0);
    BOOST_TEST(tape.gradient(x)[0] == 100'001.0);
  }
}

BOOST_AUTO_TEST_CASE(inputs_that_nothing_depends_on_have_zero_gradients) {
  const Tensor<double> values = numbers({2, 3}), one(Shape{}, {1.0});
  Tape<double> tape;
  const D unused = tape.input(values.view()), aside = tape.input(values.view()), x = tape.input(one.view());
  scale(aside, 2);  // recorded, but the loss does not depend on it
  tape.backward(scale(x, 2));
  BOOST_TEST(equal(tape.gradient(unused), std::vector<double>(6, 0)));
  BOOST_TEST(equal(tape.gradient(aside), std::vector<double>(6, 0)));
  BOOST_TEST(tape.gradient(x)[0] == 2);
}

BOOST_AUTO_TEST_CASE(a_variable_does_not_outlive_its_pass) {
  const Tensor<double> value(Shape{}, {1.0});
  std::optional<Tape<double>> tape(std::in_place);
  const D x = tape->input(value.view());
  tape->clear();
  const D fresh = tape->input(value.view());
  BOOST_TEST(error_of([&] { x.data(); }) == stale);
  BOOST_TEST(error_of([&] { scale(x, 2); }) == stale);
  BOOST_TEST(error_of([&] { add(fresh, x); }) == stale);
  BOOST_TEST(error_of([&] { tape->backward(x); }) == stale);
  BOOST_TEST(error_of([&] { tape->gradient(x); }) == stale);
  tape.reset();
  BOOST_TEST(error_of([&] { fresh.shape(); }) == stale);
  tape.emplace();  // another tape, perhaps at the same address
  BOOST_TEST(error_of([&] { fresh.shape(); }) == stale);
  BOOST_TEST(error_of([&] { add(tape->input(value.view()), fresh); }) == stale);
  BOOST_TEST(error_of([] { D().shape(); }) == "[tape] the variable has no value; assign one first");
}

BOOST_AUTO_TEST_CASE(one_backward_per_pass) {
  const Tensor<double> value(Shape{}, {1.0});
  Tape<double> tape;
  const D x = tape.input(value.view()), y = scale(x, 2);
  BOOST_TEST(error_of([&] { tape.gradient(x); }) == "[tape] the gradient is read before backward; run backward first");
  tape.backward(y);
  BOOST_TEST(error_of([&] { tape.backward(y); }) ==
             "[tape] backward has already run; clear the tape and run the forward pass again");
  const std::string recording = "[tape] backward has already run; clear the tape before recording another pass";
  BOOST_TEST(error_of([&] { scale(x, 3); }) == recording);
  BOOST_TEST(error_of([&] { tape.input(value.view()); }) == recording);
  BOOST_TEST(error_of([&] { tape.constant(value.view()); }) == recording);
  BOOST_TEST(tape.gradient(x)[0] == 2);
}

BOOST_AUTO_TEST_CASE(tapes_do_not_mix) {
  const Tensor<double> value(Shape{}, {1.0});
  Tape<double> a, b;
  const D x = a.input(value.view()), y = b.input(value.view());
  BOOST_TEST(error_of([&] { add(x, y); }) == "[add] the operands belong to different tapes");
  BOOST_TEST(error_of([&] { a.backward(y); }) == "[tape] backward: the variable belongs to another tape");
  a.backward(x);
  BOOST_TEST(error_of([&] { a.gradient(y); }) == "[tape] gradients exist for inputs of this tape only");
}

BOOST_AUTO_TEST_CASE(backward_needs_a_scalar_or_a_cotangent_and_something_to_differentiate) {
  const Tensor<double> values = numbers({2, 3}), wrong = numbers({3, 2});
  Tape<double> tape;
  const D x = tape.input(values.view()), y = scale(x, 2), fixed = scale(tape.constant(values.view()), 2);
  BOOST_TEST(error_of([&] { tape.backward(y); }) ==
             "[tape] backward starts from a scalar loss, not from shape [2, 3]; give a cotangent");
  BOOST_TEST(error_of([&] { tape.backward(y, wrong.view()); }) ==
             "[tape] backward from a variable of shape [2, 3] with a cotangent of shape [3, 2]; the shapes must match");
  BOOST_TEST(error_of([&] { tape.backward(fixed, values.view()); }) ==
             "[tape] backward: the variable depends on no parameter or input with a gradient");
  tape.backward(y, values.view());  // the errors have not affected the pass
  BOOST_TEST(tape.gradient(x)[4] == 2 * values[4]);
  BOOST_TEST(error_of([&] { tape.gradient(y); }) == "[tape] gradients exist for inputs of this tape only");
}

// A buffer on the tape is a constant, without memory in Gradients.
BOOST_AUTO_TEST_CASE(a_buffer_gets_no_gradient) {
  Parameters<double> parameters(small_list());
  parameters.initialise(1);
  Gradients<double> gradients(parameters);
  Tape<double> tape({.parameters = &parameters, .gradients = &gradients});
  const D buffer = tape.parameter(2);
  const Tensor<double> values(Shape{2}, {1, 2}), cotangent(Shape{2}, {1, 1});
  const D x = tape.input(values.view()), product = mul(x, buffer);
  BOOST_TEST(!tape.target(buffer));
  tape.backward(product, cotangent.view());
  BOOST_TEST(equal(tape.gradient(x), {7, 7}));
}

// The first contribution to a parameter's gradient overwrites the old value; later ones, including those of later
// passes, are added, until reset(). complete() zeroes gradients without contributions.
BOOST_AUTO_TEST_CASE(gradients_of_parameters_accumulate_over_passes) {
  Parameters<double> parameters(small_list());
  parameters.initialise(1);
  Gradients<double> gradients(parameters);
  std::fill(gradients.data(), gradients.data() + gradients.size(), 99.0);
  const Tensor<double> cotangent(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  const auto pass = [&](double factor) {
    Tape<double> tape({.parameters = &parameters, .gradients = &gradients});
    const D weight = tape.parameter(0);
    tape.backward(add(scale(weight, factor), weight), cotangent.view());
  };
  gradients.reset();
  pass(1);
  BOOST_TEST(equal(gradients[0], {2, 4, 6, 8, 10, 12}));
  pass(2);
  BOOST_TEST(equal(gradients[0], {5, 10, 15, 20, 25, 30}));
  BOOST_TEST(!gradients.fresh(0));
  BOOST_TEST(gradients.fresh(1));
  BOOST_TEST(equal(gradients[1], {99, 99, 99, 99}));
  gradients.complete();
  BOOST_TEST(equal(gradients[0], {5, 10, 15, 20, 25, 30}));
  BOOST_TEST(equal(gradients[1], {0, 0, 0, 0}));
  gradients.reset();
  pass(0);
  BOOST_TEST(equal(gradients[0], {1, 2, 3, 4, 5, 6}));
}

BOOST_AUTO_TEST_CASE(parameters_that_the_pass_does_not_have) {
  Tape<double> tape;
  BOOST_TEST(error_of([&] { tape.parameter(0); }) ==
             "[tape] parameter 0 is used, but the pass has no parameters; start it with begin(weights)");
  Parameters<double> parameters(small_list());
  tape.begin(parameters);
  for (const ParameterId id : {-1, 3})
    BOOST_TEST(error_of([&] { tape.parameter(id); }) ==
               fmt::format("[tape] parameter {} does not exist; the pass has 3 parameters, counted from 0", id));
}

// A loop with begin() uses the gradients of each step alone: from w = 4, steps of 1/4 against the gradient of w^2 halve
// w exactly. With clear() instead, gradients of all steps add up: 8, then 8 + 4.
BOOST_AUTO_TEST_CASE(a_step_begins_without_the_gradients_of_the_step_before) {
  ParameterList list;
  const ParameterId w = list.add({.name = "w", .initial = Initial::constant(4)});
  const ParameterId unused = list.add({.name = "unused", .shape = {2}, .decay = false});
  Parameters<double> parameters(list);
  Gradients<double> gradients(parameters);
  const auto learn = [&](const auto& begin) {
    parameters.initialise(1);
    gradients.reset();
    std::fill(gradients[unused].begin(), gradients[unused].end(), 7.0);
    Tape<double> tape({.parameters = &parameters, .gradients = &gradients});
    for (int step = 0; step < 2; ++step) {
      begin(tape);
      tape.backward(mul(tape.parameter(w), tape.parameter(w)));
      parameters[w][0] -= gradients[w][0] / 4;
    }
    return parameters[w][0];
  };
  BOOST_TEST(learn([&](Tape<double>& tape) { tape.begin(parameters, gradients); }) == 1);
  BOOST_TEST(equal(gradients[unused], {0, 0}));
  BOOST_TEST(learn([](Tape<double>& tape) { tape.clear(); }) == 4 - 8.0 / 4 - (8.0 + 4) / 4);
  BOOST_TEST(equal(gradients[unused], {7, 7}));
}

BOOST_AUTO_TEST_CASE(parameters_lie_side_by_side_and_names_are_unique) {
  Parameters<double> parameters(small_list());
  BOOST_TEST(parameters.list().trainable_elements() == 10);
  BOOST_TEST(parameters.list().find("buffer") == 2);
  BOOST_TEST(parameters.list().find("nothing") == -1);
  BOOST_TEST(parameters.offset(2) >= parameters.trainable_size());
  BOOST_TEST(Gradients<double>(parameters).size() == parameters.trainable_size());
  for (ParameterId id = 0; id < 3; ++id)
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(parameters[id].data()) % alignment == 0u);
  ParameterList list = small_list();
  BOOST_TEST(error_of([&] {
               list.add({"weight", {1}, Initial::constant(0)});
             }) == "[parameters] two tensors have the name 'weight'");
}

// Initial values depend on seed and name, not on declaration order or number type.
BOOST_AUTO_TEST_CASE(initial_values_depend_on_seed_and_name_only) {
  ParameterList reversed;
  reversed.add({"unused", {4}, Initial::constant(1)});
  reversed.add({"weight", {2, 3}, Initial::normal(1)});
  Parameters<double> a(small_list()), b(reversed), c(small_list());
  Parameters<float> f(small_list());
  a.initialise(5);
  b.initialise(5);
  c.initialise(6);
  f.initialise(5);
  for (Index i = 0; i < 6; ++i) {
    BOOST_TEST(a[0][i] == b[1][i]);
    BOOST_TEST(a[0][i] != c[0][i]);
    BOOST_TEST(f[0][i] == static_cast<float>(a[0][i]));
  }
  BOOST_TEST(equal(a[2], {7, 7}));
}

BOOST_AUTO_TEST_CASE(without_gradients_nothing_is_recorded) {
  Parameters<double> parameters(small_list());
  Tape<double> tape({.parameters = &parameters});
  const D y = scale(tape.parameter(0), 2);
  BOOST_TEST(!tape.wanted(y));
  BOOST_TEST(error_of([&] { tape.backward(y, parameters[0]); }) ==
             "[tape] backward: the variable depends on no parameter or input with a gradient");
}

// Kept elements are divided by the probability of keeping. The number of dropped elements is 30 % of 10,000, up to five
// standard deviations of sqrt(10,000 * 0.3 * 0.7) = 46.
BOOST_AUTO_TEST_CASE(dropout_acts_in_training_only) {
  const Tensor<double> values = numbers({100, 100});
  Tape<double> training({.training = true, .random = RandomStream(1)}), evaluation({.random = RandomStream(1)});
  for (const auto drop : {dropout<double>, stochastic_depth<double>}) {
    const D x = evaluation.input(values.view());
    BOOST_TEST(drop(x, 0.3, 1).data() == x.data());
  }
  const D y = dropout(training.input(values.view()), 0.3, 1);
  Index dropped = 0;
  for (Index i = 0; i < values.size(); ++i) {
    dropped += y.data()[i] == 0;
    if (y.data()[i] != 0) BOOST_TEST(y.data()[i] == values[i] * (1 / (1 - 0.3)));
  }
  BOOST_TEST(std::abs(static_cast<double>(dropped) - 3000) < 230);
  const D whole = stochastic_depth(training.input(values.view()), 0.3, 1);
  for (Index image = 0; image < 100; ++image)
    for (Index i = 1; i < 100; ++i)
      BOOST_REQUIRE((whole.data()[100 * image + i] == 0) == (whole.data()[100 * image] == 0));
}

BOOST_AUTO_TEST_CASE(dropping_does_not_depend_on_how_a_batch_is_cut) {
  const Tensor<double> values = numbers({7, 20});
  for (const auto drop : {dropout<double>, stochastic_depth<double>}) {
    const auto of_images = [&](Index first, Index count, std::uint64_t place) {
      Tape<double> tape({.training = true, .random = RandomStream(3), .examples = {.first = first}});
      const D y = drop(tape.constant({values.data() + 20 * first, Shape{count, 20}}), 0.5, place);
      return std::vector<double>(y.data(), y.data() + y.size());
    };
    const std::vector<double> whole = of_images(0, 7, 1);
    std::vector<double> joined;
    for (const auto& [first, count] : {std::pair<Index, Index>{0, 2}, {2, 4}, {6, 1}})
      for (const double x : of_images(first, count, 1)) joined.push_back(x);
    BOOST_TEST(joined == whole, boost::test_tools::per_element());
    BOOST_TEST(of_images(0, 7, 2) != whole);
  }
}

// The sequences of a batch, with 2, 3, 1 and 3 rows, form one tensor. Each draws its own random numbers.
BOOST_AUTO_TEST_CASE(dropping_does_not_depend_on_how_sequences_are_cut) {
  constexpr Index width = 20, lengths[] = {2, 3, 1, 3};
  const Tensor<double> values = numbers({9, width});
  for (const auto drop : {dropout<double>, stochastic_depth<double>}) {
    const auto of_sequences = [&](Index first, Index count, std::uint64_t place) {
      std::vector<Index> starts{0};
      for (Index i = first; i < first + count; ++i) starts.push_back(starts.back() + lengths[i]);
      const Index before = std::accumulate(lengths, lengths + first, Index{0});
      const Segments segments{starts, first, 3};
      Tape<double> tape(
          {.training = true, .random = RandomStream(3), .examples = {.first = first, .segments = &segments}});
      const D y = drop(tape.constant({values.data() + before * width, Shape{1, starts.back(), width}}), 0.5, place);
      return std::vector<double>(y.data(), y.data() + y.size());
    };
    const std::vector<double> whole = of_sequences(0, 4, 1);
    for (const Index cut : {1, 2, 3}) {
      std::vector<double> joined = of_sequences(0, cut, 1);
      for (const double x : of_sequences(cut, 4 - cut, 1)) joined.push_back(x);
      BOOST_TEST(joined == whole, boost::test_tools::per_element());
    }
    if (drop == stochastic_depth<double>) {
      // A sequence is dropped as a whole; of 64 places, some drop sequences 1 and 3, some only 1, some only 3, some
      // neither.
      std::set<std::pair<bool, bool>> pairs;
      for (std::uint64_t place = 0; place < 64; ++place) {
        const std::vector<double> y = of_sequences(0, 4, place);
        for (std::size_t i = 2 * width; i < 5 * width; ++i) BOOST_TEST((y[i] == 0) == (y[2 * width] == 0));
        pairs.emplace(y[2 * width] == 0, y[6 * width] == 0);
      }
      BOOST_TEST(pairs.size() == 4u);
    } else {
      const auto dropped = [&](std::size_t row) {
        std::vector<bool> all;
        for (std::size_t c = 0; c < width; ++c) all.push_back(whole[row * width + c] == 0);
        return all;
      };
      std::set<std::vector<bool>> rows;
      for (std::size_t row = 0; row < 9; ++row) rows.insert(dropped(row));
      BOOST_TEST(rows.size() == 9u);
    }
  }
}

// x [2, 2, 1] = 1, 2, 3, 6: mean 3, squared deviations 14, variance 14 / 4 for normalisation, 14 / 3 for the running
// one.
BOOST_AUTO_TEST_CASE(batch_norm_keeps_running_statistics_and_uses_them_in_evaluation) {
  const Tensor<double> x(Shape{2, 2, 1}, {1, 2, 3, 6}), gamma(Shape{1}, {2.0}), beta(Shape{1}, {0.5});
  Tensor<double> mean(Shape{1}, {10.0}), variance(Shape{1}, {1.0});
  const auto run = [&](bool training) {
    Tape<double> tape({.training = training});
    const D y = batch_norm(tape.input(x.view()), tape.input(gamma.view()), tape.input(beta.view()), mean.view(),
                           variance.view(), {.eps = 0});
    return std::vector<double>(y.data(), y.data() + 4);
  };
  // A few rounding errors of numbers below ten.
  const auto close = [](double a, double b) { return std::abs(a - b) < 1e-14; };
  const std::vector<double> trained = run(true);
  BOOST_TEST(close(trained[3], 2 * (6 - 3) / std::sqrt(3.5) + 0.5));
  BOOST_TEST(close(mean[0], 0.9 * 10 + 0.1 * 3));
  BOOST_TEST(close(variance[0], 0.9 * 1 + 0.1 * 14 / 3));
  mean[0] = 4;
  variance[0] = 0.25;
  const std::vector<double> evaluated = run(false);
  BOOST_TEST(close(evaluated[3], 2 * (6 - 4) / 0.5 + 0.5));
  BOOST_TEST(mean[0] == 4);
  BOOST_TEST(variance[0] == 0.25);
}

// Groups are normalised as separate batches, in order; the gradients of gamma and beta are sums over all groups.
BOOST_AUTO_TEST_CASE(groups_of_batch_norm_are_separate_batches) {
  constexpr Index images = 6, size = 4, channels = 2;  // each image has 2 rows
  const Tensor<double> x = numbers({images, 2, channels}), gamma(Shape{2}, {2.0, -0.5}), beta(Shape{2}, {0.5, 3});
  Tensor<double> dy(x.shape()), mean(Shape{2}), variance(Shape{2});
  for (Index i = 0; i < dy.size(); ++i) dy[i] = std::sin(static_cast<double>(i * i));
  const auto run = [&](Index first, Index count, Index group) {
    const Shape shape{count, 2, channels};
    Tape<double> tape({.training = true});
    const D input = tape.input({x.data() + first * size, shape}), g = tape.input(gamma.view()),
            b = tape.input(beta.view());
    const D y = batch_norm(input, g, b, mean.view(), variance.view(), {.group = group});
    tape.backward(y, {dy.data() + first * size, shape});
    std::array<std::vector<double>, 4> all{std::vector<double>(y.data(), y.data() + y.size())};
    const D inputs[] = {input, g, b};
    for (std::size_t i = 0; i < 3; ++i) {
      const View<const double> gradient = tape.gradient(inputs[i]);
      all[i + 1].assign(gradient.begin(), gradient.end());
    }
    return all;
  };
  for (const Index group : {1, 2, 3}) {
    std::fill(mean.begin(), mean.end(), 7), std::fill(variance.begin(), variance.end(), 5);
    const auto together = run(0, images, group);
    const Tensor<double> means = mean, variances = variance;
    std::fill(mean.begin(), mean.end(), 7), std::fill(variance.begin(), variance.end(), 5);
    std::array<std::vector<double>, 4> separate{{{}, {}, {0, 0}, {0, 0}}};
    for (Index first = 0; first < images; first += group) {
      const auto part = run(first, group, 0);
      for (std::size_t i = 0; i < 2; ++i) separate[i].insert(separate[i].end(), part[i].begin(), part[i].end());
      for (std::size_t i = 2; i < 4; ++i)
        for (std::size_t c = 0; c < 2; ++c) separate[i][c] += part[i][c];
    }
    for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(together[i] == separate[i], boost::test_tools::per_element());
    for (Index c = 0; c < channels; ++c) {
      BOOST_TEST(means[c] == mean[c]);
      BOOST_TEST(variances[c] == variance[c]);
    }
  }
}

BOOST_AUTO_TEST_CASE(batch_norm_refuses_a_batch_of_no_images) {
  const Tensor<double> x(Shape{0, 2, 1}), gamma(Shape{1}, {1.0}), beta(Shape{1}, {0.0});
  Tensor<double> mean(Shape{1}, {0.0}), variance(Shape{1}, {1.0});
  for (const bool training : {true, false}) {
    Tape<double> tape({.training = training});
    const D input = tape.input(x.view()), scale = tape.input(gamma.view()), shift = tape.input(beta.view());
    BOOST_CHECK_THROW(batch_norm(input, scale, shift, mean.view(), variance.view()), Error);
  }
}

BOOST_AUTO_TEST_CASE(a_step_that_is_begun_has_gradients_of_zero) {
  ParameterList list, longer;
  list.add({.name = "w", .shape = {2}});
  longer.add({.name = "w", .shape = {5}});
  Parameters<float> weights(list), others(longer);
  Gradients<float> gradients(weights), of_others(others);
  Tape<float> tape;
  tape.begin(weights, gradients);
  tape.backward(sum(tape.parameter(0)));
  BOOST_TEST(gradients[0][1] == 1);
  tape.begin(weights, gradients);  // without a backward pass
  BOOST_TEST(gradients[0][1] == 0);
  BOOST_CHECK_EXCEPTION(tape.begin(weights, of_others), Error, [](const Error& error) {
    return std::string(error.what()) ==
           "[tape] begin: the gradients belong to other parameters; create them as Gradients(weights)";
  });
}

// Only passes started with begin() complete the gradients.
BOOST_AUTO_TEST_CASE(a_cleared_tape_completes_no_gradients) {
  Parameters<double> parameters(small_list());
  parameters.initialise(1);
  Gradients<double> gradients(parameters);
  Tape<double> tape;
  for (const bool begun : {true, false}) {
    tape.begin(parameters, gradients);
    if (!begun) tape.clear({.parameters = &parameters, .gradients = &gradients});
    tape.backward(sum(tape.parameter(0)));
    BOOST_TEST(!gradients.fresh(0));
    BOOST_TEST(gradients.fresh(1) == !begun);
  }
}

// The settings of divide_rows() and count_images_from() apply to one pass. The list of sequences is in the memory of
// the pass.
BOOST_AUTO_TEST_CASE(a_cleared_tape_repeats_the_pass_as_it_was_given) {
  Tape<double> tape({.training = true, .random = RandomStream(3), .examples = {.first = 5}});
  for (int pass = 0; pass < 2; ++pass) {
    BOOST_TEST(tape.training());
    BOOST_TEST(tape.pass().examples.first == 5);
    BOOST_TEST(!tape.pass().examples.segments);
    BOOST_TEST(tape.pass().random.uniform(0, 0, 1) == RandomStream(3).uniform(0, 0, 1));
    const std::array<Index, 3> starts{0, 1, 4};
    tape.divide_rows({.starts = starts});
    tape.count_images_from(7, RandomStream(4));
    BOOST_TEST(tape.pass().examples.first == 7);
    BOOST_TEST(tape.pass().examples.segments->starts.size() == 3u);
    tape.clear();
  }
}

// Memory belongs to the next operation of its pass.
BOOST_AUTO_TEST_CASE(saved_memory_is_that_of_the_next_operation) {
  std::vector<TraceEntry> trace;
  Tape<double> tape(Pass<double>{.observers = {.trace = &trace}});
  const D x = tape.constant(2.0);
  tape.memory(5), tape.memory(2);
  neg(x), neg(x);
  tape.memory(3);
  tape.clear();
  neg(tape.constant(2.0));
  BOOST_TEST_REQUIRE(trace.size() == 3u);
  for (const auto& [i, saved] : {std::pair(0u, 7), {1u, 0}, {2u, 0}}) BOOST_TEST(trace[i].saved == saved, i);
}

BOOST_AUTO_TEST_SUITE_END()
