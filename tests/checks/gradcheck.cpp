// The gradient check itself: planted errors must fail.
#include "heed/checks/report.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/dropout.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/softmax.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

using namespace heed;

namespace {

using D = Var<double>;

/// Returns a case y = f(x) with the backward function dx = df(x, dy).
template <class F, class DF>
CheckCase planted(std::string name, Shape shape, F f, DF df) {
  CheckCase c;
  c.name = std::move(name);
  c.inputs = {{"x", shape, 0.5, 2}};
  c.in_double = [f, df](Tape<double>& tape, const std::vector<D>& v) {
    const D x = v[0];
    return tape.record(
        {"planted", {}}, x.shape(), {x}, [=](double* y) { f(x.value(), y); },
        [=, &tape](const Adjoint<double>& dy) {
          if (const auto dx = tape.target(x)) df(x.value(), dy.data(), dx.update, dx.data);
        });
  };
  return c;
}

bool all_passed(const CheckCase& c) {
  bool passed = true;
  for (const CheckRow& row : gradcheck(c)) passed &= row.passed;
  return passed;
}

/// Returns an element-wise case y = x^3 with the given derivative.
template <class Derivative>
CheckCase cube(std::string name, Derivative derivative) {
  return planted(
      std::move(name), {2, 3},
      [](View<const double> x, double* y) {
        for (Index i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
      },
      [derivative](View<const double> x, const double* dy, Update update, double* dx) {
        for (Index i = 0; i < x.size(); ++i) write(update, dx[i], derivative(x[i]) * dy[i]);
      });
}

/// Returns a case y_i = slope_i x_i for 64 elements, whose derivative has the error error_i: always or, with `sharing`,
/// only when the gradient is accumulated.
template <class Slope, class Error>
CheckCase lines(Slope slope, Error error, bool sharing = false) {
  return planted(
      "lines", {64},
      [=](View<const double> x, double* y) {
        for (Index i = 0; i < x.size(); ++i) y[i] = slope(i) * x[i];
      },
      [=](View<const double> x, const double* dy, Update update, double* dx) {
        const bool wrong = !sharing || update == Update::accumulate;
        for (Index i = 0; i < x.size(); ++i) write(update, dx[i], (slope(i) + (wrong ? error(i) : 0)) * dy[i]);
      });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gradcheck_catches)

BOOST_AUTO_TEST_CASE(nothing_in_a_right_gradient) {
  BOOST_TEST(all_passed(cube("right", [](double x) { return 3 * x * x; })));
}

BOOST_AUTO_TEST_CASE(a_dropped_factor) {
  BOOST_TEST(!all_passed(cube("dropped factor", [](double x) { return x * x; })));
}

BOOST_AUTO_TEST_CASE(a_factor_wrong_in_the_fifth_digit) {
  BOOST_TEST(!all_passed(cube("slightly wrong", [](double x) { return 3.00002 * x * x; })));
}

BOOST_AUTO_TEST_CASE(a_wrong_sign) {
  BOOST_TEST(!all_passed(cube("wrong sign", [](double x) { return -3 * x * x; })));
}

BOOST_AUTO_TEST_CASE(a_gradient_that_overwrites_what_is_there) {
  BOOST_TEST(!all_passed(planted(
      "overwrites", {2, 3}, [](View<const double> x, double* y) { std::copy(x.begin(), x.end(), y); },
      [](View<const double> x, const double* dy, Update, double* dx) { std::copy(dy, dy + x.size(), dx); })));
}

// A surrogate gradient need not be the derivative, but it must be finite and be added to existing gradients.
BOOST_AUTO_TEST_CASE(a_surrogate_is_checked_for_what_it_promises) {
  CheckCase surrogate = cube("surrogate", [](double x) { return x; });
  surrogate.note = "x, not 3 x^2";
  BOOST_TEST(all_passed(surrogate));
  std::ostringstream table;
  print_findings(table, {{}, gradcheck(surrogate), {}});
  BOOST_TEST(table.str().find("x, not 3 x^2") != std::string::npos);

  CheckCase infinite = cube("infinite", [](double) { return INFINITY; });
  infinite.note = "infinite";
  BOOST_TEST(!all_passed(infinite));

  CheckCase overwrites = planted(
      "overwrites", {2, 3}, [](View<const double> x, double* y) { std::copy(x.begin(), x.end(), y); },
      [](View<const double> x, const double* dy, Update, double* dx) { std::copy(dy, dy + x.size(), dx); });
  overwrites.note = "one";
  BOOST_TEST(!all_passed(overwrites));
}

// Errors slightly above each threshold fail, and those slightly below pass. The threshold is 1e-6 of the largest of
// three values: the element's gradient, a thousandth of the tensor's largest gradient, and 1e-6. Differences of linear
// functions are exact to about 1e-10.
BOOST_AUTO_TEST_CASE(errors_near_the_thresholds) {
  const auto always = [](double value) { return [=](Index) { return value; }; };
  BOOST_TEST(all_passed(lines(always(1), always(0.8e-6))));
  BOOST_TEST(!all_passed(lines(always(1), always(1.3e-6))));
  // Every second slope is a ten-thousandth of the largest one; its error may be 1e-9 of the largest slope.
  const auto uneven = [](Index i) { return i % 2 == 0 ? 1.0 : 1e-4; };
  const auto of_small = [](double value) { return [=](Index i) { return i % 2 == 0 ? 0.0 : value; }; };
  BOOST_TEST(all_passed(lines(uneven, of_small(0.5e-9))));
  BOOST_TEST(!all_passed(lines(uneven, of_small(2e-9))));
  // All gradients are tiny: the limit is 1e-12.
  BOOST_TEST(all_passed(lines(always(1e-8), always(0.5e-12))));
  BOOST_TEST(!all_passed(lines(always(1e-8), always(2e-12))));
}

BOOST_AUTO_TEST_CASE(an_error_of_the_addition_alone) {
  const auto always = [](double value) { return [=](Index) { return value; }; };
  BOOST_TEST(all_passed(lines(always(1), always(0), true)));
  BOOST_TEST(!all_passed(lines(always(1), always(2e-6), true)));
}

// A softmax whose backward pass lacks the term from the normalising sum.
BOOST_AUTO_TEST_CASE(a_missing_term) {
  CheckCase c;
  c.name = "missing term";
  c.inputs = {{"x", {2, 3}}};
  c.in_double = [](Tape<double>& tape, const std::vector<D>& v) {
    const D x = v[0];
    return tape.record(
        {"planted", {}}, x.shape(), {x},
        [=](double* y) {
          std::copy(x.data(), x.data() + x.size(), y);
          kernels::softmax_rows(Matrix<double>(y, 2, 3));
        },
        [=, &tape](const Adjoint<double>& dy) {
          if (const auto dx = tape.target(x))
            for (Index i = 0; i < x.size(); ++i) write(dx.update, dx.data[i], dy.value()[i] * dy.data()[i]);
        });
  };
  BOOST_TEST(!all_passed(c));
}

// A transpose whose gradient is not transposed back: right shape for a square matrix, wrong positions.
BOOST_AUTO_TEST_CASE(a_swapped_index) {
  const auto transpose = [](bool right) {
    return planted(
        "transpose", {3, 3},
        [](View<const double> x, double* y) {
          for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < 3; ++j) y[3 * j + i] = x[3 * i + j];
        },
        [right](View<const double>, const double* dy, Update update, double* dx) {
          for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < 3; ++j) write(update, dx[3 * i + j], right ? dy[3 * j + i] : dy[3 * i + j]);
        });
  };
  BOOST_TEST(all_passed(transpose(true)));
  BOOST_TEST(!all_passed(transpose(false)));
}

// The rows of a softmax sum to one, so a check that sums the outputs accepts a zero backward function. A random
// cotangent does not.
BOOST_AUTO_TEST_CASE(a_backward_that_returns_zero_under_softmax) {
  CheckCase c;
  c.name = "zero";
  c.inputs = {{"x", {2, 4}}};
  c.in_double = [](Tape<double>& tape, const std::vector<D>& v) {
    const D x = v[0];
    const D y = tape.record(
        {"planted", {}}, x.shape(), {x}, [=](double* out) { std::copy(x.data(), x.data() + x.size(), out); },
        [=, &tape](const Adjoint<double>&) {
          if (const auto dx = tape.target(x))
            for (Index i = 0; i < x.size(); ++i) write(dx.update, dx.data[i], 0.0);
        });
    return softmax(y);
  };
  BOOST_TEST(!all_passed(c));
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_not_finite) {
  BOOST_TEST(!all_passed(cube("not finite", [](double) { return std::nan(""); })));
  // Non-finite elements make both errors, relative and absolute, infinite.
  const CheckRow row = gradcheck(cube("partly", [](double x) { return x > 1 ? std::nan("") : 3 * x * x; }))[0];
  BOOST_TEST(std::isinf(row.relative));
  BOOST_TEST(std::isinf(row.absolute));
}

// In both passes element 5 is twice what it should be; element 0 has a smaller error, and only where the gradient is
// added.
BOOST_AUTO_TEST_CASE(the_worst_element_of_both_passes) {
  const CheckCase c = lines([](Index) { return 1.0; }, [](Index) { return 0.0; });
  CaseResults results = case_results(c, 1);
  const ExpectedGradients expected = expected_gradients(c, 1);
  const double right = results.gradients[0][5];
  results.gradients[0][5] += right, results.added[0][5] += right;
  results.added[0][0] += 0.01 * std::abs(right);
  const CheckRow row = compare_gradients(c, 1, results, expected)[0];
  BOOST_TEST(row.index == 5);
  BOOST_TEST(row.got == 2 * right);
  BOOST_TEST(row.expected == right, boost::test_tools::tolerance(1e-9));
}

// exp(300 x): plain central differences have relative errors of at least (300 h)^2 / 6 = 5e-7 at h = 6e-6 max(1, |x|);
// the second step size must keep the correct gradient from failing.
BOOST_AUTO_TEST_CASE(no_error_in_truncation) {
  CheckCase c = planted(
      "steep", {2, 3},
      [](View<const double> x, double* y) {
        for (Index i = 0; i < x.size(); ++i) y[i] = std::exp(300 * x[i]);
      },
      [](View<const double> x, const double* dy, Update update, double* dx) {
        for (Index i = 0; i < x.size(); ++i) write(update, dx[i], 300 * std::exp(300 * x[i]) * dy[i]);
      });
  BOOST_TEST(all_passed(c));
}

BOOST_AUTO_TEST_CASE(the_table_names_the_worst_element) {
  const auto rows = gradcheck(cube("wrong at large x", [](double x) { return x > 1.5 ? 0.0 : 3 * x * x; }));
  std::ostringstream table;
  print_findings(table, {{}, rows, {}});
  const bool passed = rows[0].passed;
  BOOST_TEST(table.str().find("wrong at large x") != std::string::npos);
  BOOST_TEST((passed || table.str().find("FAILED") != std::string::npos));
}

// print_gradcheck() prints the command's output: the diagnosis of a wrong gradient, and wrong costs.
BOOST_AUTO_TEST_CASE(a_program_prints_the_diagnosis_and_the_costs) {
  // y = x^2 with half its gradient, and a forward cost of two multiplications per element
  const CheckCase c = check_case("half", {{"x", {2, 3}, 0.5, 2}}, [](auto& tape, const auto& v) {
    const auto x = v[0];
    const Index n = x.size();
    Cost cost;
    cost.forward = {.mul = 2 * n};
    cost.backward = {.mul = n};
    return tape.record(
        {"half", cost}, x.shape(), {x},
        [=](auto* y) {
          for (Index i = 0; i < n; ++i) y[i] = x.data()[i] * x.data()[i];
        },
        [=, &tape](const auto& dy) {
          if (const auto dx = tape.target(x))
            for (Index i = 0; i < n; ++i) write(dx.update, dx.data[i], x.data()[i] * dy.data()[i]);
        });
  });
  std::ostringstream out;
  BOOST_TEST(!print_gradcheck(out, c));
  BOOST_TEST(out.str().find("looks  like 0.5 times what it should be") != std::string::npos, out.str());
  BOOST_TEST(out.str().find("1 of 2 stated costs agree with the executed operations") != std::string::npos, out.str());
}

// A gradient that is correct when assigned but not when accumulated is classified as "overwritten"; the reported
// elements are from the accumulation.
BOOST_AUTO_TEST_CASE(an_error_of_the_addition_is_named) {
  const auto always = [](double value) { return [=](Index) { return value; }; };
  const CheckRow row = gradcheck(lines(always(1), always(0.5), true))[0],
                 both = gradcheck(lines(always(1), always(0.5)))[0];
  BOOST_TEST(name_of(row.diagnosis.kind) == std::string("overwritten"));
  BOOST_TEST(row.diagnosis.looks ==
             "right when assigned, but not added to the existing gradient when `update` is accumulate");
  BOOST_TEST(row.diagnosis.wrong == 64);
  for (Index i = 0; i < 64; ++i) BOOST_TEST(std::abs(row.all_got[i] - 1.5 * row.all_expected[i]) < 1e-8);
  BOOST_TEST(name_of(both.diagnosis.kind) == std::string("factor"));
}

// The expected gradients of a surrogate are the given ones or, if none are given, those that the case computes; never
// central differences.
BOOST_AUTO_TEST_CASE(surrogates_are_compared_with_themselves) {
  CheckCase surrogate = cube("surrogate", [](double x) { return x; });
  surrogate.note = "x, not 3 x^2";
  CaseResults got = case_results(surrogate, 1);
  const Tensor<double> own = expected_gradients(surrogate, 1).gradients[0];
  BOOST_TEST(std::equal(own.begin(), own.end(), got.gradients[0].begin()));
  got.gradients[0][2] = 7;
  BOOST_TEST(expected_gradients(surrogate, 1, &got).gradients[0][2] == 7);
}

// The value is <R, a b> for a [3] and b [2, 3]. The gradient of b is R a, so the value is the sum of its products with
// b, and linear in each element of b.
BOOST_AUTO_TEST_CASE(one_element_is_checked) {
  CheckCase c;
  c.name = "product";
  c.inputs = {{"a", {3}}, {"b", {2, 3}}};
  c.in_double = [](Tape<double>&, const std::vector<D>& v) { return v[0] * v[1]; };
  const std::vector<Tensor<double>> inputs = draw_inputs<double>(c, 3);
  const Tensor<double> right = case_results(c, 3).gradients[1];
  const std::vector<double> around{0, 0.5, -1};
  const ElementCheck found = check_element(c, 3, 1, 4, 3, around);
  BOOST_TEST(found.x == inputs[1][4] + 3);
  BOOST_TEST(found.analytic == right[4]);
  BOOST_TEST(std::abs(found.numeric - right[4]) < 1e-8);
  BOOST_TEST(found.step == std::cbrt(std::numeric_limits<double>::epsilon()) * found.x,
             boost::test_tools::tolerance(1e-14));
  BOOST_TEST_REQUIRE(found.values.size() == 3u);
  double value = 3 * right[4];
  for (Index i = 0; i < 6; ++i) value += right[i] * inputs[1][i];
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(std::abs(found.values[i] - value - around[i] * right[4]) < 1e-13, around[i]);
  const auto refusal = [&](std::size_t input, Index element) {
    return error_of([&] { check_element(c, 3, input, element, 0, around); });
  };
  BOOST_TEST(refusal(0, 3) == "[gradcheck] product has no element 3 of an input 0");
  BOOST_TEST(refusal(1, -1) == "[gradcheck] product has no element -1 of an input 1");
  BOOST_TEST(refusal(2, 0) == "[gradcheck] product has no element 0 of an input 2");
}

// y = x has the gradient R, so <R, x> is known; the noise of a finite difference is eps |<R, x>| / cbrt(eps).
BOOST_AUTO_TEST_CASE(noise_by_hand) {
  const CheckCase c = lines([](Index) { return 1.0; }, [](Index) { return 0.0; });
  const Tensor<double> x = draw_inputs<double>(c, 4)[0], R = case_results(c, 4).gradients[0];
  double sum = 0, magnitudes = 0;
  for (Index i = 0; i < 64; ++i) sum += R[i] * x[i], magnitudes += std::abs(R[i] * x[i]);
  const double unit = std::pow(std::numeric_limits<double>::epsilon(), 2.0 / 3);
  BOOST_TEST(expected_gradients(c, 4).noise == unit * std::abs(sum), boost::test_tools::tolerance(1e-10));
  BOOST_TEST(largest_noise(c, 4) == unit * magnitudes, boost::test_tools::tolerance(1e-10));
}

// Every number type has the same inputs, the same cotangent and the same dropout mask.
BOOST_AUTO_TEST_CASE(gradients_of_all_number_types_agree) {
  const CheckCase c =
      check_case("squares", {{"x", {4, 6}, -2, 2}}, [](auto&, const auto& v) { return dropout(v[0] * v[0], 0.4, 1); });
  const Tensor<double> right = case_results(c, 5).gradients[0], in_float = gradients_in<float>(c, 5)[0],
                       in_counted = gradients_in<Counted>(c, 5)[0];
  const auto dropped = std::count(right.begin(), right.end(), 0.0);
  BOOST_TEST((dropped > 0 && dropped < 24));
  for (Index i = 0; i < 24; ++i) {
    BOOST_TEST(std::abs(in_float[i] - right[i]) < 1e-5);
    BOOST_TEST(std::abs(in_counted[i] - right[i]) < 1e-13);
  }
}

// y = 3 x, with a gradient or a result that is doubled in float alone.
BOOST_AUTO_TEST_CASE(errors_in_float_alone) {
  const auto tripled = [](bool gradient, bool result) {
    return check_case("tripled", {{"x", {4, 6}, -2, 2}}, [=](auto& tape, const auto& v) {
      const auto x = v[0];
      using T = std::remove_cvref_t<decltype(x.data()[0])>;
      const auto factor = [](bool wrong) { return T(wrong && std::is_same_v<T, float> ? 6 : 3); };
      return tape.record(
          {"tripled", {}}, x.shape(), {x},
          [=](T* y) {
            for (Index i = 0; i < x.size(); ++i) y[i] = factor(result) * x.data()[i];
          },
          [=, &tape](const Adjoint<T>& dy) {
            if (const auto dx = tape.target(x))
              for (Index i = 0; i < x.size(); ++i) write(dx.update, dx.data[i], factor(gradient) * dy.data()[i]);
          });
    });
  };
  BOOST_TEST(all_passed(tripled(false, false)));
  const std::vector<CheckRow> gradient = gradcheck(tripled(true, false));
  BOOST_TEST_REQUIRE(gradient.size() == 1u);
  BOOST_TEST(!gradient[0].passed);
  BOOST_TEST(gradient[0].diagnosis.looks.starts_with("right in double; in float like 2 times what it should be"),
             gradient[0].diagnosis.looks);
  const std::vector<CheckRow> result = gradcheck(tripled(false, true));
  BOOST_TEST_REQUIRE(result.size() == 2u);
  BOOST_TEST((result[0].passed && !result[1].passed));
  BOOST_TEST(result[1].tensor == "out");
  BOOST_TEST(result[1].diagnosis.wrong == 24);
}

// One element of 64 has a wrong derivative: the derivative along a direction differs, so elements are compared.
BOOST_AUTO_TEST_CASE(derivatives_along_a_direction) {
  const auto check = [](double error) {
    CheckCase c = lines([](Index) { return 1.0; }, [=](Index i) { return i == 40 ? error : 0; });
    c.along_direction = true;
    return gradcheck(c)[0];
  };
  const CheckRow right = check(0), wrong = check(1e-3);
  BOOST_TEST(right.passed);
  BOOST_TEST(right.index == -1);
  BOOST_TEST(right.got != 0);
  BOOST_TEST(!wrong.passed);
  BOOST_TEST(wrong.index == 40);
  BOOST_TEST(wrong.diagnosis.wrong == 1);
  std::ostringstream table;
  print_findings(table, {{}, {right}, {}});
  BOOST_TEST(table.str().find("     all  ") != std::string::npos, table.str());
}

// Inputs within the gap are redrawn; the others do not depend on the gap. All are exact in float.
BOOST_AUTO_TEST_CASE(inputs_avoid_the_kink) {
  CheckCase plain, kinked;
  plain.inputs = {{"x", {100}, -1, 2}}, kinked.inputs = {{"x", {100}, -1, 2, 0.5}};
  const Tensor<double> x = draw_inputs<double>(plain, 1)[0], y = draw_inputs<double>(kinked, 1)[0];
  Index kept = 0;
  for (Index i = 0; i < 100; ++i) {
    BOOST_TEST((std::abs(y[i]) >= 0.5 && y[i] >= -1 && y[i] <= 2));
    BOOST_TEST(y[i] == static_cast<double>(static_cast<float>(y[i])));
    BOOST_TEST((std::abs(x[i]) < 0.5 || y[i] == x[i]));
    kept += y[i] == x[i];
  }
  BOOST_TEST((kept > 0 && kept < 100));
}

BOOST_AUTO_TEST_SUITE_END()
