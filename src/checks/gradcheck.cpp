#include "heed/checks/gradcheck.h"

#include "heed/ops/elementary/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

namespace {

/// Returns a copy in double.
template <class T>
Tensor<double> as_double(View<const T> values) {
  Tensor<double> copy(values.shape());
  std::transform(values.begin(), values.end(), copy.begin(), [](T x) { return static_cast<double>(x); });
  return copy;
}

/// Returns <W, x> with W ~ U(-1, 1) drawn from `weights`.
Var<double> weigh(Var<double> x, RandomStream weights) {
  Tape<double>& tape = x.tape();
  return tape.record(
      {"weigh", {}}, Shape{}, {x},
      [=](double* sum) {
        *sum = 0;
        for (Index i = 0; i < x.size(); ++i) *sum += weights.uniform(i, -1, 1) * x.data()[i];
      },
      [=, &tape](const Adjoint<double>& dsum) {
        if (const auto dx = tape.target(x))
          for (Index i = 0; i < x.size(); ++i) write(dx.update, dx.data[i], *dsum.data() * weights.uniform(i, -1, 1));
      });
}

struct Checker {
  const CheckCase& c;
  RandomStream cotangent, other, random;
  std::vector<Tensor<double>> inputs;
  Tape<double> tape{};
  std::vector<Var<double>> variables{};

  /// Returns f(inputs); their handles are in `variables`.
  Var<double> result(bool with_gradients = false) {
    tape.clear({.training = c.training, .random = random});
    variables.clear();
    for (const Tensor<double>& input : inputs)
      variables.push_back(with_gradients ? tape.input(input.view()) : tape.constant(input.view()));
    return c.in_double(tape, variables);
  }

  /// Returns <R, f(inputs)>.
  double value() { return *weigh(result(), cotangent).data(); }

  /// Returns the gradients of value() by the tape. With `shared`, returns the gradients of <R, f> + sum <E, x>. The
  /// second term is recorded last, so its gradients are computed before the backward pass of f accumulates into them.
  std::vector<Tensor<double>> gradients(bool shared) {
    Var<double> loss = weigh(result(true), cotangent);
    for (const Var<double>& x : variables)
      if (shared) loss = add(loss, weigh(x, other));
    tape.backward(loss);
    std::vector<Tensor<double>> all;
    for (const Var<double>& x : variables) all.push_back(as_double(tape.gradient(x)));
    return all;
  }

  /// Returns (g(x + h) - g(x - h)) / 2h, where g is value() as a function of x.
  double difference(double& x, double h) {
    const double centre = x, above = centre + h, below = centre - h;
    x = above;
    const double g_above = value();
    x = below;
    const double g_below = value();
    x = centre;
    return (g_above - g_below) / (above - below);
  }

  /// Returns the central difference without its error of order h^2 (Richardson extrapolation).
  double extrapolated(double& x, double h, double difference) {
    return (4 * this->difference(x, h / 2) - difference) / 3;
  }

  /// Returns <gradient, u>, u a random direction of length about 1 in input k, and the derivative of value() along u.
  std::pair<double, double> along_direction(std::size_t k, const Tensor<double>& gradient, double h) {
    Tensor<double>& x = inputs[k];
    const Tensor<double> centre = x;
    const RandomStream random = other.derive("direction");
    const double length = std::sqrt(3 / static_cast<double>(x.size()));
    const auto at = [&](double distance) {
      for (Index i = 0; i < x.size(); ++i) x[i] = centre[i] + distance * length * random.uniform(i, -1, 1);
      return value();
    };
    const auto difference = [&](double step) { return (at(step) - at(-step)) / (2 * step); };
    double slope = 0;
    for (Index i = 0; i < x.size(); ++i) slope += gradient[i] * length * random.uniform(i, -1, 1);
    const double expected = (4 * difference(h / 2) - difference(h)) / 3;
    x = centre;
    return {slope, expected};
  }
};

const double difference_step = std::cbrt(std::numeric_limits<double>::epsilon());

double step_at(double x) { return difference_step * std::max(1.0, std::abs(x)); }

Checker checker_of(const CheckCase& c, std::uint64_t seed) {
  const RandomStream stream(seed);
  return {c, stream.derive("cotangent"), stream.derive("other"), stream.derive("random"), draw_inputs<double>(c, seed)};
}

/// Returns the tolerance of gradients, relative to the magnitude of an element or to a floor, if that is larger.
Likeness likeness(const ExpectedGradients& expected, std::size_t k) {
  return {gradcheck_tolerance,
          std::max({1e-3 * largest_magnitude(expected.gradients[k]), 4 * expected.noise / gradcheck_tolerance, 1e-6})};
}

/// Results in one number type.
struct NumberResults {
  Tensor<double> output;
  std::vector<Tensor<double>> gradients;  ///< of <R, output> for a random R
};

template <class T>
NumberResults results_in(const CheckCase& c, std::uint64_t seed, Products products = Products::exact) {
  const RandomStream stream(seed), weights = stream.derive("cotangent");
  const std::vector<Tensor<T>> inputs = draw_inputs<T>(c, seed);
  Tape<T> tape({.training = c.training, .random = stream.derive("random"), .execution = {.products = products}});
  std::vector<Var<T>> variables;
  for (const Tensor<T>& input : inputs) variables.push_back(tape.input(input.view()));
  Var<T> y;
  if constexpr (std::is_same_v<T, float>)
    y = c.in_float(tape, variables);
  else if constexpr (std::is_same_v<T, double>)
    y = c.in_double(tape, variables);
  else
    y = c.in_counted(tape, variables);
  NumberResults results{as_double(y.value()), {}};
  Tensor<T> cotangent(y.shape());
  for (Index i = 0; i < cotangent.size(); ++i) cotangent[i] = static_cast<T>(weights.uniform(i, -1, 1));
  tape.backward(y, std::as_const(cotangent).view());
  for (const Var<T>& x : variables) results.gradients.push_back(as_double(tape.gradient(x)));
  return results;
}

/// Compares results in float with results in double. Marks rows that passed in double as failed if their gradients are
/// wrong in float, and adds a row for the output if the output is wrong. `looks` begins the description of an error.
void compare_results(const CheckCase& c, const NumberResults& in_float, const NumberResults& in_double,
                     double tolerance, const std::string& looks, std::vector<CheckRow>& rows) {
  const auto agrees = [&](const Tensor<double>& got, const Tensor<double>& expected, CheckRow& row) {
    const Likeness same{tolerance, std::max(largest_magnitude(expected), 0.1)};
    if (diagnose(got.view(), expected.view(), row.axes, same).wrong == 0) return true;
    row.same = same, row.absolute = row.relative = 0;
    for (Index i = 0; i < got.size(); ++i) row.compare(i, got[i], expected[i]);
    row.fail(got, expected);
    row.diagnosis.looks = looks + row.diagnosis.looks;
    return false;
  };
  for (std::size_t k = 0; k < c.inputs.size(); ++k)
    if (rows[k].passed) agrees(in_float.gradients[k], in_double.gradients[k], rows[k]);
  CheckRow out{.operation = c.name, .tensor = "out", .elements = in_double.output.size(), .step = true};
  out.axes = usual_axes(in_double.output.shape());
  if (rows.size() == c.inputs.size() && !agrees(in_float.output, in_double.output, out)) rows.push_back(out);
}

/// Compares results in float, and in larger cases also with products of bfloat16, with results in double. Does not use
/// case_output(), which evaluates the functions that replace surrogates.
void compare_in_float(const CheckCase& c, std::uint64_t seed, std::vector<CheckRow>& rows) {
  const NumberResults in_double = results_in<double>(c, seed), in_float = results_in<float>(c, seed);
  compare_results(c, in_float, in_double, gradcheck_float_tolerance, "right in double; in float ", rows);
  if (!c.along_direction) return;
  compare_results(c, results_in<float>(c, seed, Products::bf16), in_double, gradcheck_bf16_tolerance,
                  "right in float; with products of bfloat16 ", rows);
}

}  // namespace

template <class T>
std::vector<Tensor<T>> draw_inputs(const CheckCase& c, std::uint64_t seed) {
  std::vector<Tensor<T>> inputs;
  for (const CheckInput& input : c.inputs) {
    const RandomStream stream = RandomStream(seed).derive("input").derive(input.name);
    Tensor<T>& values = inputs.emplace_back(input.shape);
    for (Index i = 0; i < values.size(); ++i) {
      double x = stream.uniform(i, input.low, input.high);
      for (std::uint64_t again = 1; std::abs(x) < input.gap; ++again)
        x = stream.derive(again).uniform(i, input.low, input.high);
      values[i] = static_cast<T>(static_cast<float>(x));  // rounded to float, so that every T gets the same value
    }
  }
  return inputs;
}

template std::vector<Tensor<float>> draw_inputs(const CheckCase&, std::uint64_t);
template std::vector<Tensor<double>> draw_inputs(const CheckCase&, std::uint64_t);
template std::vector<Tensor<Counted>> draw_inputs(const CheckCase&, std::uint64_t);

ElementCheck check_element(const CheckCase& c, std::uint64_t seed, std::size_t input, Index element, double change,
                           std::span<const double> around) {
  require(input < c.inputs.size() && element >= 0 && element < c.inputs[input].shape.elements(),
          "[gradcheck] {} has no element {} of an input {}", c.name, element, input);
  Checker checker = checker_of(c, seed);
  double& x = checker.inputs[input][element];
  x += change;
  ElementCheck found{.x = x, .analytic = checker.gradients(false)[input][element], .step = step_at(x)};
  found.numeric = checker.extrapolated(x, found.step, checker.difference(x, found.step));
  for (const double offset : around) {
    x = found.x + offset;
    found.values.push_back(checker.value());
  }
  return found;
}

Tensor<double> case_output(const CheckCase& c, std::uint64_t seed) {
  return as_double(checker_of(c, seed).result().value());
}

CaseResults case_results(const CheckCase& c, std::uint64_t seed) {
  Checker checker = checker_of(c, seed);
  return {checker.gradients(false), checker.gradients(true)};
}

template <class T>
std::vector<Tensor<double>> gradients_in(const CheckCase& c, std::uint64_t seed) {
  return results_in<T>(c, seed).gradients;
}

template std::vector<Tensor<double>> gradients_in<float>(const CheckCase&, std::uint64_t);
template std::vector<Tensor<double>> gradients_in<Counted>(const CheckCase&, std::uint64_t);

ExpectedGradients expected_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults* got) {
  Checker checker = checker_of(c, seed);
  ExpectedGradients expected;
  // Values of value() have rounding errors of eps |value()|, so differences have a noise of eps |value()| / h, even for
  // a zero gradient.
  expected.noise = std::numeric_limits<double>::epsilon() * std::abs(checker.value()) / difference_step;
  if (!c.note.empty()) {
    expected.gradients = got ? got->gradients : checker.gradients(false);
    return expected;
  }
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    Tensor<double>& x = checker.inputs[k];
    Tensor<double>& differences = expected.gradients.emplace_back(x.shape());
    const bool given = got && got->gradients[k].shape() == x.shape();
    if (given && c.along_direction) {
      const auto [along, difference] = checker.along_direction(k, got->gradients[k], difference_step);
      differences = got->gradients[k];
      if (likeness(expected, k)(along, difference)) {
        expected.directions[k] = {along, difference};
        continue;
      }
    }
    const auto step = [&](Index i) { return step_at(x[i]); };
    for (Index i = 0; i < x.size(); ++i) differences[i] = checker.difference(x[i], step(i));
    const Likeness same = likeness(expected, k);
    for (Index i = 0; i < x.size(); ++i)
      if (!given || !same(got->gradients[k][i], differences[i]))
        differences[i] = checker.extrapolated(x[i], step(i), differences[i]);
  }
  return expected;
}

double largest_noise(const CheckCase& c, std::uint64_t seed) {
  const Checker checker = checker_of(c, seed);
  const Tensor<double> out = case_output(c, seed);
  double sum = 0;
  for (Index i = 0; i < out.size(); ++i) sum += std::abs(checker.cotangent.uniform(i, -1, 1) * out[i]);
  return std::numeric_limits<double>::epsilon() * sum / difference_step;
}

void CheckRow::compare(Index i, double got_here, double expected_here) {
  const double distance = std::abs(got_here - expected_here), error = same.error(got_here, expected_here);
  absolute = std::max(absolute, std::isfinite(error) ? distance : std::numeric_limits<double>::infinity());
  const bool first = i <= 0 && relative == 0;  // shown if no element differs
  if (!first && !(error > relative)) return;
  relative = error, index = i, got = got_here, expected = expected_here;
}

void CheckRow::fail(const Tensor<double>& wrong, const Tensor<double>& right) {
  passed = false;
  all_got = wrong, all_expected = right;
  diagnosis = diagnose(wrong.view(), right.view(), axes, same);
}

std::vector<CheckRow> compare_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults& results,
                                        const ExpectedGradients& expected) {
  const RandomStream other = RandomStream(seed).derive("other");
  std::vector<CheckRow> rows;
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    const Tensor<double>&got = results.gradients[k], &right = expected.gradients[k];
    CheckRow row{.operation = c.name, .tensor = c.inputs[k].name, .elements = got.size(), .note = c.note};
    row.axes = c.inputs[k].axes.empty() ? usual_axes(got.shape()) : c.inputs[k].axes;
    row.same = likeness(expected, k);
    for (Index i = 0; i < got.size(); ++i) row.compare(i, got[i], right[i]);
    if (const auto found = expected.directions.find(k); found != expected.directions.end())
      row.compare(-1, found->second.first, found->second.second);
    const bool right_alone = row.relative <= row.same.relative;
    Tensor<double> shared = got;
    const Likeness as_added{1e-9, std::max(row.same.floor, 1.0)};
    for (Index i = 0; i < got.size(); ++i) {
      const double g = results.added[k][i] - other.uniform(i, -1, 1);
      if (as_added(g, got[i])) continue;
      row.compare(i, g, right[i]);
      shared[i] = g;
    }
    row.passed = row.relative <= row.same.relative;
    if (!row.passed) {
      row.fail(right_alone ? shared : got, right);
      if (right_alone)
        row.diagnosis.kind = ErrorKind::overwritten,
        row.diagnosis.looks = "right when assigned, but not added to the existing gradient when `update` is accumulate";
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<CheckRow> gradcheck(const CheckCase& c, std::uint64_t seed) {
  const CaseResults got = case_results(c, seed);
  std::vector<CheckRow> rows = compare_gradients(c, seed, got, expected_gradients(c, seed, &got));
  if (c.in_float) compare_in_float(c, seed, rows);
  if (c.against_composed)
    for (CheckRow& row : c.against_composed(seed)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace heed
