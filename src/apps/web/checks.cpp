#include "checks.h"

#include "heed/attention/mechanism.h"
#include "heed/checks/attention_case.h"
#include "heed/ops/adder_linear.h"

#include <deque>

namespace heed::web {

namespace {

/// Shapes with and without a class token, so that every setting fits one.
const AttentionCaseShape shapes[] = {{"2 x 4 tokens", 1, 2, 8, 8, 8, 2, 4, 0},
                                     {"2 x 2 tokens", 1, 2, 4, 4, 8, 2, 2, 0},
                                     {"class token and 2 x 4", 1, 2, 9, 9, 8, 2, 4, 1}};
constexpr std::uint64_t seed = 1;

/// Cases of a mechanism, with the Mechanism objects that they refer to.
struct Cases {
  std::deque<std::unique_ptr<Mechanism>> mechanisms;
  std::vector<CheckCase> list;

  explicit Cases(const std::string& name) {
    const MechanismEntry& entry = find_mechanism(name);
    for (const OptionValues& options : entry.variants()) {
      std::string label;
      for (const auto& [key, value] : options) label += (label.empty() ? "" : " ") + key + "=" + value;
      const Mechanism& mechanism = *mechanisms.emplace_back(entry.make(options));
      for (const AttentionCaseShape& shape : shapes) {
        auto accepted = attention_case(label.empty() ? "as it is" : label, mechanism, shape);
        if (!accepted) continue;
        list.push_back(*std::move(accepted));
        break;
      }
    }
  }

  const CheckCase& operator[](Index number) const {
    require(number >= 0 && number < static_cast<Index>(list.size()), "[check] unknown case {}; there are {} cases",
            number, list.size());
    return list[static_cast<std::size_t>(number)];
  }
};

}  // namespace

Json check_cases(const std::string& mechanism) {
  Json list = Json::list();
  const Cases cases(mechanism);
  for (const CheckCase& c : cases.list) {
    Json inputs = Json::list();
    for (const CheckInput& input : c.inputs) {
      const std::vector<std::string> axes = input.axes.empty() ? usual_axes(input.shape) : input.axes;
      Json shape = Json::list(Json::List(input.shape.begin(), input.shape.end()));
      inputs.push_back(Json::object({{"name", input.name}, {"shape", std::move(shape)}, {"axes", axes}}));
    }
    list.push_back(Json::object({{"setting", c.name}, {"surrogate", c.note}, {"inputs", std::move(inputs)}}));
  }
  return list;
}

Json check_rows(const std::string& mechanism, Index number) {
  const Cases cases(mechanism);
  Json list = Json::list();
  for (const CheckRow& row : gradcheck(cases[number], seed))
    list.push_back(Json::object(
        {{"tensor", row.tensor}, {"elements", row.elements}, {"relative", row.relative}, {"passed", row.passed}}));
  return list;
}

void check_element_of(const std::string& mechanism, Index number, Index input, Index element, double change,
                      Reply& reply) {
  constexpr Index half = 40;
  std::vector<double> around;
  for (Index i = -half; i <= half; ++i) around.push_back(static_cast<double>(i) / half);
  const Cases cases(mechanism);
  const ElementCheck found =
      check_element(cases[number], seed, static_cast<std::size_t>(input), element, change, around);
  const auto array = [&](const std::vector<double>& numbers) {
    Tensor<float> array(Shape{2 * half + 1});
    std::copy(numbers.begin(), numbers.end(), array.begin());
    return reply.keep(std::move(array));
  };
  reply.json["x"] = found.x;
  reply.json["analytic"] = found.analytic;
  reply.json["numeric"] = found.numeric;
  reply.json["step"] = found.step;
  reply.json["offsets"] = array(around);
  reply.json["values"] = array(found.values);
}

void surrogate_gradients(Reply& reply) {
  using enum DistanceGradient;
  constexpr Index half = 100;
  Tensor<float> u(Shape{2 * half + 1});
  for (Index i = -half; i <= half; ++i) u[i + half] = static_cast<float>(i) / 40;
  // Adds the gradient of -|w - x| with respect to x or w for each u = w - x, with x = 0.
  const auto add = [&](const char* name, DistanceGradient gradient, bool of_weight) {
    Tensor<float> gradients(u.shape());
    const float zero = 0;
    AdderLinearOptions options;
    (of_weight ? options.weight_grad : options.input_grad) = gradient;
    for (Index i = 0; i < u.size(); ++i) {
      Tape<float> tape;
      const Var<float> x = tape.input({&zero, {1, 1}}), w = tape.input({u.data() + i, {1, 1}});
      tape.backward(adder_linear(x, w, {}, options));
      gradients[i] = tape.gradient(of_weight ? w : x)[0];
    }
    reply.json[name] = reply.keep(std::move(gradients));
  };
  add("input_sign", sign, false);
  add("input_hardtanh", hardtanh, false);
  add("weight_sign", sign, true);
  add("weight_hardtanh", hardtanh, true);
  add("weight_full", full, true);
  reply.json["u"] = reply.keep(std::move(u));
}

}  // namespace heed::web
