// Mechanisms composed of elementary operations, compared with hand-written ones of the same equations; and the
// comparison of the two forms of one mechanism.
#include "heed/ops/composed_attention.h"

#include "examples/cosine.h"
#include "examples/relu_by_blocks.h"
#include "heed/checks/attention_case.h"
#include "heed/checks/costcheck.h"
#include "heed/ops/attention.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/softmax.h"
#include "src/checks/composition.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;

namespace {

class ComposedSoftmax : public ComposedMechanism<ComposedSoftmax> {
 public:
  static constexpr const char *mechanism_name = "composed_softmax", *summary = "softmax", *complexity = "";
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> scores = matmul(in.q, transposed(in.k)) * score_scale(in.shape);
    const Var<T> weights = exp(scores - max(scores, {-1}, true));
    return matmul(weights / sum(weights, {-1}, true), in.v);
  }
};

class ComposedSima : public ComposedMechanism<ComposedSima> {
 public:
  static constexpr const char *mechanism_name = "composed_sima", *summary = "SimA", *complexity = "";
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const auto normalised = [](Var<T> x) { return x / sum(abs(x), {-2}, true); };
    return matmul(matmul(normalised(in.q), transposed(normalised(in.k))), in.v);
  }
};

class ComposedLinear : public ComposedMechanism<ComposedLinear> {
 public:
  static constexpr const char *mechanism_name = "composed_linear", *summary = "linear", *complexity = "";
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    // elu(x) + 1: x + 1 for x > 0, else exp(x)
    const auto features = [](Var<T> x) { return where(relu(x), x + 1.0, exp(x)); };
    const Var<T> q = features(in.q), k = features(in.k);
    return matmul(q, matmul(transposed(k), in.v)) / (matmul(q, transposed(sum(k, {-2}, true))) + 1e-6);
  }
};

class ComposedAft : public ComposedMechanism<ComposedAft> {
 public:
  static constexpr const char *mechanism_name = "composed_aft", *summary = "AFT-simple", *complexity = "";
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  const MapCapability* maps() const override { return nullptr; }  // channel-wise weights have no map
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> weights = exp(in.k - max(in.k, {-2}, true));
    return sigmoid(in.q) * (sum(weights * in.v, {-2}, true) / sum(weights, {-2}, true));
  }
};

struct Result {
  Tensor<double> out, dq, dk, dv;
};

/// Runs a mechanism on two images with random operands, on the tape.
Result passes_of(const Mechanism& mechanism, Index heads, Index tokens, Index width) {
  const Shape shape{2, heads, tokens, width};
  std::vector<Tensor<double>> tensors;
  for (const char* name : {"q", "k", "v", "dout"}) {
    Tensor<double>& x = tensors.emplace_back(shape);
    for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(3).derive(name).uniform(i, -2, 2);
  }
  Tape<double> tape;
  std::vector<Var<double>> in;
  for (std::size_t i = 0; i < 3; ++i) in.push_back(tape.input(std::as_const(tensors[i]).view()));
  const Var<double> out = attention(mechanism, in[0], in[1], in[2], AttentionShape{});
  tape.backward(out, std::as_const(tensors[3]).view());
  const auto copy = [](View<const double> x) {
    Tensor<double> tensor(x.shape());
    std::copy(x.begin(), x.end(), tensor.begin());
    return tensor;
  };
  return {copy(out.value()), copy(tape.gradient(in[0])), copy(tape.gradient(in[1])), copy(tape.gradient(in[2]))};
}

/// Checks that elements differ by at most 1e-12 of the largest element of `expected`.
void check_close(const Tensor<double>& got, const Tensor<double>& expected, const std::string& what) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (Index i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-12 * largest,
               what << "[" << i << "]: " << got[i] << ", expected " << expected[i]);
}

void check_against(const Mechanism& composed, const std::string& name, const OptionValues& options, Index heads) {
  const auto built_in = make_mechanism(name, options);
  const Result got = passes_of(composed, heads, 7, 5), expected = passes_of(*built_in, heads, 7, 5);
  check_close(got.out, expected.out, name + " out");
  check_close(got.dq, expected.dq, name + " dq");
  check_close(got.dk, expected.dk, name + " dk");
  check_close(got.dv, expected.dv, name + " dv");
}

/// A mechanism M with the passes of ReluByHand, unless M replaces them.
template <class M>
class LikeReluByHand : public MechanismBase<M> {
 public:
  template <class T>
  Heads<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return ReluByHand().saved(s, layout);
  }
  template <class T>
  Matrix<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return ReluByHand().scratch(s, layout);
  }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> A, Matrix<T> dA) const {
    ReluByHand().run_forward(in, out, A, dA);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, Heads<T> A, Matrix<T> dA,
                    const AttentionGradient<T>& to) const {
    ReluByHand().run_backward(in, out, dout, A, dA, to);
  }
  Cost cost(const AttentionShape& s) const override { return ReluByHand().cost(s); }
};

/// A mechanism whose backward pass divides by sqrt(e) instead of sqrt(d).
class ByValueWidth : public LikeReluByHand<ByValueWidth> {
 public:
  static constexpr const char *mechanism_name = "by_value_width", *summary = "", *complexity = "";
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, Heads<T> A, Matrix<T> dA,
                    const AttentionGradient<T>& to) const {
    AttentionInput<T> wrong = in;
    wrong.shape.width = in.shape.value_width;
    ReluByHand().run_backward(wrong, out, dout, A, dA, to);
  }
};

/// A mechanism whose composed form gives twice the hand-written result.
class Halved : public LikeReluByHand<Halved>, public WithComposition<Halved> {
 public:
  static constexpr const char *mechanism_name = "halved", *summary = "", *complexity = "";
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> S = step("S", matmul(in.q, transposed(in.k)) * (2 * score_scale(in.shape)));
    return matmul(step("A", relu(S) / static_cast<double>(in.shape.keys)), in.v);
  }
};

/// ReluByHand with a fault: it reports step A once too often, or its composed form does not name this step.
class Misreported : public LikeReluByHand<Misreported>, public WithComposition<Misreported> {
 public:
  static constexpr const char *mechanism_name = "misreported", *summary = "", *complexity = "";
  bool named;
  explicit Misreported(bool named) : named(named) {}
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> A, Matrix<T> dA) const {
    ReluByHand().run_forward(in, out, A, dA);
    if (named) report_step("A", 0, A[0]);
  }
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> S = matmul(in.q, transposed(in.k)) * score_scale(in.shape);
    return matmul(step(named ? "A" : "B", relu(S) / static_cast<double>(in.shape.keys)), in.v);
  }
};

/// out = a v + b, channel by channel, for two parameters of the same shape. `wrong` doubles the gradient of b.
class Affine : public MechanismBase<Affine>, public WithComposition<Affine> {
 public:
  static constexpr const char *mechanism_name = "affine", *summary = "", *complexity = "";
  bool wrong;
  explicit Affine(bool wrong) : wrong(wrong) {}
  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    return {{"a", {s.value_width}}, {"b", {s.value_width}}};
  }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, NoMemory) const {
    const T *const a = in.parameters[0].data(), *const b = in.parameters[1].data();
    for (Index h = 0; h < in.shape.heads; ++h)
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c) out[h](i, c) = a[c] * in.v[h](i, c) + b[c];
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, NoMemory,
                    const AttentionGradient<T>& to) const {
    for (Index h = 0; h < in.shape.heads; ++h)
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c) {
          write(to.update, to.v[h](i, c), in.parameters[0].data()[c] * dout[h](i, c));
          to.parameters[0].data()[c] += in.v[h](i, c) * dout[h](i, c);
          to.parameters[1].data()[c] += T(wrong ? 2 : 1) * dout[h](i, c);
        }
  }
  Cost cost(const AttentionShape&) const override { return {}; }
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    return in.v * in.parameters[0] + in.parameters[1];
  }
};

const AttentionCaseShape case_shape{"7 tokens", 2, 2, 7, 7, 10, 0, 0, 0};

}  // namespace

BOOST_AUTO_TEST_SUITE(composed_attention)

BOOST_AUTO_TEST_CASE(five_mechanisms_equal_the_built_in_ones) {
  check_against(ComposedSoftmax(), "softmax", {}, 2);
  check_against(ComposedSima(), "sima", {}, 2);
  check_against(ReluComposed(), "pointwise", {}, 2);
  check_against(ComposedLinear(), "linear", {}, 2);
  check_against(ComposedAft(), "aft", {{"variant", "simple"}}, 1);
}

BOOST_AUTO_TEST_CASE(gradients_costs_and_memory_are_right) {
  const ComposedSoftmax softmax;
  const ReluByHand by_hand;
  const ReluByBlocks by_blocks;
  const ComposedAft aft;
  for (const Mechanism* const mechanism :
       std::initializer_list<const Mechanism*>{&softmax, &by_hand, &by_blocks, &aft}) {
    const CheckCase c = *attention_case(mechanism->name(), *mechanism, case_shape);
    for (const CheckRow& row : gradcheck(c))
      BOOST_TEST(row.passed, row.operation << " " << row.tensor << ": " << row.got << ", expected " << row.expected);
    for (const CheckedCost& row : costcheck(c)) BOOST_TEST(row.passed(), row.operation << " " << row.pass);
    for (const std::string& fault : c.memory_faults()) BOOST_TEST(fault == "");
  }
}

BOOST_AUTO_TEST_CASE(the_wrong_width_is_found_where_widths_differ) {
  const ByValueWidth mechanism;
  AttentionCaseShape shape = case_shape;
  for (const bool differ : {false, true}) {
    shape.value_width = differ ? 3 : 0;
    for (const CheckRow& row : gradcheck(*attention_case("by_value_width", mechanism, shape)))
      BOOST_TEST(row.passed == (!differ || row.tensor == "v"), row.tensor << (differ ? ", e = 3" : ", e = d"));
  }
}

// 200 tokens are several blocks of queries; 1,000 keys of 5 channels are several blocks of keys.
BOOST_AUTO_TEST_CASE(a_map_in_blocks) {
  const ReluByHand whole;
  const ReluByBlocks blocks;
  for (const Index tokens : {1, 200, 1000}) {
    if (tokens == 1000) BOOST_TEST(key_part(blocks.layout(5, 1).among(tokens, {})) < tokens);
    const Result got = passes_of(blocks, 1, tokens, 5), expected = passes_of(whole, 1, tokens, 5);
    check_close(got.out, expected.out, "out");
    check_close(got.dq, expected.dq, "dq");
    check_close(got.dk, expected.dk, "dk");
    check_close(got.dv, expected.dv, "dv");
  }
}

BOOST_AUTO_TEST_CASE(a_composed_mechanism_with_a_parameter_passes) {
  const Cosine mechanism;
  for (const CheckRow& row : gradcheck(*attention_case("cosine", mechanism, case_shape)))
    BOOST_TEST(row.relative < gradcheck_tolerance, row.tensor);
}

BOOST_AUTO_TEST_CASE(the_two_forms_are_compared_step_by_step) {
  const ReluByHand mechanism;
  std::vector<std::string> compared;
  for (const CheckRow& row : gradcheck(*attention_case("relu_by_hand", mechanism, case_shape)))
    if (row.reference == CheckReference::composed_form) {
      BOOST_TEST(row.relative < composition_tolerance);
      compared.push_back((row.step ? "" : "d") + row.tensor);
    }
  const std::vector<std::string> expected{"A", "out", "dA", "dS", "dq", "dk", "dv"};
  BOOST_TEST(compared == expected, boost::test_tools::per_element());
  BOOST_TEST(!has_composition(ReluComposed()));  // nothing to compare with
}

BOOST_AUTO_TEST_CASE(a_factor_is_named_at_the_step_where_it_begins) {
  const Halved mechanism;
  const AttentionShape shape = mechanism.layout(10, 2).among(7, {});
  for (const CheckRow& row : compare_with_composition("halved", mechanism, shape, 1)) {
    BOOST_TEST(row.same.relative == composition_tolerance);
    // dA and dS do not depend on the scale of S.
    BOOST_TEST(row.passed == (row.tensor == "dA" || row.tensor == "dS"), row.tensor);
    if (row.tensor == "A") {
      BOOST_TEST(name_of(row.diagnosis.kind) == std::string("factor"));
      BOOST_TEST(row.diagnosis.looks.find("0.5 times") != std::string::npos, row.diagnosis.looks);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_map_is_the_output_for_the_identity) {
  const ComposedSoftmax composed;
  const auto softmax = make_mechanism("softmax", {});
  const AttentionShape shape = composed.layout(10, 2).among(7, {});
  Tensor<double> x(Shape{3, 2, 7, 5});
  for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(1).uniform(i, -2, 2);
  const auto heads = [&](Index of) { return Heads<const double>{{x.data() + of * 70, 7, 5}, 2, 35}; };
  const AttentionInput<double> in{shape, heads(0), heads(1), heads(2)};
  const auto map_of = [&](const Mechanism& mechanism) {
    Tensor<double> map(Shape{2, 7, 7});
    const AttentionMemorySize size = mechanism.memory(shape);
    Tensor<double> saved(Shape{size.saved}), scratch(Shape{size.scratch});
    mechanism.maps()->map(AttentionMap<double>{in, {{map.data(), 7, 7}, 2, 49}, {saved.data()}, {scratch.data()}});
    return map;
  };
  check_close(map_of(composed), map_of(*softmax), "map");
}

BOOST_AUTO_TEST_CASE(steps_have_a_name_and_one_report_per_head) {
  const auto refusal = [](bool named) {
    const Misreported mechanism(named);
    const AttentionShape shape = mechanism.layout(10, 2).among(7, {});
    return error_of([&] { compare_with_composition("", mechanism, shape, 1); });
  };
  BOOST_TEST(refusal(false) ==
             "[misreported] the step A is reported, but compose() names no such value; name it there with "
             "step(\"NAME\", x), which also names its gradient dNAME");
  BOOST_TEST(refusal(true) ==
             "[misreported] the step A is reported 3 times for 2 heads, with shape [2, 7, 7]; the composed form has "
             "shape [2, 7, 7]");
}

// Rows are ordered: output, gradients of operands, gradients of parameters. An error in one parameter does not affect
// the other's row.
BOOST_AUTO_TEST_CASE(parameters_are_compared_one_by_one) {
  for (const bool wrong : {false, true}) {
    const Affine mechanism(wrong);
    std::vector<std::string> names;
    for (const CheckRow& row : compare_with_composition("affine", mechanism, mechanism.layout(10, 2).among(7, {}), 1)) {
      names.push_back(row.tensor);
      BOOST_TEST(row.passed == !(wrong && row.tensor == "b"), row.tensor);
      BOOST_TEST(row.step == (row.tensor == "out"));
      if (row.passed) continue;
      BOOST_TEST(row.diagnosis.looks.starts_with("like 2 times what it should be"), row.diagnosis.looks);
      BOOST_TEST(row.axes == std::vector<std::string>{"element"}, boost::test_tools::per_element());
    }
    BOOST_TEST(names == (std::vector<std::string>{"out", "v", "a", "b"}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
