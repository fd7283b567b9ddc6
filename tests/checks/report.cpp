// The whole text of findings for invented rows: the table, each wrong gradient with its elements, the wrong costs.
#include "heed/checks/report.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>

using namespace heed;

namespace {

/// Returns a row of a tensor [2, 3] with the elements `got`; it passes if they equal `expected` by the criterion
/// `same`.
CheckRow invented(const std::string& operation, const std::string& tensor, const std::vector<double>& got,
                  const std::vector<double>& expected = {1, 2, 3, 4, 5, 6},
                  const Likeness& same = {gradcheck_tolerance, 1e-3}) {
  CheckRow row{.operation = operation, .tensor = tensor, .elements = 6, .axes = {"row", "column"}, .same = same};
  row.all_got = row.all_expected = Tensor<double>(Shape{2, 3});
  std::copy(got.begin(), got.end(), row.all_got.begin());
  std::copy(expected.begin(), expected.end(), row.all_expected.begin());
  for (Index i = 0; i < 6; ++i) row.compare(i, row.all_got[i], row.all_expected[i]);
  row.passed = row.relative <= same.relative;
  row.diagnosis = diagnose(std::as_const(row.all_got).view(), std::as_const(row.all_expected).view(), row.axes, same);
  return row;
}

const std::vector<double> right_numbers{1, 2, 3, 4, 5, 6};

std::string printed(const CheckFindings& found, bool numbers = false) {
  std::ostringstream out;
  print_findings(out, found, numbers);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(check_report)

BOOST_AUTO_TEST_CASE(findings_pass_if_each_of_them_does) {
  const CheckRow right = invented("op", "x", right_numbers), wrong = invented("op", "x", {1, 2, 3, 4, 5, 7});
  const CheckedCost stated{
      .operation = "op", .setting = "", .pass = "forward", .stated = {.mul = 2}, .executed = {.mul = 2}},
      misstated{.operation = "op", .setting = "", .pass = "forward", .stated = {.mul = 3}, .executed = {.mul = 2}};
  BOOST_TEST((CheckFindings{{}, {right, right}, {stated}}.passed()));
  BOOST_TEST((CheckFindings{}.passed()));
  BOOST_TEST(!(CheckFindings{{{"op", "reads beyond q"}}, {right}, {stated}}.passed()));
  for (const auto& rows : {std::vector{right, wrong}, {wrong, right}})
    BOOST_TEST(!(CheckFindings{{}, rows, {stated}}.passed()));
  for (const auto& costs : {std::vector{stated, misstated}, {misstated, stated}})
    BOOST_TEST(!(CheckFindings{{}, {right}, costs}.passed()));
}

BOOST_AUTO_TEST_CASE(the_table_and_its_sums) {
  CheckRow composed = invented("operation, small", "x", {1, 2, 3, 4, 5, 7}),
           surrogate = invented("op", "y", right_numbers);
  composed.reference = CheckReference::composed_form;
  surrogate.note = "derivative of something else";
  CheckRow other = invented("op", "y", right_numbers);
  other.reference = CheckReference::composed_form;
  const std::string text = printed({{}, {invented("op", "x", {1, 2.5, 3, 4, 5, 6}), surrogate, other, composed}, {}});
  BOOST_TEST(
      text.substr(0, text.find("\n\n")) ==
      "operation         tensor  elements   absolute   relative   index             got        expected\n"
      "op                x              6    5.0e-01    2.0e-01       1             2.5               2  FAILED\n"
      "op                y              6  derivative of something else\n"
      "op                y              6    0.0e+00    0.0e+00       0               1               1\n"
      "operation, small  x              6    1.0e+00    1.4e-01       5               7               6  FAILED\n"
      "0 of 1 gradients agree with central differences to 1e-06\n"
      "1 of 2 gradients and steps agree with the composed form to 1e-10\n"
      "surrogate gradients, as noted: 1; not compared with central differences\n"
      "0 of 0 stated costs agree with the executed operations");
}

// Wrong gradients of one tensor with the same pattern are shown once, with the case that has the most elements and the
// explanations that fit all cases; other patterns and tensors are shown separately. Tensors that are right in all cases
// come last.
BOOST_AUTO_TEST_CASE(wrong_gradients_of_one_kind_are_one) {
  CheckRow larger = invented("op, b", "x", {0.5, 1, 1.5, 2, 2.5, 3});
  larger.elements = 8;
  const std::string text = printed(
      {{},
       {invented("op, a", "x", {0.5, 1, 1.5, 2, 2.5, 3}), larger, invented("op, c", "x", {-1, -2, -3, -4, -5, -6}),
        invented("op, a", "y", right_numbers), invented("op, b", "y", right_numbers),
        invented("op, a", "z", right_numbers), invented("op, b", "z", {1, 2, 3, 4, 5, 9}),
        invented("op, a", "w", {1, 2, 3, 4, 5, 8}), invented("op, b", "w", right_numbers)},
       {}});
  BOOST_TEST(text.find("\nop, b: the gradient of x is wrong in 6 of 6 elements\n  looks  like 0.5 times") != text.npos,
             text);
  BOOST_TEST(text.find("  also   in 1 other case\n") != text.npos, text);
  BOOST_TEST(text.find("  always 1/2") != text.npos, text);
  BOOST_TEST(text.find("\nop, a: the gradient of x") == text.npos, text);
  BOOST_TEST(
      text.find("\nop, c: the gradient of x is wrong in 6 of 6 elements\n  looks  like the negative") != text.npos,
      text);
  BOOST_TEST(text.find("\nop, b: the gradient of z is wrong in 1 of 6 elements\n") != text.npos, text);
  BOOST_TEST(text.find("  worst  row 1, column 2: got 9, expected 6\n") != text.npos, text);
  BOOST_TEST(text.find("\nop, a: the gradient of w is wrong in 1 of 6 elements\n") != text.npos, text);
  BOOST_TEST(text.ends_with("\nop: the gradients of y are right\n"), text);
}

BOOST_AUTO_TEST_CASE(elements_of_a_wrong_gradient) {
  const std::string text = printed({{}, {invented("op", "x", {1, 2.5, 3, 4, 10, 6})}, {}}, true);
  BOOST_TEST(text.ends_with("  place                       got        expected  got - expected  got / expected\n"
                            "  row 0, column 1             2.5               2             0.5            1.25\n"
                            "  row 1, column 1              10               5               5               2\n"),
             text);
  BOOST_TEST(text.find("  worst  row 1, column 1: got 10, expected 5\n") != text.npos, text);
}

// Elements are listed by the criterion that failed the row: not only those beyond 1e-6, and none within the floor.
BOOST_AUTO_TEST_CASE(listed_elements_are_those_that_fail) {
  const std::string text =
      printed({{}, {invented("op", "x", {1, 2 + 2e-7, 1e-14, 4, 5, 6}, {1, 2, 0, 4, 5, 6}, {1e-10, 6e-3})}, {}}, true);
  BOOST_TEST(text.ends_with("  place                       got        expected  got - expected  got / expected\n"
                            "  row 0, column 1               2               2           2e-07               1\n"),
             text);
}

BOOST_AUTO_TEST_CASE(faults_come_first_and_costs_are_named) {
  CheckFindings found{{{"op", "writes before out"}}, {}, {}};
  for (const auto& [pass, stated, executed] :
       {std::tuple("forward", 3, 5), {"backward", 9, 2}, {"attention_exp", 4, 4}, {"forward_contractions", 1, 2}})
    found.costs.push_back({.operation = "op, 5",
                           .setting = "op",
                           .pass = pass,
                           .stated = {.add = stated},
                           .executed = {.add = executed},
                           .sizes = {{'N', 5}}});
  const std::string text = printed(found);
  BOOST_TEST(text.starts_with("Gradients and costs are checked after these faults are fixed.\n"));
  BOOST_TEST(
      text.find("1 of 4 stated costs agree with the executed operations\n"
                "\nop, 5: the cost of forward is wrong in add\n  stated 3, executed 5: 2 too few\n"
                "\nop, 5: the cost of backward is wrong in add\n  stated 9, executed 2: 7 too many\n"
                "\nop, 5: forward_contractions is wrong in add\n  stated 1, executed 2: 1 too few\n") != text.npos,
      text);
}

/// Returns a failed row of any shape.
CheckRow failed(const Shape& shape, const std::vector<std::string>& axes, const std::vector<double>& got,
                const std::vector<double>& expected) {
  CheckRow row{.operation = "op", .tensor = "x", .elements = shape.elements(), .axes = axes};
  row.same = {gradcheck_tolerance, 1e-3};
  row.all_got = row.all_expected = Tensor<double>(shape);
  std::copy(got.begin(), got.end(), row.all_got.begin());
  std::copy(expected.begin(), expected.end(), row.all_expected.begin());
  for (Index i = 0; i < row.elements; ++i) row.compare(i, row.all_got[i], row.all_expected[i]);
  row.diagnosis =
      diagnose(std::as_const(row.all_got).view(), std::as_const(row.all_expected).view(), row.axes, row.same);
  return row;
}

// Only wrong elements of the matrix with the worst element are listed, here the second head's.
BOOST_AUTO_TEST_CASE(elements_of_the_worst_matrix) {
  std::vector<double> expected;
  for (int i = 1; i <= 12; ++i) expected.push_back(i);
  std::vector<double> got = expected;
  got[1] = 3, got[8] = 36, got[10] = 12;
  const std::string text = printed({{}, {failed({2, 2, 3}, {"head", "row", "column"}, got, expected)}, {}}, true);
  BOOST_TEST(text.find("  worst  head 1, row 0, column 2: got 36, expected 9\n") != text.npos, text);
  BOOST_TEST(
      text.ends_with("  place                               got        expected  got - expected  got / expected\n"
                     "  head 1, row 0, column 2              36               9              27               4\n"
                     "  head 1, row 1, column 1              12              11               1        1.090909\n"),
      text);
}

BOOST_AUTO_TEST_CASE(at_most_twenty_elements_are_listed) {
  std::vector<double> expected, got;
  for (int i = 1; i <= 30; ++i) expected.push_back(i), got.push_back(2 * i + 1 / double(i));
  const std::string text = printed({{}, {failed({5, 6}, {"row", "column"}, got, expected)}, {}}, true);
  int lines = 0;
  for (std::size_t at = 0; (at = text.find("\n  row ", at)) != text.npos; ++at) ++lines;
  BOOST_TEST(lines == 20, text);
  BOOST_TEST(text.find("\n  row 3, column 1 ") != text.npos, text);
  BOOST_TEST(text.find("\n  row 3, column 2 ") == text.npos, text);
}

// A surrogate gradient is not compared with the derivative, so it may be reported as wrong, but not as right.
BOOST_AUTO_TEST_CASE(a_surrogate_gradient_is_not_called_right) {
  CheckRow x = invented("op", "x", right_numbers), y = invented("op", "y", {1, 2, 3, 4, 5, 9});
  x.note = y.note = "derivative of something else";
  const std::string text = printed({{}, {x, y}, {}});
  BOOST_TEST(text.find("\nop: the gradient of y is wrong in 1 of 6 elements\n") != text.npos, text);
  BOOST_TEST(text.find("are right") == text.npos, text);
  // Another case, without a surrogate, shows that x is right; none shows that y is.
  const std::string more =
      printed({{}, {x, y, invented("op, exact", "x", right_numbers), invented("op, exact", "y", right_numbers)}, {}});
  BOOST_TEST(more.ends_with("\nop: the gradients of x are right\n"), more);
}

// A wrong step is reported as a step; a correct step is not listed among correct gradients.
BOOST_AUTO_TEST_CASE(steps_are_no_gradients) {
  CheckRow right = invented("op", "A", right_numbers), wrong = invented("op", "dA", {1, 2, 3, 4, 5, 9});
  right.step = wrong.step = true;
  const std::string text = printed({{}, {right, wrong, invented("op", "x", right_numbers)}, {}});
  BOOST_TEST(text.find("\nop: the step dA is wrong in 1 of 6 elements\n") != text.npos, text);
  BOOST_TEST(text.ends_with("\nop: the gradients of x are right\n"), text);
}

// Softmax's source has "Undoing 3: dv = A^T dout, dA = dout v^T." and "Undoing 2: ...". A wrong dA is computed by the
// former; no step of the backward pass computes A.
BOOST_AUTO_TEST_CASE(backward_steps_of_a_wrong_step) {
  CheckRow row = invented("softmax", "dA", {1, 2, 3, 4, 5, 9});
  row.step = true;
  const std::string text = printed({{}, {row}, {}});
  BOOST_TEST(text.find("\n  step   undoing 3: dv = A^T dout, dA = dout v^T\n") != text.npos, text);
  row.tensor = "A";
  const std::string forward = printed({{}, {row}, {}});
  BOOST_TEST(forward.find("\nsoftmax: the step A is wrong") != forward.npos, forward);
  BOOST_TEST(forward.find("undoing") == forward.npos, forward);
}

// The first of several cases with the most elements is shown.
BOOST_AUTO_TEST_CASE(the_first_of_equal_cases_is_shown) {
  const std::vector<double> halves{0.5, 1, 1.5, 2, 2.5, 3};
  const std::string text = printed(
      {{}, {invented("op, a", "x", halves), invented("op, b", "x", halves), invented("op, c", "x", halves)}, {}});
  BOOST_TEST(text.find("\nop, a: the gradient of x is wrong") != text.npos, text);
  BOOST_TEST(text.find("\nop, b: ") == text.npos, text);
  BOOST_TEST(text.find("  also   in 2 other cases\n") != text.npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
