// Formulas, hidden answers, and messages about wrong ones.
#include "src/apps/grading/marks/answer_marks.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace heed;

namespace {

const std::map<std::string, double> values{{"N", 5}, {"total", 1e6}};

LabPoint by_formula(const std::string& formula, double tolerance = 0.01) {
  return {.name = "p", .marks = 1, .formula = formula, .tolerance = tolerance};
}

std::string says(const LabPoint& point, const Answer& answer) {
  const Mark mark = mark_answer("lab", point, &answer, values);
  return mark.right ? "right" : mark.says.empty() ? "wrong" : mark.says[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_marks)

BOOST_AUTO_TEST_CASE(formulas) {
  const auto value = [](const std::string& text) { return formula_value(text, values); };
  BOOST_TEST(value("1 + 2 * 3 - 4 / 2") == 5);
  BOOST_TEST(value("8 - 4 - 2 + 1 - 64 / 4 / 2 * 3") == -21);
  BOOST_TEST(value("-2^2 + 2^3^2 / 512") == -3);
  BOOST_TEST(value("(1 + N) * -total / 1e6") == -6);
  BOOST_TEST(value(" sqrt(16) + max(2, min(3, 7)) + abs(-1) + log(exp(2)) ") == 10,
             boost::test_tools::tolerance(1e-12));
  for (const char* const wrong : {"", "1 +", "(1", "1)", "M", "N N", "sin(1)", "min(1)", "1 / 0", "2 ^ 1e9",
                                  "max(1, log(-1))", "min(log(-1), 1)", "1..2", "é"})
    BOOST_CHECK_THROW(value(wrong), Error);
  BOOST_CHECK_THROW(value(std::string(100000, '(')), Error);
  BOOST_CHECK_THROW(value(std::string(100000, '-')), Error);
}

BOOST_AUTO_TEST_CASE(numbers_within_their_tolerance) {
  BOOST_TEST(says(by_formula("total"), 1.005e6) == "right");
  BOOST_TEST(says(by_formula("total"), 1.02e6) == "it is wrong");
  BOOST_TEST(says(by_formula("total"), 0.98e6) == "it is wrong");
  BOOST_TEST(says(by_formula("total"), 1e3) == "it is wrong by a factor of more than 10");
  // Answers on both sides of the tolerance, for either sign, and on both sides of a factor of 10.
  for (const double sign : {1.0, -1.0}) {
    const LabPoint point = by_formula(sign > 0 ? "total" : "-total");
    for (const double right : {0.9901, 1.0099}) BOOST_TEST(says(point, sign * right * 1e6) == "right", right);
    for (const double wrong : {0.9899, 1.0101, 0.11, 9.9})
      BOOST_TEST(says(point, sign * wrong * 1e6) == "it is wrong", wrong);
    for (const double far : {0.09, 10.1})
      BOOST_TEST(says(point, sign * far * 1e6) == "it is wrong by a factor of more than 10", far);
    BOOST_TEST(says(point, sign * -1e6) == "its sign is wrong");
  }
  BOOST_TEST(says(by_formula("0"), 0.0) == "right");
  BOOST_TEST(says(by_formula("0"), 2.0) == "it is wrong");
  BOOST_TEST(says(by_formula("total"), 0.0) == "it is wrong");
  BOOST_TEST(says(by_formula("total"), -1e6) == "its sign is wrong");
  BOOST_TEST(says(by_formula("-total"), -1e6) == "right");
  BOOST_TEST(says(by_formula("total", 0), 1e6) == "right");
  BOOST_TEST(says(by_formula("total"), std::nan("")) == "it is not a number");
  BOOST_TEST(says(by_formula("total"), std::string("many")) == "it is a string; expected a number");
  BOOST_TEST(says(by_formula("total"), std::string("not yet")) == "not yet");
  BOOST_TEST(mark_answer("lab", by_formula("1"), nullptr, values).says[0] == "there is no answer");
}

BOOST_AUTO_TEST_CASE(hidden_answers) {
  const auto hidden = [](const Answer& answer, Index digits = 3) {
    return LabPoint{.name = "p", .marks = 1, .hash = answer_hash("lab", "p", answer, digits), .digits = digits};
  };
  const LabPoint word = hidden(std::string("Matrix Product"));
  BOOST_TEST(says(word, std::string("matrix  product ")) == "right");
  BOOST_TEST(says(word, std::string("matrix")) == "wrong");
  BOOST_TEST(says(word, 3.0) == "wrong");
  const LabPoint number = hidden(0.03456);
  for (const double right : {0.03456, 0.0346, 0.0345, 0.0347}) BOOST_TEST(says(number, right) == "right", right);
  for (const double wrong : {0.0343, 0.0349, 0.346, -0.0346, 0.0}) BOOST_TEST(says(number, wrong) == "wrong", wrong);
  BOOST_TEST(says(hidden(0.0), 0.0) == "right");
  BOOST_TEST(says(hidden(99.96), 100.0) == "right");
  // Neighbouring numbers of three digits: each is accepted in place of the other, even at powers of ten, where their
  // last digits have different units.
  for (const auto& [less, more] : {std::pair(9.98, 9.99), {9.99, 10.0}, {10.0, 10.1}, {0.999, 1.0}, {1.0, 1.01}})
    for (const double sign : {1.0, -1.0}) {
      BOOST_TEST(says(hidden(sign * less), sign * more) == "right", less);
      BOOST_TEST(says(hidden(sign * more), sign * less) == "right", less);
    }
  BOOST_TEST(says(hidden(10.0), 9.98) == "wrong");
  BOOST_TEST(says(hidden(9.98), 10.0) == "wrong");
  BOOST_TEST(says(hidden(9.99), 10.1) == "wrong");
  BOOST_TEST(says(hidden(9.996), 10.1) == "right");  // 9.996 is 10.0 to three digits
  BOOST_TEST(says(hidden(1.0, 1), 0.9) == "right");
  BOOST_TEST(says(hidden(0.9, 1), 1.0) == "right");
  BOOST_TEST(says(hidden(0.9, 1), 2.0) == "wrong");
  BOOST_TEST(says(hidden(1.0), 5e-324) == "wrong");
  BOOST_TEST(says(hidden(1.0), 1e-310) == "wrong");
  BOOST_TEST(says(hidden(1.0, 1), 1.7e308) == "wrong");
  // Labs may have stored these hashes, so they must not change.
  BOOST_TEST(answer_hash("lab", "p", 9.996, 3) == "aa7f68573b058d23");
  BOOST_TEST(answer_hash("lab", "p", -0.0125, 2) == "da99d3e95f325dd2");
  BOOST_TEST(answer_hash("lab", "p", 123456.0, 5) == "a1ce35f3159f8188");
  // Numbers that are not finite are words.
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Answer& answer :
       {Answer(infinity), Answer(std::string("Inf")), Answer(std::string("Infinity")), Answer(std::string("+inf"))}) {
    BOOST_TEST(says(hidden(infinity), answer) == "right");
    BOOST_TEST(says(hidden(std::string("inf")), answer) == "right");
    BOOST_TEST(says(hidden(answer), std::string("infinity")) == "right");
  }
  BOOST_TEST(says(hidden(-infinity), std::string("-inf")) == "right");
  BOOST_TEST(says(hidden(std::nan("")), std::string("NaN")) == "right");
  BOOST_TEST(says(hidden(infinity), -infinity) == "it is not a number");
  BOOST_TEST(says(hidden(1.0), std::nan("")) == "it is not a number");
  // A finite number in quotes is always wrong, with a reason.
  for (const char* const quoted : {"3", " 0.0346 ", "+3.46e-2", "-1"})
    for (const LabPoint& point : {word, number})
      BOOST_TEST(says(point, std::string(quoted)) == "it is a string; a number has no quotes", quoted);
  for (const char* const other : {"", "+", "3 heads", "0,0346", "+-1", "inf", "nan", "1e999"})
    BOOST_TEST(says(number, std::string(other)) == "wrong", other);
  // The hash depends on the lab and the point.
  BOOST_TEST(answer_hash("lab", "p", 1.0, 3) != answer_hash("lab", "q", 1.0, 3));
  BOOST_TEST(answer_hash("lab", "p", 1.0, 3) != answer_hash("other", "p", 1.0, 3));
}

BOOST_AUTO_TEST_SUITE_END()
