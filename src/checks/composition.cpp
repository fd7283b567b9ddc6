#include "composition.h"

#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/steps.h"
#include "heed/ops/composed_attention.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// Heads of one result, [H, rows, columns], and the number of heads reported.
struct Step {
  Tensor<double> values;
  Index heads = 0;
};

/// Results of one form: its output, its gradients, and the steps reported while this object exists.
class Results {
 public:
  explicit Results(Index heads)
      : observer_([this, heads](const char* name, Index head, const Matrix<const double>& value) {
          auto found = std::find_if(steps_.begin(), steps_.end(), [&](const auto& s) { return s.first == name; });
          if (found == steps_.end()) found = steps_.insert(found, {name, {}});
          Step& step = found->second;
          const Shape shape{heads, value.rows, value.columns};
          if (step.values.shape() != shape) step = {Tensor<double>(shape)};
          for (Index i = 0; i < value.rows; ++i)
            std::copy_n(value[i], value.columns, step.values.data() + (head * value.rows + i) * value.columns);
          ++step.heads;
        }) {}

  /// Returns the steps in the order of their first report.
  const std::vector<std::pair<std::string, Step>>& steps() const { return steps_; }

  Tensor<double> out;
  std::size_t forward_steps = 0;  ///< number of steps that the forward pass reported
  std::vector<std::pair<std::string, Tensor<double>>> gradients;

 private:
  std::vector<std::pair<std::string, Step>> steps_;
  StepObserver observer_;
};

Tensor<double> drawn(const Shape& shape, const RandomStream& random, double bound) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x[i] = random.uniform(i, -bound, bound);
  return x;
}

template <class T>
Heads<T> heads_of(T* data, const Shape& s) {
  return {{data, s[1], s[2]}, s[0], s[1] * s[2]};
}

/// Operands of one image, and the loss gradient with respect to the output.
struct Operands {
  AttentionShape shape;
  Tensor<double> q, k, v, dout;
  std::vector<ParameterSpec> specs;
  std::vector<Tensor<double>> parameters;

  Operands(const Mechanism& mechanism, const AttentionShape& s, std::uint64_t seed)
      : shape(s), specs(mechanism.parameters(s)) {
    const RandomStream random = RandomStream(seed).derive("composition");
    const auto [q_shape, k_shape, v_shape] = composed_operands(mechanism, s);
    q = drawn(q_shape, random.derive("q"), 2);
    k = drawn(k_shape, random.derive("k"), 2);
    v = drawn(v_shape, random.derive("v"), 1);
    dout = drawn({s.heads, s.queries, s.value_width}, random.derive("dout"), 1);
    for (const ParameterSpec& spec : specs) {
      parameters.push_back(drawn(spec.shape, random.derive(spec.name), 1));
      if (!spec.trainable) fill_initial(spec.initial, random.derive(spec.name), parameters.back().view());
    }
  }
};

void run_by_hand(const Mechanism& mechanism, const Operands& of, Results& results) {
  const AttentionMemorySize size = mechanism.memory(of.shape);
  require(size.prepared == 0 && noise_shape(mechanism, of.shape).elements() == 0,
          "[{}] a mechanism that prepares tensors or uses noise cannot be compared with a composed form",
          mechanism.name());
  Tensor<double> saved(Shape{size.saved}), scratch(Shape{size.scratch});
  std::vector<View<const double>> parameters;
  for (const Tensor<double>& x : of.parameters) parameters.push_back(x.view());
  const auto heads = [](const Tensor<double>& x) {
    return x.size() > 0 ? heads_of(x.data(), x.shape()) : Heads<const double>{};
  };
  const AttentionInput<double> in{of.shape, heads(of.q), heads(of.k), heads(of.v), parameters};
  results.out = Tensor<double>(of.dout.shape());
  mechanism.forward(
      AttentionForward<double>{in, heads_of(results.out.data(), of.dout.shape()), {saved.data()}, {scratch.data()}});
  results.forward_steps = results.steps().size();
  AttentionGradient<double> gradient;
  const auto add = [&](const char* name, const Tensor<double>& x, Heads<double>& to) {
    if (x.size() == 0) return;
    Tensor<double>& dx = results.gradients.emplace_back(name, Tensor<double>(x.shape())).second;
    to = heads_of(dx.data(), x.shape());
  };
  results.gradients.reserve(3 + of.specs.size());
  add("q", of.q, gradient.q);
  add("k", of.k, gradient.k);
  add("v", of.v, gradient.v);
  std::vector<View<double>> dparameters;
  for (const ParameterSpec& spec : of.specs)
    dparameters.push_back(results.gradients.emplace_back(spec.name, Tensor<double>(spec.shape)).second.view());
  gradient.parameters = dparameters;
  mechanism.backward(AttentionBackward<double>{in,
                                               heads_of(std::as_const(results.out).data(), of.dout.shape()),
                                               heads(of.dout),
                                               {saved.data()},
                                               {scratch.data()},
                                               gradient});
}

void run_composed(const Mechanism& mechanism, const Operands& of, Results& results) {
  Tape<double> tape;
  const auto put = [&](const Tensor<double>& x) { return x.size() > 0 ? tape.input(x.view()) : Var<double>{}; };
  std::vector<Var<double>> parameters;
  ComposedInput<double> in{of.shape, put(of.q), put(of.k), put(of.v), {}};
  for (const Tensor<double>& x : of.parameters) parameters.push_back(tape.input(x.view()));
  in.parameters = parameters;
  const auto out = std::get<Var<double>>(composition_of(mechanism)->composed(in));
  require(out.shape() == of.dout.shape(), "[{}] compose() returns shape {}; expected [heads, queries, channels] = {}",
          mechanism.name(), out.shape(), of.dout.shape());
  results.out = Tensor<double>(out.shape());
  std::copy_n(out.data(), out.size(), results.out.begin());
  tape.backward(out, of.dout.view());
  const auto add = [&](const std::string& name, Var<double> x) {
    if (!x) return;
    const View<const double> dx = tape.gradient(x);
    std::copy(dx.begin(), dx.end(), results.gradients.emplace_back(name, Tensor<double>(x.shape())).second.begin());
  };
  add("q", in.q);
  add("k", in.k);
  add("v", in.v);
  for (std::size_t i = 0; i < parameters.size(); ++i) add(of.specs[i].name, parameters[i]);
}

CheckRow compared(const std::string& operation, const std::string& tensor, bool step, const Tensor<double>& got,
                  const Tensor<double>& expected) {
  CheckRow row{.operation = operation, .tensor = tensor, .elements = got.size(), .step = step};
  row.reference = CheckReference::composed_form;
  row.axes = got.shape().rank() == 3 ? std::vector<std::string>{"head", "row", "column"} : usual_axes(got.shape());
  row.same = {composition_tolerance, std::max(1e-3 * largest_magnitude(expected), 1e-12)};
  for (Index i = 0; i < got.size(); ++i) row.compare(i, got[i], expected[i]);
  row.passed = row.relative <= row.same.relative;
  if (!row.passed) row.fail(got, expected);
  return row;
}

}  // namespace

bool has_composition(const Mechanism& mechanism) {
  const CompositionCapability* const form = composition_of(mechanism);
  return form && !form->only_form();
}

bool is_composed(const Mechanism& mechanism) {
  const CompositionCapability* const form = composition_of(mechanism);
  return form && form->only_form();
}

std::vector<CheckRow> compare_with_composition(const std::string& label, const Mechanism& mechanism,
                                               const AttentionShape& shape, std::uint64_t seed) {
  const Operands operands(mechanism, shape, seed);
  std::vector<CheckRow> rows;
  Results composed(shape.heads);
  run_composed(mechanism, operands, composed);
  Results hand(shape.heads);
  run_by_hand(mechanism, operands, hand);
  // Rows in execution order, so that the first wrong row locates the mistake.
  for (std::size_t i = 0; i <= hand.steps().size(); ++i) {
    if (i == hand.forward_steps) rows.push_back(compared(label, "out", true, hand.out, composed.out));
    if (i == hand.steps().size()) break;
    const auto& [name, got] = hand.steps()[i];
    const auto expected = std::find_if(composed.steps().begin(), composed.steps().end(),
                                       [&, &name = name](const auto& s) { return s.first == name; });
    require(expected != composed.steps().end(),
            "[{}] the step {} is reported, but compose() names no such value; name it there with step(\"NAME\", x), "
            "which also names its gradient dNAME",
            mechanism.name(), name);
    require(got.heads == shape.heads && got.values.shape() == expected->second.values.shape(),
            "[{}] the step {} is reported {} times for {} heads, with shape {}; the composed form has shape {}",
            mechanism.name(), name, got.heads, shape.heads, got.values.shape(), expected->second.values.shape());
    rows.push_back(compared(label, name, true, got.values, expected->second.values));
  }
  for (std::size_t i = 0; i < hand.gradients.size(); ++i)
    rows.push_back(
        compared(label, hand.gradients[i].first, false, hand.gradients[i].second, composed.gradients[i].second));
  return rows;
}

}  // namespace heed
