// Numerical check of hand-written gradients.
#pragma once

#include "heed/checks/diagnosis.h"
#include "heed/cost/counted.h"
#include "heed/tape/tape.h"

#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// An input of a checked function: drawn from U(low, high), redrawn if within `gap` of zero, for functions with a kink
/// there.
struct CheckInput {
  std::string name;
  Shape shape;
  double low = -1, high = 1;
  double gap = 0;
  std::vector<std::string> axes{};  ///< axis names; by default usual_axes()
};

/// A differentiable function to check: in double (gradients), float (agreement of the fast kernels with double) and
/// Counted (costs). Create it with check_case().
struct CheckCase {
  template <class T>
  using Function = std::function<Var<T>(Tape<T>&, const std::vector<Var<T>>&)>;

  std::string name;
  std::vector<CheckInput> inputs;
  bool training = true;
  Function<double> in_double;
  Function<float> in_float;
  Function<Counted> in_counted;
  /// Description of a gradient that is not the function's derivative; otherwise empty. Such a gradient is checked only
  /// to be finite, to accumulate, and to agree between float and double; separate tests check its values.
  std::string note{};
  /// True for a hand-written mechanism, whose stated contractions and exp evaluations are checked too.
  bool of_attention = false;
  /// Compares the gradients with those of the composed form, for hand-written mechanisms that have one
  /// (src/checks/composition.h).
  std::function<std::vector<struct CheckRow>(std::uint64_t seed)> against_composed{};
  /// Returns the mechanism's memory faults, one line each (src/checks/memory.h).
  std::function<std::vector<std::string>()> memory_faults{};
  /// The name without the shape, and the sizes denoted by letters in equations: B images, H heads, N, M, d, e.
  std::string setting{};
  std::vector<std::pair<char, Index>> sizes{};
  /// Operations executed but not stated, such as the sum of two gradients of a tensor; negative if more are stated than
  /// executed.
  Cost unstated{};
  /// True for cases with many elements: each gradient is first compared along a random direction, and element by
  /// element only if it differs there.
  bool along_direction = false;
};

/// Returns a case for a generic function f(tape, inputs) -> result.
template <class F>
CheckCase check_case(std::string name, std::vector<CheckInput> inputs, F f, bool training = true) {
  return {std::move(name), std::move(inputs), training, f, f, f};
}

/// Reference of a comparison: central differences of the function or the mechanism's composed form.
enum class CheckReference { differences, composed_form };

/// Maximum relative error. Central differences of a smooth function with a step of cbrt(eps) have errors of about
/// eps^(2/3) = 4e-11 times its value and third derivative; mistakes cause much larger errors.
inline constexpr double gradcheck_tolerance = 1e-6;

/// Maximum difference of results in float from those in double, relative to the larger of 0.1 and the tensor's
/// largest element. Both passes have the same inputs. A float has 24 bits, so each operation has an error of 6e-8;
/// sums, and divisions by small numbers, increase it to about 1e-5 in heed's mechanisms. A wrong term is larger.
inline constexpr double gradcheck_float_tolerance = 1e-4;

/// Maximum difference of results in float with products of bfloat16 from those in double, relative to the larger
/// of 0.1 and the tensor's largest element; checked in cases with `along_direction`. A bfloat16 has 8 bits. Near
/// a kink, rounding adds or removes whole terms of a sum, so the results of relu differ most, by 0.09.
inline constexpr double gradcheck_bf16_tolerance = 0.25;

/// Worst element of one tensor's gradient.
struct CheckRow {
  std::string operation, tensor;
  Index elements = 0;
  double absolute = 0, relative = 0;  ///< largest errors; infinite if a value is NaN or infinite
  Index index = 0;                    ///< -1: got and expected are derivatives along a direction
  double got = 0, expected = 0;
  bool passed = false;
  bool step = false;  ///< true for a step of the mechanism (attention/steps.h) or the output, not an input's gradient
  CheckReference reference = CheckReference::differences;
  std::string note{};  ///< the case's note; if not empty, gradients are not compared with differences
  std::vector<std::string> axes{};
  Likeness same{gradcheck_tolerance, 0};  ///< criterion that every element has to meet
  // Only for failed rows.
  Diagnosis diagnosis{};
  Tensor<double> all_got{}, all_expected{};

  /// Compares element i, and records it as the worst if its relative error is the largest so far.
  void compare(Index i, double got_here, double expected_here);

  /// Fails the row and diagnoses the error.
  void fail(const Tensor<double>& wrong, const Tensor<double>& right);
};

/// Compares the gradient of <R, f(inputs)>, R a random cotangent, with central differences
///   (g(x + h) - g(x - h)) / 2h,  h = cbrt(eps) max(1, |x|),
/// for every element of every input, in double; in cases with `along_direction`, first along a random direction. If
/// they disagree, the difference is repeated with h / 2 and extrapolated, (4 g'(h/2) - g'(h)) / 3, which removes the
/// truncation error of order h^2 but hides no mistake. Errors are relative to the largest of the element, 1e-3 of the
/// tensor's largest element, 1e-6, and 4e6 times the rounding noise of a difference. A second pass checks that
/// gradients are added to existing values. Results in float are compared with those in double. A row for the output,
/// "out", exists only if the output in float is wrong.
std::vector<CheckRow> gradcheck(const CheckCase& c, std::uint64_t seed = 1);

/// Check of one input element; x is its value. `analytic` is the derivative of <R, f> with respect to x from the tape,
/// `numeric` the central difference with step `step`, extrapolated as in gradcheck(); `values` are <R, f> at x plus
/// each offset.
struct ElementCheck {
  double x = 0, analytic = 0, numeric = 0, step = 0;
  std::vector<double> values{};
};

/// Returns the check of element `element` of input `input`, after adding `change` to it. `around` holds the offsets of
/// `values`.
ElementCheck check_element(const CheckCase& c, std::uint64_t seed, std::size_t input, Index element, double change,
                           std::span<const double> around);

/// Returns f of a case's inputs.
Tensor<double> case_output(const CheckCase& c, std::uint64_t seed);

/// An implementation's results for a case's inputs: `gradients` of <R, f>, and `added`, which has, for each input, the
/// gradient of <R, f> + <E, input> with E ~ U(-1, 1), computed by adding f's gradient to E.
struct CaseResults {
  std::vector<Tensor<double>> gradients, added;
};

/// Returns the results of the case's own implementation.
CaseResults case_results(const CheckCase& c, std::uint64_t seed);

/// Returns the gradients of <R, f>, computed in T: float or Counted.
template <class T>
std::vector<Tensor<double>> gradients_in(const CheckCase& c, std::uint64_t seed);

/// Expected gradients of a case: central differences, extrapolated where they disagree with `got` or where `got` lacks
/// the tensor. For a case with a note, whose gradients are not derivatives, the gradients are taken from `got` or,
/// without it, from the case's own implementation.
struct ExpectedGradients {
  std::vector<Tensor<double>> gradients;
  double noise = 0;  ///< rounding noise of a difference, even for a zero gradient
  /// Derivatives along a random direction, by `got` and by differences, of each tensor for which they agree; its
  /// expected gradient is that of `got`.
  std::map<std::size_t, std::pair<double, double>> directions{};
};

/// Computes the expected gradients.
ExpectedGradients expected_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults* got = nullptr);

/// Returns a bound on the rounding noise of a difference, eps sum |R f| / h, which holds even if the terms of <R, f>
/// cancel. With gradcheck's default seed, `noise` suffices.
double largest_noise(const CheckCase& c, std::uint64_t seed);

/// Returns gradcheck's rows for any implementation's results with the case's inputs. The case gives the inputs' names
/// and axes.
std::vector<CheckRow> compare_gradients(const CheckCase& c, std::uint64_t seed, const CaseResults& results,
                                        const ExpectedGradients& expected);

/// Returns the inputs of a case, as gradcheck draws them.
template <class T>
std::vector<Tensor<T>> draw_inputs(const CheckCase& c, std::uint64_t seed);

/// Returns the cases of every operation and of every mechanism with its options, in shapes with different sizes along
/// most axes. `heed gradcheck`, the cost checks and the float checks use this list.
std::vector<CheckCase> all_check_cases();

}  // namespace heed
