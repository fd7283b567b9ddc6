// Error messages for wrong composed forms, and a composed form whose query heads share keys.
#include "heed/ops/composed_attention.h"

#include "heed/attention/steps.h"
#include "heed/checks/attention_case.h"
#include "heed/checks/costcheck.h"
#include "heed/ops/attention.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/shapes.h"
#include "heed/ops/softmax.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <vector>

using namespace heed;

namespace {

/// A mechanism whose composed form has a fault.
class Broken : public ComposedMechanism<Broken> {
 public:
  enum class Fault { no_value, no_output, no_product, constant, square, fixed_width };
  explicit Broken(Fault fault) : fault_(fault) {}

  static constexpr const char *mechanism_name = "broken", *summary = "", *complexity = "";
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Shape out_shape{in.shape.heads, in.shape.queries, in.shape.value_width};
    if (fault_ == Fault::no_output) return in.q;
    if (fault_ == Fault::no_product) return matmul(in.q, in.k);
    if (fault_ == Fault::constant) return in.q.tape().constant(out_shape, [](Index) { return 1; });
    if (fault_ == Fault::square) return in.v * in.v;
    if (fault_ == Fault::fixed_width) return reshape(in.v, {in.shape.heads, in.shape.queries, 3});
    return {};
  }

 private:
  Fault fault_;
};

/// Softmax attention in which neighbouring heads of queries share keys and values.
class Neighbours : public ComposedMechanism<Neighbours> {
 public:
  static constexpr const char *mechanism_name = "neighbours", *summary = "", *complexity = "";
  AttentionLayout layout(Index dim, Index heads) const override {
    return {heads, dim / heads, dim / heads, dim / heads, heads / 2};
  }
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> q = reshape(in.q, {in.shape.heads / 2, 2 * in.shape.queries, in.shape.width});
    const Var<T> A = softmax(matmul(q, transposed(in.k)) * score_scale(in.shape));
    return reshape(matmul(A, in.v), {in.shape.heads, in.shape.queries, in.shape.value_width});
  }
};

/// Returns a shape with two heads, four tokens, keys of five channels and values of three.
AttentionShape narrow_values() { return {.heads = 2, .queries = 4, .keys = 4, .width = 5, .value_width = 3}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_composed)

BOOST_AUTO_TEST_CASE(forms_that_give_no_output) {
  using Fault = Broken::Fault;
  const auto error = [](Broken::Fault fault) { return error_of([&] { Broken(fault).cost(narrow_values()); }); };
  BOOST_TEST(error(Fault::no_value) == "[broken] compose() returns no value");
  BOOST_TEST(error(Fault::no_output) ==
             "[broken] compose() returns shape [2, 4, 5]; expected [heads, queries, channels] = [2, 4, 3]");
  BOOST_TEST(
      error(Fault::no_product) ==
      "[broken] compose(): [matmul] a has shape [2, 4, 5], b has [2, 4, 5]; expected [..., m, k] and [..., k, n]");
  BOOST_TEST(error(Fault::square) == "no error");
  const Tensor<double> keys(Shape{1, 2, 4, 5}), values(Shape{1, 2, 4, 3});
  const Broken mechanism(Fault::constant);
  Tape<double> tape;
  const Var<double> k = tape.input(keys.view()), out_var = attention(mechanism, k, k, tape.input(values.view()));
  BOOST_TEST(*out_var.data() == 1);
  BOOST_TEST(error_of([&] { tape.backward(out_var, values.view()); }) ==
             "[broken] compose() returns a value that depends on no operand");
}

// The map of a composed form is its output for v = I. The output v^2 has no map: it is I for v = I, but 1/4 for v =
// 1/2, where the map I would give 1/2.
BOOST_AUTO_TEST_CASE(forms_without_a_map) {
  Tensor<double> keys(Shape{2, 4, 5}), values(Shape{2, 4, 3}), map(Shape{2, 4, 4});
  std::fill(values.begin(), values.end(), 0.5);
  const auto error = [&](Broken::Fault fault) {
    const Heads<const double> k{{keys.data(), 4, 5}, 2, 20}, v{{values.data(), 4, 3}, 2, 12};
    return error_of([&] {
      composed_map<double>(Broken(fault), AttentionInput<double>{narrow_values(), k, k, v},
                           {{map.data(), 4, 4}, 2, 16});
    });
  };
  BOOST_TEST(error(Broken::Fault::square) ==
             "[broken] the composed form has no map: its output is 0.25, not the map times v = 0.5; let maps() return "
             "null");
  BOOST_TEST(error(Broken::Fault::fixed_width) ==
             "[broken] the composed form has no map, since it rejects the identity as v: [broken] compose(): [reshape] "
             "shape [2, 4, 4] has 32 elements, [2, 4, 3] has 24; they must match; let maps() return null");
}

// Query heads 0 and 1 use key head 0, and heads 2 and 3 key head 1: in the map, gradients, costs and memory.
BOOST_AUTO_TEST_CASE(heads_that_share_keys) {
  const Neighbours mechanism;
  constexpr Index tokens = 6, width = 3;
  const AttentionShape shape = mechanism.layout(4 * width, 4).among(tokens, {});
  Tensor<double> q(Shape{4, tokens, width}), k(Shape{2, tokens, width}), v(Shape{2, tokens, width}),
      map(Shape{4, tokens, tokens});
  std::uint64_t seed = 0;
  for (Tensor<double>* tensor : {&q, &k, &v}) {
    ++seed;
    for (Index i = 0; i < tensor->size(); ++i) (*tensor)[i] = RandomStream(seed).normal(i);
  }
  const auto heads_of = [&](const Tensor<double>& x) {
    return Heads<const double>{{x.data(), tokens, width}, x.shape()[0], tokens * width};
  };
  composed_map<double>(mechanism, AttentionInput<double>{shape, heads_of(q), heads_of(k), heads_of(v)},
                       {{map.data(), tokens, tokens}, 4, tokens * tokens});
  for (Index row = 0; row < 4 * tokens; ++row) {
    const Index head = row / tokens;
    std::vector<double> weights;
    double sum = 0;
    for (Index j = 0; j < tokens; ++j) {
      double dot = 0;
      for (Index c = 0; c < width; ++c) dot += q[row * width + c] * k[(head / 2 * tokens + j) * width + c];
      sum += weights.emplace_back(std::exp(dot / std::sqrt(3.0)));
    }
    for (Index j = 0; j < tokens; ++j)
      BOOST_TEST(std::abs(map[row * tokens + j] - weights[static_cast<std::size_t>(j)] / sum) < 1e-12,
                 row << ", " << j);
  }
  // Two groups of 12 queries: 12 x 6 scores from 3 channels each, and 12 x 3 outputs from 6 values each.
  const Cost cost = mechanism.cost(shape);
  constexpr Index terms = 2 * 2 * 12 * 6 * 3;
  BOOST_TEST((cost.forward_contractions == Counts{.mul = terms, .add = terms}));
  BOOST_TEST((cost.backward_contractions == Counts{.mul = 2 * terms, .add = 2 * terms}));
  BOOST_TEST(cost.attention_exp == 2 * 12 * 6);
  const CheckCase c = *attention_case("neighbours", mechanism, {"7 tokens", 2, 4, 7, 7, 12, 0, 0, false});
  const auto gradients = gradcheck(c);
  BOOST_TEST(!gradients.empty());
  for (const CheckRow& row : gradients) BOOST_TEST(row.passed, row.tensor << ": " << row.got << ", " << row.expected);
  const auto costs = costcheck(c);
  BOOST_TEST(!costs.empty());
  for (const CheckedCost& row : costs) BOOST_TEST(row.passed(), row.pass);
  for (const std::string& fault : c.memory_faults()) BOOST_TEST(fault == "");
}

// The stated memory suffices for copies of the operands and of dout, both passes and the gradients: the tape requests
// no further memory.
BOOST_AUTO_TEST_CASE(stated_memory_suffices) {
  const Neighbours mechanism;
  const AttentionShape shape = mechanism.layout(12, 4).among(40, {});
  std::vector<double> memory(static_cast<std::size_t>(composed_memory(mechanism, shape)));
  Tape<double> tape({}, memory);
  const auto copied = [&](const Shape& of) {
    double* const copy = tape.memory(of.elements());
    for (Index i = 0; i < of.elements(); ++i) copy[i] = RandomStream(1).normal(i);
    return View<const double>(copy, of);
  };
  const std::array<Shape, 3> of = composed_operands(mechanism, shape);
  BOOST_TEST(to_string(of[0]) == "[4, 40, 3]");
  for (const std::size_t i : {1u, 2u}) BOOST_TEST(to_string(of[i]) == "[2, 40, 3]");
  const ComposedInput<double> in{shape, tape.input(copied(of[0])), tape.input(copied(of[1])),
                                 tape.input(copied(of[2]))};
  const Var<double> y = mechanism.compose(in);
  tape.backward(y, copied(y.shape()));
  for (const Var<double>& x : {in.q, in.k, in.v}) BOOST_TEST(tape.gradient(x)[0] != 0);
  BOOST_TEST(tape.reserved() == 0);
}

// The observer gets a matrix for each head, first of the result, then of its gradient; element (1, 2) is checked.
BOOST_AUTO_TEST_CASE(steps_are_reported_by_head) {
  Tensor<double> x(Shape{2, 3, 4}), dy(Shape{2, 3, 4});
  for (Index i = 0; i < 24; ++i) x[i] = static_cast<double>(i), dy[i] = 10 * x[i];
  Tape<double> tape;
  const Var<double> v = tape.input(x.view());
  BOOST_TEST((step("S", v) == v));  // nothing is recorded without an observer
  std::vector<std::string> seen;
  const StepObserver observer([&](const char* name, Index head, const Matrix<const double>& m) {
    seen.push_back(fmt::format("{} {} [{}, {}] {}", name, head, m.rows, m.columns, m(1, 2)));
  });
  BOOST_TEST(error_of([&] { step("S", tape.input(x.view().part(0, 1))); }) == "no error");
  BOOST_TEST(error_of([&] {
               step("T", reshape(v, {6, 4}));
             }) == "[step] T has shape [6, 4]; expected [heads, rows, columns]");
  seen.clear();
  tape.backward(step("S", v), dy.view());
  const std::vector<std::string> expected{"S 0 [3, 4] 6", "S 1 [3, 4] 18", "dS 0 [3, 4] 60", "dS 1 [3, 4] 180"};
  BOOST_TEST(seen == expected, boost::test_tools::per_element());
  BOOST_TEST(tape.gradient(v)[23] == 230);
}

BOOST_AUTO_TEST_SUITE_END()
