// Values of operations compared with their definitions. tests/checks/cases.cpp compares gradients with finite
// differences of the same forward pass, so it would accept any smooth function.
#include "heed/ops/activation.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/dino.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/losses.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/shapes.h"
#include "heed/ops/linear.h"
#include "heed/ops/scale_channels.h"
#include "heed/ops/sequences.h"
#include "heed/ops/softmax.h"
#include "heed/ops/tokens.h"

#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

using namespace heed;

namespace {

Tensor<double> values_of(const Shape& shape, std::uint64_t seed, double low = -2, double high = 2) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(seed).uniform(i, low, high);
  return x;
}

/// Returns log softmax(row)[c].
double log_softmax(const double* row, Index classes, Index c) {
  double sum = 0;
  for (Index i = 0; i < classes; ++i) sum += std::exp(row[i]);
  return row[c] - std::log(sum);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_values)

BOOST_AUTO_TEST_CASE(functions) {
  struct Function {
    const char* name;
    std::function<Var<double>(Var<double>)> operation;
    std::function<double(double)> expected;
  };
  const Function all[] = {
      {"exp", [](Var<double> x) { return exp(x); }, [](double x) { return std::exp(x); }},
      {"log", [](Var<double> x) { return log(abs(x)); }, [](double x) { return std::log(std::abs(x)); }},
      {"sqrt", [](Var<double> x) { return sqrt(abs(x)); }, [](double x) { return std::sqrt(std::abs(x)); }},
      {"pow", [](Var<double> x) { return pow(abs(x), 1.7); }, [](double x) { return std::pow(std::abs(x), 1.7); }},
      {"cube", [](Var<double> x) { return pow(x, 3); }, [](double x) { return x * x * x; }},
      {"tanh", [](Var<double> x) { return tanh(x); }, [](double x) { return std::tanh(x); }},
      {"sigmoid", [](Var<double> x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", [](Var<double> x) { return relu(x); }, [](double x) { return x > 0 ? x : 0; }},
      {"silu", [](Var<double> x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }},
      {"gelu", [](Var<double> x) { return gelu(x); }, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh", [](Var<double> x) { return gelu_tanh(x); },
       [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }},
      {"quick_gelu", [](Var<double> x) { return quick_gelu(x); },
       [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
  };
  const Tensor<double> x = values_of({37}, 1, -5, 5);
  for (const Function& f : all) {
    Tape<double> tape;
    const Var<double> y = f.operation(tape.constant(x.view()));
    for (Index i = 0; i < x.size(); ++i)
      BOOST_TEST(std::abs(y.data()[i] - f.expected(x[i])) <= 1e-14 * (1 + std::abs(f.expected(x[i]))),
                 f.name << "(" << x[i] << ") is " << y.data()[i]);
  }
}

// Targets t become (1 - smoothing) t + smoothing / C; the sum of -t log softmax is divided by the number of images in
// the whole batch.
BOOST_AUTO_TEST_CASE(cross_entropy_of_mixed_and_smoothed_targets) {
  constexpr Index rows = 5, classes = 4;
  const Tensor<double> logits = values_of({rows, classes}, 2, -4, 4);
  Tensor<double> targets = values_of({rows, classes}, 3, 0, 1);
  for (Index r = 0; r < rows; ++r) {
    double sum = 0;
    for (Index c = 0; c < classes; ++c) sum += targets[r * classes + c];
    for (Index c = 0; c < classes; ++c) targets[r * classes + c] /= sum;
  }
  for (const double smoothing : {0.0, 0.1, 0.7})
    for (const Index divisor : {Index{1}, rows, Index{12}}) {
      Tape<double> tape;
      const double got =
          *cross_entropy(tape.constant(logits.view()), std::as_const(targets).view(), smoothing, divisor).data();
      double expected = 0;
      for (Index i = 0; i < rows * classes; ++i)
        expected -= ((1 - smoothing) * targets[i] + smoothing / classes) *
                    log_softmax(logits.data() + i / classes * classes, classes, i % classes) /
                    static_cast<double>(divisor);
      BOOST_TEST(std::abs(got - expected) < 1e-14 * (1 + expected), smoothing << ", " << divisor);
    }
}

// Rows with a label below 0 have neither loss nor gradient; the others have the gradient (softmax - one-hot) / divisor.
BOOST_AUTO_TEST_CASE(losses_of_labels) {
  constexpr Index rows = 6, classes = 4;
  const Tensor<double> logits = values_of({2, 3, classes}, 4, -4, 4);
  for (const std::vector<int>& labels :
       {std::vector<int>{0, 3, 1, 1, 2, 0}, {-1, 3, -1, 1, 2, -7}, {-1, -1, -1, -1, -1, -1}})
    for (const Index divisor : {Index{1}, Index{9}}) {
      Gradients<double> gradients{Parameters<double>(ParameterList())};
      Tape<double> tape({.gradients = &gradients, .training = true});
      const Var<double> x = tape.input(logits.view()), loss = label_cross_entropy(x, labels.data(), divisor);
      tape.backward(loss);
      double expected = 0;
      for (Index r = 0; r < rows; ++r) {
        const int label = labels[static_cast<std::size_t>(r)];
        const double* const row = logits.data() + r * classes;
        if (label >= 0) expected -= log_softmax(row, classes, label) / static_cast<double>(divisor);
        for (Index c = 0; c < classes; ++c) {
          const double softmax = std::exp(log_softmax(row, classes, c));
          const double gradient = label < 0 ? 0 : (softmax - (c == label)) / static_cast<double>(divisor);
          BOOST_TEST(std::abs(tape.gradient(x)[r * classes + c] - gradient) < 1e-15, "row " << r << ", " << c);
        }
      }
      BOOST_TEST(std::abs(*loss.data() - expected) < 1e-14 * (1 + expected));
    }
  const std::vector<int> labels{0, 3, 1, 1, 2, 0};
  Tape<double> tape;
  const Tensor<double> flat = values_of({rows, classes}, 4, -4, 4);
  const Var<double> x = tape.constant(flat.view());
  BOOST_TEST(std::abs(*cross_entropy(x, std::span<const int>(labels)).data() -
                      *label_cross_entropy(x, labels.data(), rows).data()) < 1e-14);
}

BOOST_AUTO_TEST_CASE(squared_errors_are_averaged_over_all_elements) {
  const Tensor<double> y = values_of({3, 5}, 5), target = values_of({3, 5}, 6);
  double expected = 0;
  for (Index i = 0; i < 15; ++i) expected += (y[i] - target[i]) * (y[i] - target[i]) / 15;
  Tape<double> tape;
  BOOST_TEST(std::abs(*mean_squared_error(tape.constant(y.view()), tape.constant(target.view())).data() - expected) <
             1e-14);
}

// Prefix rows are unchanged, and so is a grid of the same side. At twice the side, each new cell's centre is 1/4 away
// from an old one's: the old cells at distances 5/4, 1/4, 3/4 and 7/4 have the weights of Keys's polynomials for
// a = -3/4, which sum to 1.
BOOST_AUTO_TEST_CASE(positions_of_another_grid) {
  constexpr Index skip = 2, side = 6, width = 3;
  const Tensor<double> x = values_of({1, skip + side * side, width}, 7);
  const auto at = [&](Index row, Index column, Index d) { return x[(skip + row * side + column) * width + d]; };
  const double a = -0.75;
  const auto near = [=](double t) { return (a + 2) * t * t * t - (a + 3) * t * t + 1; };
  const auto far = [=](double t) { return a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a; };
  const double weights[] = {far(1.25), near(0.25), near(0.75), far(1.75)};  // in the order of the neighbours' positions
  Tape<double> tape;
  const Var<double> v = tape.constant(x.view());
  const Var<double> same = interpolate_positions(v, skip, side, side),
                    twice = interpolate_positions(v, skip, side, 2 * side);
  BOOST_TEST(twice.shape() == Shape({1, skip + 4 * side * side, width}));
  for (Index i = 0; i < x.size(); ++i) BOOST_TEST(std::abs(same.data()[i] - x[i]) < 1e-14);
  for (Index i = 0; i < skip * width; ++i) BOOST_TEST(twice.data()[i] == x[i]);
  for (const Index row : {4, 5, 6, 7})
    for (const Index column : {4, 5, 7})
      for (Index d = 0; d < width; ++d) {
        // Cell 2 j is at j - 1/4, which is 3/4 away from j - 1 and 1/4 from j. Cell 2 j + 1 is at j + 1/4.
        double expected = 0;
        for (Index i = 0; i < 4; ++i)
          for (Index j = 0; j < 4; ++j) {
            const auto cell = [](Index to, Index k) { return to % 2 == 0 ? to / 2 + 1 - k : to / 2 - 1 + k; };
            expected += weights[i] * weights[j] * at(cell(row, i), cell(column, j), d);
          }
        BOOST_TEST(std::abs(twice.data()[(skip + row * 2 * side + column) * width + d] - expected) < 1e-14,
                   row << ", " << column);
      }
}

// Every cell of smaller and larger grids: cell i has its centre at (i + 1/2) from / to - 1/2, and cells beyond an edge
// repeat the outermost one. The gradient of a sum weighted by dy has the same weights. The sums have at most 100 terms
// and a magnitude below 40, so that they round by less than 1e-12.
BOOST_AUTO_TEST_CASE(positions_at_the_edges_and_of_smaller_grids) {
  constexpr Index skip = 1, side = 6, width = 2;
  const Tensor<double> x = values_of({1, skip + side * side, width}, 13);
  const auto weight = [](double t) {
    const double a = -0.75;
    if (t < 1) return (a + 2) * t * t * t - (a + 3) * t * t + 1;
    return t < 2 ? a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a : 0;
  };
  for (const Index to : {1, 3, 4, 7, 12}) {
    const Tensor<double> dy = values_of({1, skip + to * to, width}, 14);
    Tensor<double> expected(dy.shape()), gradient(x.shape());
    std::copy_n(x.data(), skip * width, expected.data());
    std::copy_n(dy.data(), skip * width, gradient.data());
    const auto center = [=](Index i) { return (static_cast<double>(i) + 0.5) * side / static_cast<double>(to) - 0.5; };
    for (Index cell = 0; cell < to * to; ++cell)
      for (Index row = -3; row < side + 3; ++row)
        for (Index column = -3; column < side + 3; ++column) {
          const double w = weight(std::abs(center(cell / to) - static_cast<double>(row))) *
                           weight(std::abs(center(cell % to) - static_cast<double>(column)));
          const Index from = std::clamp<Index>(row, 0, side - 1) * side + std::clamp<Index>(column, 0, side - 1);
          for (Index d = 0; d < width; ++d) {
            const Index in = (skip + from) * width + d, out = (skip + cell) * width + d;
            expected[out] += w * x[in], gradient[in] += w * dy[out];
          }
        }
    Tape<double> tape({.training = true});
    const Var<double> v = tape.input(x.view()), y = interpolate_positions(v, skip, side, to);
    tape.backward(y, dy.view());
    BOOST_TEST_REQUIRE(y.shape() == dy.shape());
    for (Index i = 0; i < dy.size(); ++i) BOOST_TEST(std::abs(y.data()[i] - expected[i]) < 1e-12, to << ", " << i);
    for (Index i = 0; i < x.size(); ++i)
      BOOST_TEST(std::abs(tape.gradient(v)[i] - gradient[i]) < 1e-12, to << ", " << i);
  }
}

BOOST_AUTO_TEST_CASE(rows_and_channels) {
  const Tensor<double> x = values_of({2, 3, 4}, 8), gamma = values_of({4}, 9), residual = values_of({2, 3, 4}, 10),
                       prefix = values_of({1, 2, 4}, 11), position = values_of({1, 5, 4}, 12);
  Tape<double> tape;
  const auto constant = [&](const Tensor<double>& of) { return tape.constant(of.view()); };
  const Var<double> scaled = scale_channels(constant(x), constant(gamma)),
                    added = scale_channels(constant(x), constant(gamma), constant(residual)),
                    embedded = embed_tokens(constant(x), constant(prefix), constant(position)),
                    units = unit_rows(constant(x)), means = mean_tokens(constant(x)),
                    divided = l1_normalize_tokens(constant(x), 1e-6), second = select_token(constant(x), 1),
                    rest = skip_tokens(constant(x), 2);
  for (Index b = 0; b < 2; ++b)
    for (Index d = 0; d < 4; ++d) {
      double sum = 0, magnitudes = 0;
      for (Index n = 0; n < 3; ++n) {
        const Index i = (b * 3 + n) * 4 + d;
        sum += x[i], magnitudes += std::abs(x[i]);
        BOOST_TEST(scaled.data()[i] == gamma[d] * x[i]);
        BOOST_TEST(std::abs(added.data()[i] - (gamma[d] * x[i] + residual[i])) < 1e-15);
        BOOST_TEST(embedded.data()[(b * 5 + 2 + n) * 4 + d] == x[i] + position[(2 + n) * 4 + d]);
        double square = 0;
        for (Index e = 0; e < 4; ++e) square += std::pow(x[(b * 3 + n) * 4 + e], 2);
        BOOST_TEST(std::abs(units.data()[i] - x[i] / std::sqrt(square)) < 1e-15);
      }
      for (Index n = 0; n < 3; ++n)
        BOOST_TEST(std::abs(divided.data()[(b * 3 + n) * 4 + d] - x[(b * 3 + n) * 4 + d] / magnitudes) < 1e-15);
      for (Index f = 0; f < 2; ++f)
        BOOST_TEST(embedded.data()[(b * 5 + f) * 4 + d] == prefix[f * 4 + d] + position[f * 4 + d]);
      BOOST_TEST(std::abs(means.data()[b * 4 + d] - sum / 3) < 1e-15);
      BOOST_TEST(second.data()[b * 4 + d] == x[(b * 3 + 1) * 4 + d]);
      BOOST_TEST(rest.data()[b * 4 + d] == x[(b * 3 + 2) * 4 + d]);
    }
}

// Slopes at kinks are 0, and so is the slope of x^0, where 0 x^-1 would be NaN at 0.
BOOST_AUTO_TEST_CASE(slopes_where_there_is_a_kink) {
  const Tensor<double> x(Shape{3}, {-2, 0, 3}), one(Shape{1, 1}, {1}), dy(Shape{3}, {5, 7, 11});
  using Slopes = std::vector<double>;
  const auto slopes = [&](const auto& operation) {
    Tape<double> tape;
    const Var<double> v = tape.input(x.view());
    tape.backward(operation(tape, v), dy.view());
    const View<const double> dx = tape.gradient(v);
    return Slopes(dx.begin(), dx.end());
  };
  const auto equal = boost::test_tools::per_element();
  BOOST_TEST(slopes([](auto&, Var<double> v) { return abs(v); }) == (Slopes{-5, 0, 11}), equal);
  BOOST_TEST(slopes([](auto&, Var<double> v) { return relu(v); }) == (Slopes{0, 0, 11}), equal);
  BOOST_TEST(slopes([](auto&, Var<double> v) { return pow(v, 0); }) == (Slopes{0, 0, 0}), equal);
  BOOST_TEST(slopes([](auto&, Var<double> v) { return pow(v, 1); }) == (Slopes{5, 7, 11}), equal);
  BOOST_TEST(slopes([&](Tape<double>& tape, Var<double> v) {
               return reshape(relu_linear(reshape(v, {3, 1}), tape.constant(one.view())), {3});
             }) == (Slopes{0, 0, 11}),
             equal);
}

// The largest logit is subtracted first: exp(900) would overflow.
BOOST_AUTO_TEST_CASE(softmax_of_rows) {
  Tensor<double> x = values_of({2, 3, 5}, 15, -4, 4), shifted = x;
  for (double& value : shifted) value += 900;
  Tape<double> tape;
  const Var<double> y = softmax(tape.constant(std::as_const(x).view())),
                    same = softmax(tape.constant(std::as_const(shifted).view()));
  for (Index i = 0; i < x.size(); ++i) {
    const double expected = std::exp(log_softmax(x.data() + i / 5 * 5, 5, i % 5));
    BOOST_TEST(std::abs(y.data()[i] - expected) < 1e-14);
    BOOST_TEST(std::abs(same.data()[i] - expected) < 1e-12);  // the shift rounds by 1e-13
  }
}

BOOST_AUTO_TEST_CASE(joined_and_stacked_tensors_keep_their_order) {
  const Tensor<double> a = values_of({2, 3}, 16), b = values_of({2, 3}, 17), longer = values_of({4, 3}, 18);
  Tape<double> tape;
  const Var<double> va = tape.constant(a.view()), vb = tape.constant(b.view());
  const Var<double> rows_joined = join_rows(va, tape.constant(longer.view())), first = stack({va, vb}),
                    middle = stack({va, vb}, 1), last = stack({va, vb}, -1), before_last = stack({va, vb}, -2);
  for (Index i = 0; i < 18; ++i) BOOST_TEST(rows_joined.data()[i] == (i < 6 ? a[i] : longer[i - 6]));
  BOOST_TEST(to_string(first.shape()) == "[2, 2, 3]");
  BOOST_TEST(to_string(last.shape()) == "[2, 3, 2]");
  for (Index part = 0; part < 2; ++part)
    for (Index r = 0; r < 2; ++r)
      for (Index c = 0; c < 3; ++c) {
        const double expected = (part == 0 ? a : b)[3 * r + c];
        BOOST_TEST(first.data()[(2 * part + r) * 3 + c] == expected);
        BOOST_TEST(middle.data()[(2 * r + part) * 3 + c] == expected);
        BOOST_TEST(before_last.data()[(2 * r + part) * 3 + c] == expected);
        BOOST_TEST(last.data()[(3 * r + c) * 2 + part] == expected);
      }
}

// act(x) W^T + b + r in one operation, under its own name. Sums of five terms of order one are added in a different
// order.
BOOST_AUTO_TEST_CASE(activations_before_a_product) {
  using D = Var<double>;
  struct Pair {
    const char* name;
    D (*together)(D, D, D, D);
    D (*alone)(D);
  };
  const Tensor<double> x = values_of({4, 5}, 19, -3, 3), weight = values_of({3, 5}, 20), bias = values_of({3}, 21),
                       residual = values_of({4, 3}, 22);
  for (const Pair& pair : {Pair{"gelu_linear", gelu_linear<double>, gelu<double>},
                           {"relu_linear", relu_linear<double>, relu<double>},
                           {"silu_linear", silu_linear<double>, silu<double>},
                           {"gelu_tanh_linear", gelu_tanh_linear<double>, gelu_tanh<double>},
                           {"quick_gelu_linear", quick_gelu_linear<double>, quick_gelu<double>}}) {
    std::vector<TraceEntry> trace;
    Tape<double> tape(Pass<double>{.observers = {.trace = &trace}});
    const D vx = tape.constant(x.view()), w = tape.constant(weight.view()), b = tape.constant(bias.view()),
            r = tape.constant(residual.view());
    const D y = pair.together(vx, w, b, r), expected = linear(pair.alone(vx), w, b, r);
    BOOST_TEST(trace[0].operation == std::string(pair.name));
    for (Index i = 0; i < y.size(); ++i)
      BOOST_TEST(std::abs(y.data()[i] - expected.data()[i]) < 1e-13, pair.name << ", " << i);
  }
}

// Batched matrices, with either operand transposed, both, or neither.
BOOST_AUTO_TEST_CASE(products_of_transposed_matrices) {
  constexpr Index m = 3, k = 4, n = 2;
  const Tensor<double> a = values_of({2, m, k}, 23), b = values_of({2, k, n}, 24);
  Tape<double> tape;
  const Var<double> va = tape.constant(a.view()), vb = tape.constant(b.view()), at = swap_axes(va, 1, 2),
                    bt = swap_axes(vb, -1, -2);
  const Var<double> products[] = {matmul(va, vb), matmul(transposed(at), vb), matmul(va, transposed(bt)),
                                  matmul(transposed(at), transposed(bt))};
  for (const Var<double>& y : products) {
    BOOST_TEST_REQUIRE(to_string(y.shape()) == "[2, 3, 2]");
    for (Index i = 0; i < y.size(); ++i) {
      double expected = 0;
      for (Index j = 0; j < k; ++j) expected += a[i / n * k + j] * b[(i / (m * n) * k + j) * n + i % n];
      BOOST_TEST(std::abs(y.data()[i] - expected) < 1e-13);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
