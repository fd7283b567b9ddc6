// Costs that are stated wrongly are found, and the difference is put into N, M and d.
#include "heed/checks/costcheck.h"
#include "heed/ops/elementary/arithmetic.h"
#include "src/checks/closed_form.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Sizes that all differ, and those of a shape with as many keys as queries.
const std::vector<std::vector<Index>> some_sizes{{2, 3, 8, 8, 4, 4}, {1, 2, 4, 4, 7, 7}, {2, 2, 9, 9, 5, 5},
                                                 {2, 1, 1, 1, 3, 3}, {2, 3, 5, 7, 4, 4}, {1, 2, 6, 4, 5, 5}};

/// The closed form that is found for f(B, H, N, M, d, e).
template <class F>
std::string form_of(const F& f) {
  std::vector<SizedNumber> numbers;
  for (const std::vector<Index>& s : some_sizes)
    numbers.push_back({{{'B', s[0]}, {'H', s[1]}, {'N', s[2]}, {'M', s[3]}, {'d', s[4]}, {'e', s[5]}},
                       f(s[0], s[1], s[2], s[3], s[4])});
  return closed_form(numbers);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(costcheck_finds)

BOOST_AUTO_TEST_CASE(closed_forms) {
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index) { return B * H * N * M; }) == "B H N M");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index, Index d) { return -2 * B * H * N * d; }) == "-2 B H N d");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index d) { return B * H * (N * M * d - N * M); }) ==
             "B H N M d - B H N M");
  BOOST_TEST(form_of([](Index B, Index H, Index N, Index M, Index d) { return (17 * N + M) % 13 * B * H * d; }) == "");
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
}

BOOST_AUTO_TEST_CASE(a_cost_that_is_stated_wrongly) {
  std::vector<CheckedCost> rows;
  for (const Index n : {4, 7, 9}) {
    // Squares, of which the operation states none.
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
