// Numerical check of hand-written gradients.
#pragma once

#include "heed/checks/diagnosis.h"
#include "heed/cost/counted.h"
#include "heed/tape/tape.h"

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// One tensor that a checked function takes: drawn from U(low, high), redrawn within `gap` of zero, where the
/// function has a kink.
struct CheckInput {
  std::string name;
  Shape shape;
  double low = -1, high = 1;
  double gap = 0;
  std::vector<std::string> axes{};  ///< their names; by default usual_axes()
};

/// A differentiable function to check: for double (gradients), float (agreement of the fast kernels with
/// double) and Counted (costs). Make one with check_case().
struct CheckCase {
  template <class T>
  using Function = std::function<Var<T>(Tape<T>&, const std::vector<Var<T>>&)>;

  std::string name;
  std::vector<CheckInput> inputs;
  bool training = true;
  Function<double> in_double;
  Function<float> in_float;
  Function<Counted> in_counted;
  /// Where the gradient is not meant to be the function's derivative: what it is instead. Then differences say nothing
  /// about it, and what is checked is that it is finite and added to what is there; tests of its own check the rest.
  std::string note{};
  /// Is it a hand-written mechanism, whose stated contractions and exps are checked, too?
  bool of_attention = false;
  /// Compares the gradients with those of the composed form, for hand-written mechanisms that have one
  /// (src/checks/composition.h).
  std::function<std::vector<struct CheckRow>(std::uint64_t seed)> against_composed{};
  /// Returns the misuses of memory, a line each (src/checks/memory.h); for mechanisms.
  std::function<std::vector<std::string>()> memory_faults{};
  /// The name without the shape, and the sizes that equations have letters for: B images, H heads, N, M, d, e.
  std::string setting{};
  std::vector<std::pair<char, Index>> sizes{};
  /// The operations executed but not stated, such as the sum of two gradients of a tensor; less where they state more.
  Cost unstated{};
};

/// A case from a generic function f(tape, inputs) -> result.
template <class F>
CheckCase check_case(std::string name, std::vector<CheckInput> inputs, F f, bool training = true) {
  return {std::move(name), std::move(inputs), training, f, f, f};
}

/// Reference of a comparison: central differences of the function, or the mechanism's composed form.
enum class CheckReference { differences, composed_form };

/// The worst element of one tensor's gradient.
struct CheckRow {
  std::string operation, tensor;
  Index elements = 0;
  double absolute = 0, relative = 0;
  Index index = 0;
  double got = 0, expected = 0;
  bool passed = false;
  bool step = false;  ///< a step of the mechanism (attention/steps.h), not the gradient of an input
  CheckReference reference = CheckReference::differences;
  std::string note{};  ///< note of the case, whose gradients are not compared
  std::vector<std::string> axes{};
  // For a failed row:
  Diagnosis diagnosis{};
  Tensor<double> all_got{}, all_expected{};
};

/// Largest relative error that passes. Central differences of a smooth function with a step of cbrt(eps) are
/// good to about eps^(2/3) = 4e-11 times its value and third derivative; what is wrong is wrong by much more.
inline constexpr double gradcheck_tolerance = 1e-6;

/// Compares the gradient of <R, f(inputs)>, R a random cotangent, with central differences
///   (g(x + h) - g(x - h)) / 2h,  h = cbrt(eps) max(1, |x|),
/// for every element of every input, in double. Where they disagree the difference is taken again with h / 2
/// and extrapolated, (4 g'(h/2) - g'(h)) / 3, which removes the truncation error of order h^2 and leaves a real
/// error as it is. An error is divided by the element, or by 1e-3 of the tensor's largest if that is more.
/// A second pass checks that gradients are added to what is already there.
std::vector<CheckRow> gradcheck(const CheckCase& c, std::uint64_t seed = 1);

/// One element of an input of a case, moved by `change`: x, where it then is; the derivative of <R, f> by it, from the
/// tape and from differences as gradcheck() extrapolates them, with the step h; and <R, f> at x + each of `around`.
struct ElementCheck {
  double x = 0, analytic = 0, numeric = 0, step = 0;
  std::vector<double> values{};
};
ElementCheck check_element(const CheckCase& c, std::uint64_t seed, std::size_t input, Index element, double change,
                           std::span<const double> around);

/// f of a case's inputs.
Tensor<double> case_output(const CheckCase& c, std::uint64_t seed);

/// An implementation's results for a case's inputs: the gradients of <R, f>, once as they are, once of <R, f> +
/// <E, input> for each input, E ~ U(-1, 1), added to what the second term has left.
struct CaseResults {
  std::vector<Tensor<double>> gradients, added;
};
CaseResults case_results(const CheckCase& c, std::uint64_t seed);

/// The gradients of <R, f> as they are, computed in another number type.
template <class T>
std::vector<Tensor<double>> gradients_in(const CheckCase& c, std::uint64_t seed);

/// The expected gradients of a case: differences, extrapolated where `got` disagrees or has no such tensor; where
/// they are not meant to be derivatives, those of `got` or else the case's own.
struct ExpectedGradients {
  std::vector<Tensor<double>> gradients;
  double noise = 0;  ///< rounding noise of a gradient that is 0
};
ExpectedGradients expected_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults* got = nullptr);

/// A bound on `noise` for any inputs, however much of <R, f> cancels: eps sum |R f| / h. gradcheck's own seed is one
/// for which no such bound is needed.
double largest_noise(const CheckCase& c, std::uint64_t seed);

/// The rows of gradcheck for results of the case's inputs, from any implementation. The case gives the inputs'
/// names and axes.
std::vector<CheckRow> compare_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults& results,
                                        const ExpectedGradients& expected);

/// The input tensors of a case, as gradcheck draws them.
template <class T>
std::vector<Tensor<T>> draw_inputs(const CheckCase& c, std::uint64_t seed);

/// Every operation and every mechanism with its options, in shapes whose sizes all differ. `heed gradcheck`,
/// the cost checks and the float checks run over this list.
std::vector<CheckCase> all_check_cases();

}  // namespace heed
