// Sums and multiples of costs, and the contractions among counted operations.
#include "heed/cost/counted.h"

#include "heed/cost/energy.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// Returns consecutive counts, starting at `first`, and advances `first`.
Counts distinct(Index& first) {
  Counts counts;
  for (const CountKind& kind : count_kinds) counts.*kind.member = first++;
  return counts;
}

void check_multiple(const Counts& once, Index n, const Counts& found) {
  for (const CountKind& kind : count_kinds)
    BOOST_TEST((found.*kind.member) == (n * once.*kind.member), kind.name << " of " << n);
}

void check_multiple(const Cost& once, Index n, const Cost& found) {
  for (const auto& part :
       {&Cost::forward, &Cost::backward, &Cost::forward_contractions, &Cost::backward_contractions, &Cost::left_out})
    check_multiple(once.*part, n, found.*part);
  BOOST_TEST(found.attention_exp == n * once.attention_exp);
  BOOST_TEST(found.distances == n * once.distances);
  BOOST_TEST(found.bounded == once.bounded);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(counts)

// Each field of the sum of three equal costs, and of three times a cost, is three times that of the cost.
BOOST_AUTO_TEST_CASE(costs_are_added_and_multiplied_field_by_field) {
  Index next = 1;
  Cost cost;
  cost.forward = distinct(next), cost.backward = distinct(next);
  cost.forward_contractions = distinct(next), cost.backward_contractions = distinct(next);
  cost.left_out = distinct(next);
  cost.attention_exp = next++, cost.distances = next++;
  for (const bool bounded : {false, true}) {
    cost.bounded = bounded;
    check_multiple(cost, 3, cost + cost + cost);
    check_multiple(cost, 3, 3 * cost);
    Cost plain;
    plain += cost;
    check_multiple(cost, 1, plain);
    BOOST_TEST((cost + Cost{}).bounded == bounded);
  }
  check_multiple(cost.forward, 3, cost.forward + cost.forward + cost.forward);
  check_multiple(cost.forward, 3, 3 * cost.forward);
}

// Contractions of a sum of three terms. A product counts as 1 multiplication and 1 addition, even if its factors are
// two differences; the square of a difference as 1 multiplication and 2 additions; the magnitude of a difference as 2
// additions.
BOOST_AUTO_TEST_CASE(terms_of_contractions_have_kinds) {
  const Counted a = 5, b = 3, c = 4, d = 1;
  const auto counts_of = [](const auto& term) {
    Counted::contractions() = {};
    Counted sum = 0;
    for (int i = 0; i < 3; ++i) sum += term();
    return Counted::contractions();
  };
  const Counts product{.mul = 3, .add = 3}, square{.mul = 3, .add = 6}, magnitude{.add = 6};
  BOOST_TEST((counts_of([&] { return a * b; }) == product));
  BOOST_TEST((counts_of([&] { return (a - b) * (c - d); }) == product));
  BOOST_TEST((counts_of([&] { return (a - b) * c; }) == product));
  BOOST_TEST((counts_of([&] {
                const Counted difference = a - b;
                return difference * difference;
              }) == square));
  BOOST_TEST((counts_of([&] { return abs(a - b); }) == magnitude));
  BOOST_TEST((counts_of([&] { return a - b; }) == Counts{}));
}

// A term may be subtracted or negated; a sum may begin with its first term or with 0, and two sums may be added. Sums
// that begin with another number, sums of terms that are not products, and products alone are not contractions.
BOOST_AUTO_TEST_CASE(sums_that_are_contractions) {
  const Counted a = 5, b = 3, c = 4, d = 1;
  const auto counts_of = [](const auto& sum) {
    Counted::contractions() = {};
    static_cast<void>(sum());
    return Counted::contractions();
  };
  const Counts one{.mul = 1, .add = 1}, two{.mul = 2, .add = 2}, none;
  BOOST_TEST((counts_of([&] { return a * b + c * d; }) == two));
  BOOST_TEST((counts_of([&] { return Counted(0) - a * b - c * d; }) == two));
  BOOST_TEST((counts_of([&] { return -(a * b) + c * d; }) == two));
  BOOST_TEST((counts_of([&] { return (a * b + c * d) + (a * d + b * c); }) == 2 * two));
  BOOST_TEST((counts_of([&] { return (a * b + c * d) * c; }) == two));
  BOOST_TEST((counts_of([&] { return as_sum(a * b); }) == one));
  BOOST_TEST((counts_of([&] { return as_sum(as_sum(a * b)) + c * d; }) == two));
  BOOST_TEST((counts_of([&] { return Counted(1) + a * b; }) == none));
  BOOST_TEST((counts_of([&] { return Counted(1) + a * b + c * d; }) == none));
  BOOST_TEST((counts_of([&] { return a * b; }) == none));
  BOOST_TEST((counts_of([&] { return a * b / c + d; }) == none));
  BOOST_TEST((counts_of([&] { return exp(a) + exp(b); }) == none));
  BOOST_TEST((counts_of([&] { return a + b; }) == none));
  BOOST_TEST(((a * b).is_product() && !(a + b).is_product() && !as_sum(a * b).is_product() && !a.is_product()));
}

// Each operation except negation is counted once, under its kind; all return the right value.
BOOST_AUTO_TEST_CASE(operations_are_counted_by_kind) {
  const Counted a = 3, b = 2, quarter = 0.25;
  const auto check = [](const char* what, const Counts& expected, double value, const auto& operation) {
    Counted::tally() = {};
    const double got = static_cast<double>(Counted(operation()));
    BOOST_TEST((Counted::tally() == expected), what);
    BOOST_TEST(got == value, boost::test_tools::tolerance(1e-15));
  };
  check("a + b", {.add = 1}, 5, [&] { return a + b; });
  check("a - b", {.add = 1}, 1, [&] { return a - b; });
  check("a * b", {.mul = 1}, 6, [&] { return a * b; });
  check("a / b", {.div = 1}, 1.5, [&] { return a / b; });
  check("-a", {}, -3, [&] { return -a; });
  check("a < b", {.cmp = 1}, 0, [&] { return a < b; });
  check("a <= a", {.cmp = 1}, 1, [&] { return a <= a; });
  check("a > b", {.cmp = 1}, 1, [&] { return a > b; });
  check("b >= a", {.cmp = 1}, 0, [&] { return b >= a; });
  check("abs", {.cmp = 1}, 3, [&] { return abs(-a); });
  check("sqrt", {.sqrt = 1}, 0.5, [&] { return sqrt(quarter); });
  check("exp", {.exp = 1}, std::exp(3), [&] { return exp(a); });
  check("log", {.log = 1}, std::log(3), [&] { return log(a); });
  check("erf", {.erf = 1}, std::erf(0.25), [&] { return erf(quarter); });
  check("tanh", {.other = 1}, std::tanh(0.25), [&] { return tanh(quarter); });
  check("pow", {.other = 1}, 9, [&] { return pow(a, b); });
  const auto changed = [&](const auto& change) {
    Counted x = a;
    change(x);
    return x;
  };
  check("a += b", {.add = 1}, 5, [&] { return changed([&](Counted& x) { x += b; }); });
  check("a -= b", {.add = 1}, 1, [&] { return changed([&](Counted& x) { x -= b; }); });
  check("a *= b", {.mul = 1}, 6, [&] { return changed([&](Counted& x) { x *= b; }); });
  check("a /= b", {.div = 1}, 1.5, [&] { return changed([&](Counted& x) { x /= b; }); });
}

// A sum of n terms has n - 1 additions in the textbook algorithm, and n in papers; an empty sum has none.
BOOST_AUTO_TEST_CASE(counts_of_products_and_sums) {
  BOOST_TEST((product_counts(2, 3, 4) == Counts{.mul = 24, .add = 18}));
  BOOST_TEST((product_counts(2, 3, 1) == Counts{.mul = 6}));
  BOOST_TEST((product_counts(2, 3, 0) == Counts{}));
  BOOST_TEST((product_contractions(2, 3, 4) == Counts{.mul = 24, .add = 24}));
  BOOST_TEST((sum_counts(5) == Counts{.add = 4}));
  BOOST_TEST((sum_counts(0) == Counts{}));
}

BOOST_AUTO_TEST_SUITE_END()
