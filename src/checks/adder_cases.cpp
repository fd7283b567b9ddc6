// Adder networks replace the derivative of |u| by derivatives of other functions. These functions are defined here, so
// that each choice of gradient of adder layers and adder attention is compared with finite differences of its own
// function. No other mechanism has a surrogate gradient that is the derivative of a function in closed form.
#include "cases.h"

#include "heed/attention/mechanism.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/adder_linear.h"
#include "heed/ops/attention.h"
#include "heed/ops/layer_norm_parts.h"

#include <memory>

namespace heed {

namespace {

/// Returns the function of u = a - b whose derivative is `gradient`: |u|, the Huber function with threshold 1, or
/// u^2 / 2.
double penalty(DistanceGradient gradient, double u) {
  const double size = std::abs(u);
  if (gradient == DistanceGradient::sign) return size;
  return gradient == DistanceGradient::hardtanh && size > 1 ? size - 0.5 : u * u / 2;
}

/// Computes s[r,c] = -sum_i penalty(x[r,i] - w[c,i]).
void negative_penalties(DistanceGradient gradient, Index rows, Index columns, Index width, const double* x,
                        const double* w, double* s) {
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      double sum = 0;
      for (Index i = 0; i < width; ++i) sum += penalty(gradient, x[r * width + i] - w[c * width + i]);
      s[r * columns + c] = -sum;
    }
}

/// Returns the point at which gradcheck differentiates: the values that it draws for these inputs.
std::vector<Tensor<double>> checked_point(const std::vector<CheckInput>& inputs) {
  CheckCase c;
  c.inputs = inputs;
  return draw_inputs<double>(c, 1);
}

/// Returns a case that compares the gradient of f with central differences of `in_its_place`. If a gradient is
/// required, f runs; otherwise `in_its_place` runs. The values of the two functions at the checked point may differ.
template <class F, class G>
CheckCase surrogate_case(std::string name, const std::vector<CheckInput>& inputs, F f, G in_its_place) {
  CheckCase c = check_case(std::move(name), inputs, f);
  c.in_double = [f, in_its_place](Tape<double>& tape, const std::vector<Var<double>>& v) {
    return tape.wanted(v[0]) ? f(tape, v) : in_its_place(tape, v);
  };
  return c;
}

/// Returns a value computed by `fill`, without a gradient.
template <class Fill>
Var<double> plain(Tape<double>& tape, const Shape& shape, const Fill& fill) {
  double* const values = tape.memory(shape.elements());
  fill(values);
  return tape.constant({values, shape});
}

constexpr const char* names[] = {"sign", "hardtanh", "full"};

/// Adds the case of y = -|x - W|_1 + b. P_x and P_W are negative_penalties() for input_grad and weight_grad; x0 and W0
/// are the values at the checked point. The gradient of x is the derivative of P_x(x, W0), and the gradient of W is the
/// derivative of P_W(x0, W). The sum P_x(x, W0) + P_W(x0, W) tests both.
void add_linear(CheckCases& cases, const AdderLinearOptions& options, bool bias) {
  const Index rows = 6, in = 5, out = 7;
  std::vector<CheckInput> inputs{{"x", {2, 3, in}, -2, 2}, {"weight", {out, in}, -2, 2}};
  if (bias) inputs.push_back({"bias", {out}});
  const auto f = [=](auto&, const auto& v) {
    using Variable = std::decay_t<decltype(v[0])>;
    return adder_linear(v[0], v[1], bias ? v[2] : Variable{}, options);
  };
  const auto point = std::make_shared<std::vector<Tensor<double>>>(checked_point(inputs));
  const auto in_its_place = [=](Tape<double>& tape, const std::vector<Var<double>>& v) {
    return plain(tape, {2, 3, out}, [&](double* y) {
      std::vector<double> moving_weight(static_cast<std::size_t>(rows * out));
      negative_penalties(options.input_grad, rows, out, in, v[0].data(), (*point)[1].data(), y);
      negative_penalties(options.weight_grad, rows, out, in, (*point)[0].data(), v[1].data(), moving_weight.data());
      for (Index i = 0; i < rows * out; ++i)
        y[i] += moving_weight[static_cast<std::size_t>(i)] + (bias ? v[2].data()[i % out] : 0);
    });
  };
  std::string name = std::string("adder_linear, input_grad=") + names[static_cast<int>(options.input_grad)] +
                     ", weight_grad=" + names[static_cast<int>(options.weight_grad)];
  if (!bias) name += ", no bias";
  cases.push_back(surrogate_case(name + ", each by the function it belongs to", inputs, f, in_its_place));
}

/// Adds the case of adder attention with score_grad=hardtanh, whose gradient equals the derivative of attention with
/// scores S0 + H - H0. H are scores with the Huber function instead of |u|, H0 their values at the checked point, and
/// S0 the true scores there. At that point, the scores equal S0, and their derivative equals the derivative of H.
void add_attention(CheckCases& cases, bool identity) {
  const Index images = 2, heads = 3, tokens = 5, d = 4;
  static auto* const kept = new std::vector<std::unique_ptr<Mechanism>>;  // outlives the cases that refer to it
  const Mechanism& adder = *kept->emplace_back(
      make_mechanism("adder", {{"score_grad", "hardtanh"}, {"identity", identity ? "true" : "false"}}));

  const Shape shape{images, heads, tokens, d};
  const std::vector<CheckInput> inputs{{"q", shape, -2, 2}, {"k", shape, -2, 2}, {"v", shape}};
  const auto point = std::make_shared<std::vector<Tensor<double>>>(checked_point(inputs));
  const double scale = 1 / std::sqrt(2 * static_cast<double>(d) * (1 - 2 / std::numbers::pi));
  const auto in_its_place = [=](Tape<double>& tape, const std::vector<Var<double>>& v) {
    return plain(tape, shape, [&](double* out) {
      const auto size = static_cast<std::size_t>(tokens * tokens);
      std::vector<double> s(size), moved(size), unmoved(size);
      for (Index head = 0; head < images * heads; ++head) {
        const Index at = head * tokens * d;
        const double *q = v[0].data() + at, *k = v[1].data() + at, *value = v[2].data() + at;
        const double *q0 = (*point)[0].data() + at, *k0 = (*point)[1].data() + at;
        negative_penalties(DistanceGradient::sign, tokens, tokens, d, q0, k0, s.data());
        negative_penalties(DistanceGradient::hardtanh, tokens, tokens, d, q, k, moved.data());
        negative_penalties(DistanceGradient::hardtanh, tokens, tokens, d, q0, k0, unmoved.data());
        for (std::size_t i = 0; i < size; ++i) s[i] += moved[i] - unmoved[i];
        kernels::attention_softmax({scale}, Matrix(s.data(), tokens, tokens));
        for (Index i = 0; i < tokens; ++i)
          for (Index c = 0; c < d; ++c) {
            double sum = identity ? value[i * d + c] : 0;
            for (Index j = 0; j < tokens; ++j) sum += s[static_cast<std::size_t>(i * tokens + j)] * value[j * d + c];
            out[at + i * d + c] = sum;
          }
      }
    });
  };
  cases.push_back(surrogate_case(
      std::string("adder, score_grad=hardtanh, ") + (identity ? "" : "identity=false, ") + "by the Huber function",
      inputs, [&adder](auto&, const auto& v) { return attention(adder, v[0], v[1], v[2], {}); }, in_its_place));
}

}  // namespace

void add_adder_cases(CheckCases& cases) {
  using enum DistanceGradient;
  for (const DistanceGradient input_grad : {sign, hardtanh})
    for (const DistanceGradient weight_grad : {sign, hardtanh, full})
      add_linear(cases, {input_grad, weight_grad}, true);
  add_linear(cases, {hardtanh, full}, false);
  for (const bool identity : {true, false}) add_attention(cases, identity);

  const std::vector<CheckInput> parts{{"x", {2, 3, 9}}, {"gamma 1", {4}}, {"beta 1", {4}}, {"gamma 2", {2}},
                                      {"beta 2", {2}},  {"gamma 3", {3}}, {"beta 3", {3}}};
  for (const std::size_t count : {1, 3}) {
    std::vector<CheckInput> inputs(parts.begin(), parts.begin() + 1 + 2 * static_cast<std::ptrdiff_t>(count));
    if (count == 1) inputs[0].shape = {2, 3, 4};
    cases.add(count == 1 ? "layer_norm_parts, one" : "layer_norm_parts, three", inputs, [](auto&, const auto& v) {
      using Variable = std::decay_t<decltype(v[0])>;
      using Part = NormPart<std::decay_t<decltype(*v[0].data())>>;
      std::vector<Part> list;
      for (std::size_t i = 1; i < v.size(); i += 2) list.push_back({v[i], v[i + 1]});
      return layer_norm_parts(Variable(v[0]), std::span<const Part>(list));
    });
  }
  cases.add("layer_norm_parts, residual", {{"x", {2, 3, 4}}, {"gamma", {4}}, {"beta", {4}}, {"residual", {2, 3, 4}}},
            [](auto&, const auto& v) {
              using Part = NormPart<std::decay_t<decltype(*v[0].data())>>;
              const Part part{v[1], v[2]};
              return layer_norm_parts(v[0], std::span<const Part>(&part, 1), v[3]);
            });
}

}  // namespace heed
