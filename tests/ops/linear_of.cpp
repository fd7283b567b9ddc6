// linear_of compared with separate operations, with rows processed in several chunks.
#include "heed/cost/counted.h"
#include "heed/kernels/elements/activation.h"
#include "heed/ops/activation.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/rows.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

template <class T>
using Operation = Var<T> (*)(const std::vector<Var<T>>&);

/// Sizes for two whole chunks and a partial one.
constexpr Index in = 3000, out = 5, rows = 2 * rows_in_cache(in) + 5;

/// Returns y, then the gradients of <y, y> / 2: those of x, weight, bias, residual and further inputs with `shapes`.
template <class T>
std::vector<T> values_and_gradients(Operation<T> operation, const std::vector<Shape>& shapes) {
  std::vector<Tensor<T>> values;
  for (const Shape& shape : shapes) {
    Tensor<T>& tensor = values.emplace_back(shape);
    const RandomStream random(values.size());
    for (Index i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<T>(random.normal(i));
  }
  Tape<T> tape;
  std::vector<Var<T>> inputs;
  for (const Tensor<T>& value : values) inputs.push_back(tape.input(value.view()));
  const Var<T> y = operation(inputs);
  tape.backward(y, y.value());
  std::vector<T> all(y.data(), y.data() + y.size());
  for (const Var<T>& x : inputs) {
    const View<const T> gradient = tape.gradient(x);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

/// Checks that both forms agree, and that threads change no bit of `together`. Chunks change only the order of sums
/// over rows. y consists of sums of `in` terms with rounding errors of eps times about sqrt(in); gradients consist of
/// sums over y.
template <class T>
void check_together(Operation<T> together, Operation<T> apart, std::vector<Shape> others = {}) {
  std::vector<Shape> shapes{{rows, in}, {out, in}, {out}, {rows, out}};
  shapes.insert(shapes.end(), others.begin(), others.end());
  const std::vector<T> a = values_and_gradients<T>(together, shapes), b = values_and_gradients<T>(apart, shapes);
  T largest(0);
  for (const T value : b) largest = std::max(largest, std::abs(value));
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    BOOST_REQUIRE_MESSAGE(std::abs(a[i] - b[i]) <= 20 * std::numeric_limits<T>::epsilon() * largest,
                          i << ": " << a[i] << " and " << b[i]);
  for (const int count : {1, 2, 3}) {
    const WithThreads with(count);
    BOOST_TEST((values_and_gradients<T>(together, shapes) == a), count << " threads");
  }
}

template <class T>
void check_all() {
  check_together<T>([](const auto& v) { return gelu_linear(v[0], v[1], v[2], v[3]); },
                    [](const auto& v) { return linear(gelu(v[0]), v[1], v[2], v[3]); });
  check_together<T>([](const auto& v) { return relu_linear(v[0], v[1]); },
                    [](const auto& v) { return linear(relu(v[0]), v[1]); });
  check_together<T>([](const auto& v) { return layer_norm_linear(v[0], v[4], v[5], v[1], v[2], v[3]); },
                    [](const auto& v) { return linear(layer_norm(v[0], v[4], v[5]), v[1], v[2], v[3]); }, {{in}, {in}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_linear_of)

BOOST_AUTO_TEST_CASE(what_it_gives_is_what_its_parts_give) {
  check_all<double>();
  check_all<float>();
}

// If x needs no gradient, the weights still get theirs.
BOOST_AUTO_TEST_CASE(of_a_constant) {
  Tensor<double> x(Shape{3, 4}), weight(Shape{2, 4});
  for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(1).normal(i);
  Tape<double> tape;
  const Var<double> w = tape.input(std::as_const(weight).view());
  const Var<double> y = gelu_linear(tape.constant(std::as_const(x).view()), w);
  const std::vector<double> ones(6, 1.0);
  tape.backward(y, {ones.data(), Shape{3, 2}});
  std::vector<double> expected(x.begin(), x.end());
  kernels::gelu_forward(12, expected.data(), expected.data());
  for (Index o = 0; o < 2; ++o)
    for (Index i = 0; i < 4; ++i)
      BOOST_TEST(std::abs(tape.gradient(w)[4 * o + i] - expected[i] - expected[4 + i] - expected[8 + i]) <= 1e-15);
}

// The backward pass computes only the required gradients, and its cost states this.
BOOST_AUTO_TEST_CASE(costs_where_not_every_gradient_is_wanted) {
  const WithThreads with(1);  // tallies are per thread
  const Tensor<Counted> x(Shape{3, 4}), gamma(Shape{4}), weight(Shape{2, 4}), dy(Shape{3, 2});
  for (const bool want_x : {false, true})
    for (const bool want_gamma : {false, true}) {
      std::vector<TraceEntry> trace;
      Tape<Counted> tape(Pass<Counted>{.observers = {.trace = &trace}});
      const auto operand = [&](const Tensor<Counted>& value, bool wanted) {
        return wanted ? tape.input(value.view()) : tape.constant(value.view());
      };
      const Var<Counted> vx = operand(x, want_x), vgamma = operand(gamma, want_gamma), vweight = operand(weight, true);
      Counted::tally() = {};
      const Var<Counted> y = layer_norm_linear(vx, vgamma, vgamma, vweight);
      BOOST_TEST((Counted::tally() == trace[0].cost.forward));
      Counted::tally() = {};
      tape.backward(y, dy.view());
      Counts expected = trace[0].cost.backward;
      if (want_gamma) expected.add += gamma.size();  // the same tensor is beta, which gives it two gradients
      BOOST_TEST((Counted::tally() == expected), "x " << want_x << ", gamma " << want_gamma);
    }
}

BOOST_AUTO_TEST_CASE(of_no_rows) {
  const Tensor<double> x(Shape{0, 4}), gamma(Shape{4}), weight(Shape{2, 4}), dy(Shape{0, 2});
  Tape<double> tape;
  std::fill_n(tape.memory(1000), 1000, NAN);
  tape.clear();
  const Var<double> vgamma = tape.input(gamma.view()), vbeta = tape.input(gamma.view());
  const Var<double> y = layer_norm_linear(tape.constant(x.view()), vgamma, vbeta, tape.constant(weight.view()));
  tape.backward(y, dy.view());
  for (const Var<double>& parameter : {vgamma, vbeta})
    for (const double value : tape.gradient(parameter)) BOOST_TEST(value == 0);
}

BOOST_AUTO_TEST_SUITE_END()
