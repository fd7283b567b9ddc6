// Detection of wrongly stated costs, and the form of the difference in N, M and d.
#include "heed/checks/costcheck.h"

#include "examples/two_forms.h"
#include "heed/checks/attention_case.h"
#include "heed/checks/report.h"
#include "heed/ops/elementary/arithmetic.h"
#include "notebooks/solutions/aft-simple/aft-simple.h"
#include "src/checks/closed_form.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Sizes B, H, N, M, d, e of several shapes, some with N = M.
const std::vector<std::vector<Index>> some_sizes{{2, 3, 8, 8, 4, 4}, {1, 2, 4, 4, 7, 7}, {2, 2, 9, 9, 5, 5},
                                                 {2, 1, 1, 1, 3, 3}, {2, 3, 5, 7, 4, 4}, {1, 2, 6, 4, 5, 5}};

/// Returns the closed form found for f(B, H, N, M, d).
template <class F>
std::string form_of(const F& f) {
  std::vector<SizedNumber> numbers;
  for (const std::vector<Index>& s : some_sizes)
    numbers.push_back({{{'B', s[0]}, {'H', s[1]}, {'N', s[2]}, {'M', s[3]}, {'d', s[4]}, {'e', s[5]}},
                       f(s[0], s[1], s[2], s[3], s[4])});
  return closed_form(numbers);
}

/// A mechanism with a modified stated cost.
template <class Right>
class Misstated : public Right {
 public:
  explicit Misstated(std::function<void(Cost&)> change) : change_(std::move(change)) {}
  Cost cost(const AttentionShape& shape) const override {
    Cost cost = Right::cost(shape);
    change_(cost);
    return cost;
  }

 private:
  std::function<void(Cost&)> change_;
};

/// Returns the errors of the stated costs, as "forward_contractions mul 3072 1536", stated before executed.
template <class Right>
std::string errors_of(const std::function<void(Cost&)>& change, Index heads) {
  const Misstated<Right> mechanism(change);
  const AttentionCaseShape shape{"8 tokens", 2, heads, 8, 8, 4 * heads, 0, 0, 0};
  std::string text;
  for (const CostError& e : cost_errors(costcheck(*attention_case("misstated", mechanism, shape))))
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : "; ", e.pass, e.count, e.stated, e.executed);
  return text;
}

std::string relu_errors(const std::function<void(Cost&)>& change) { return errors_of<ReluByHand>(change, 3); }

}  // namespace

BOOST_AUTO_TEST_SUITE(costcheck_finds)

// 2 images, 3 heads, 8 tokens and 4 channels take 2 3 8 8 (4 + 4) = 3072 multiplications, and as many additions.
BOOST_AUTO_TEST_CASE(contractions_stated_wrongly) {
  BOOST_TEST(relu_errors([](Cost&) {}) == "");
  BOOST_TEST(relu_errors([](Cost& c) { ++c.forward_contractions.mul; }) == "forward_contractions mul 3074 3072");
  BOOST_TEST(relu_errors([](Cost& c) { --c.forward_contractions.mul; }) == "forward_contractions mul 3070 3072");
  BOOST_TEST(relu_errors([](Cost& c) { ++c.forward_contractions.add; }) == "forward_contractions add 3074 3072");
  BOOST_TEST(relu_errors([](Cost& c) { --c.forward_contractions.add; }) == "forward_contractions add 3070 3072");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions = {}; }) ==
             "forward_contractions mul 0 3072; forward_contractions add 0 3072");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.cmp = 1; }) == "forward_contractions cmp 2 0");
}

BOOST_AUTO_TEST_CASE(exponentials_stated_wrongly) {
  BOOST_TEST(relu_errors([](Cost& c) { ++c.attention_exp; }) == "attention_exp exp 2 0");
  // 2 images of 8 tokens and 4 channels take 64 exps.
  const auto aft_errors = [](const std::function<void(Cost&)>& change) { return errors_of<MyAft>(change, 1); };
  BOOST_TEST(aft_errors([](Cost&) {}) == "");
  BOOST_TEST(aft_errors([](Cost& c) { ++c.attention_exp; }) == "attention_exp exp 66 64");
  BOOST_TEST(aft_errors([](Cost& c) { --c.attention_exp; }) == "attention_exp exp 62 64");
  BOOST_TEST(aft_errors([](Cost& c) { c.attention_exp = 0; }) == "attention_exp exp 0 64");
}

// A mechanism must match the conventions that it declares.
BOOST_AUTO_TEST_CASE(declared_conventions) {
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.add -= 5, c.left_out.add = 5; }) == "");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.add -= 5, c.left_out.add = 4; }) ==
             "forward_contractions add 3062 3064");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.mul -= 5, c.left_out.mul = 5; }) == "");
  BOOST_TEST(errors_of<MyAft>([](Cost& c) { c.attention_exp -= 3, c.left_out.exp += 3; }, 1) == "");
  BOOST_TEST(errors_of<MyAft>([](Cost& c) { c.attention_exp -= 3, c.left_out.exp += 2; }, 1) ==
             "attention_exp exp 58 60");
  BOOST_TEST(relu_errors([](Cost& c) { c.attention_exp = 5, c.left_out.exp = -5; }) == "attention_exp exp 10 0");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.mul = 0, c.left_out.mul = 1536; }) ==
             "forward_contractions mul 0 384");
  BOOST_TEST(relu_errors([](Cost& c) { c.forward_contractions.mul = 9000, c.left_out.mul = 3072 - 9000; }) ==
             "forward_contractions mul 18000 6912");
  BOOST_TEST(relu_errors([](Cost& c) { c.bounded = true, c.forward_contractions.mul /= 2; }) == "");
  BOOST_TEST(relu_errors([](Cost& c) { c.bounded = true, c.forward_contractions.mul = c.forward.mul + 1; }) ==
             "forward_contractions mul 3458 3456");
  BOOST_TEST(relu_errors([](Cost& c) { c.bounded = true, c.forward_contractions.mul = 192; }) == "");
  BOOST_TEST(relu_errors([](Cost& c) { c.bounded = true, c.forward_contractions.mul = 0; }) ==
             "forward_contractions mul 0 384");
}

// Papers do not count recomputation and inner products of a backward pass: the executed operations are an upper bound.
// A lower bound is 768, an eighth of the 4 x 1536 executed multiplications of contractions.
BOOST_AUTO_TEST_CASE(contractions_of_the_backward_pass) {
  BOOST_TEST(relu_errors([](Cost& c) { --c.backward_contractions.mul; }) == "");
  BOOST_TEST(relu_errors([](Cost& c) { c.backward_contractions.mul = c.backward.mul + 1; }) ==
             "backward_contractions mul 6530 6528");
  BOOST_TEST(relu_errors([](Cost& c) {
               c.backward_contractions.add = c.backward.add + c.backward.mul + 1;
             }).starts_with("backward_contractions add"));
  BOOST_TEST(relu_errors([](Cost& c) { c.backward_contractions = {.mul = 768, .add = 768}; }) == "");
  BOOST_TEST(relu_errors([](Cost& c) { c.backward_contractions = {}; }) ==
             "backward_contractions mul 0 768; backward_contractions add 0 768");
}

BOOST_AUTO_TEST_CASE(a_stated_cost_is_named) {
  const Misstated<ReluByHand> mechanism([](Cost& c) { c.forward_contractions = 2 * c.forward_contractions; });
  const AttentionCaseShape shape{"8 tokens", 2, 3, 8, 8, 12, 0, 0, 0};
  std::ostringstream out;
  BOOST_TEST(!print_gradcheck(out, *attention_case("relu", mechanism, shape)));
  BOOST_TEST(out.str().find("4 of 5 stated costs agree with the executed operations") != std::string::npos, out.str());
  BOOST_TEST(out.str().find("relu, 8 tokens: forward_contractions is wrong in mul\n"
                            "  stated 6144, executed 3072: 3072 too many\n") != std::string::npos,
             out.str());
}

BOOST_AUTO_TEST_CASE(a_stated_cost_below_its_limit) {
  const Misstated<ReluByHand> mechanism([](Cost& c) { c.backward_contractions.mul = 0; });
  const AttentionCaseShape shape{"8 tokens", 2, 3, 8, 8, 12, 0, 0, 0};
  std::ostringstream out;
  BOOST_TEST(!print_gradcheck(out, *attention_case("relu", mechanism, shape)));
  BOOST_TEST(out.str().find("relu, 8 tokens: backward_contractions is wrong in mul\n"
                            "  stated 0, expected at least 768: 768 too few\n") != std::string::npos,
             out.str());
}

BOOST_AUTO_TEST_CASE(closed_forms) {
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index) { return B * H * N * M; }) == "B H N M");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index, Index d) { return -2 * B * H * N * d; }) == "-2 B H N d");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index d) { return B * H * (N * M * d - N * M); }) ==
             "B H N M d - B H N M");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index d) { return (17 * N + M) % 13 * B * H * d; }) == "");
}

// Closed forms may have halves, constants, and factors up to 16.
BOOST_AUTO_TEST_CASE(factors_of_closed_forms) {
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index, Index) { return B * H * N * (N - 1) / 2; }) ==
             "0.5 B H N^2 - 0.5 B H N");
  BOOST_TEST(form_of([](Index, Index, Index N, Index, Index) { return 2 * N + 3; }) == "2 N + 3");
  BOOST_TEST(form_of([](Index, Index, Index, Index, Index) { return 3; }) == "3");
  BOOST_TEST(form_of([](Index, Index, Index N, Index, Index) { return 16 * N; }) == "16 N");
  BOOST_TEST(form_of([](Index, Index, Index N, Index, Index) { return 17 * N; }) == "");
}

BOOST_AUTO_TEST_CASE(a_size_that_is_always_the_same) {
  std::vector<SizedNumber> numbers;
  for (const Index N : {4, 6, 7}) numbers.push_back({{{'B', 2}, {'H', 3}, {'N', N}}, -3 * N * N});
  BOOST_TEST(closed_form(numbers) == "-H N^2");
}

BOOST_AUTO_TEST_CASE(too_few_numbers_say_nothing) {
  BOOST_TEST(closed_form({}) == "");
  const std::vector<SizedNumber> one{{{{'N', 5}, {'d', 4}}, 20}};
  BOOST_TEST(closed_form(one) == "");
  // Repeated sizes do not count as a second set; a form with two terms needs three sets.
  const std::vector<SizedNumber> twice{one[0], one[0]};
  BOOST_TEST(closed_form(twice) == "");
  std::vector<SizedNumber> numbers;
  for (const Index N : {4, 6}) numbers.push_back({{{'N', N}}, N + 3});
  BOOST_TEST(closed_form(numbers) == "");
  numbers.push_back({{{'N', 9}}, 12});
  BOOST_TEST(closed_form(numbers) == "N + 3");
}

/// Returns each error as "OPERATION DIFFERENCE, FORM": the executed count minus the stated one, and its closed form.
/// The rows are of one pass with additions only.
std::string named_errors(const std::vector<CheckedCost>& rows) {
  std::string text;
  for (const CostError& e : cost_errors(rows))
    text += fmt::format("{}{} {}, {}", text.empty() ? "" : "; ", e.operation, e.executed - e.stated, e.difference);
  return text;
}

// One error is reported for all shapes of a setting: the first of those with the largest absolute difference.
// Operations without a setting have one error each.
BOOST_AUTO_TEST_CASE(one_error_for_each_setting) {
  const auto row = [](const char* operation, const char* setting, Index N, Index stated, Index executed) {
    CheckedCost cost{.operation = operation,
                     .setting = setting,
                     .pass = "forward",
                     .stated = {.add = stated},
                     .executed = {.add = executed}};
    if (N > 0) cost.sizes = {{'N', N}};
    return cost;
  };
  BOOST_TEST(named_errors({row("op, 4", "op", 4, 1, 4), row("op, 7", "op", 7, 2, 5)}) == "op, 4 3, 3");
  BOOST_TEST(named_errors({row("op, 4", "op", 4, 1, 4), row("op, 7", "op", 7, 10, 1)}) == "op, 7 -9, ");
  BOOST_TEST(named_errors({row("op, 4", "op", 4, 8, 4), row("op, 7", "op", 7, 9, 2), row("op, 9", "op", 9, 9, 0)}) ==
             "op, 9 -9, -N");
  BOOST_TEST(named_errors({row("mean", "", 0, 1, 3), row("max", "", 0, 7, 7), row("sum", "", 0, 1, 6)}) ==
             "mean 2, ; sum 5, ");
  BOOST_TEST(named_errors({row("a, 4", "a", 4, 1, 2), row("b, 4", "b", 4, 1, 3)}) == "a, 4 1, ; b, 4 2, ");
}

BOOST_AUTO_TEST_CASE(a_cost_that_is_stated_wrongly) {
  std::vector<CheckedCost> rows;
  for (const Index n : {4, 7, 9}) {
    // Squares, whose operation states no cost.
    CheckCase c = check_case("squares", {{"x", {n, 3}}}, [](auto& tape, const auto& v) {
      const auto x = v[0];
      return tape.record(
          {"squares", {}}, x.shape(), {x},
          [=](auto* y) {
            for (Index i = 0; i < x.size(); ++i) y[i] = x.data()[i] * x.data()[i];
          },
          [](const auto&) {});
    });
    c.setting = "squares", c.name += fmt::format(", {}", n), c.sizes = {{'N', n}, {'d', 3}};
    for (const CheckedCost& row : costcheck(c)) rows.push_back(row);
  }
  BOOST_TEST((!rows[0].passed() && rows[1].passed()));
  const std::vector<CostError> errors = cost_errors(rows);
  BOOST_REQUIRE(errors.size() == 1u);
  BOOST_TEST(errors[0].operation == "squares, 9");
  BOOST_TEST(errors[0].pass == "forward");
  BOOST_TEST(errors[0].count == "mul");
  BOOST_TEST((errors[0].stated == 0 && errors[0].executed == 27));
  BOOST_TEST(errors[0].difference == "3 N");
}

BOOST_AUTO_TEST_SUITE_END()
