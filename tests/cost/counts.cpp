// Sums and multiples of costs, and the contractions among counted operations.
#include "heed/cost/counted.h"

#include "heed/cost/energy.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Returns counts that differ from each other, from `first` on.
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

// Each field of three costs together, and of three times a cost, is three times the field.
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

// Contractions of a sum of three terms: products, also of two differences, are 1 multiplication and 1 addition each,
// squares of a difference 1 and 2, magnitudes of a difference 2 additions.
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

BOOST_AUTO_TEST_SUITE_END()
