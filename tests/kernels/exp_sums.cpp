#include "heed/counted.h"
#include "heed/kernels/exp_sums.h"
#include "heed/kernels/gate.h"
#include "heed/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(exp_sums)

/// Numbers in [low, high), the same for all types.
template <class T>
std::vector<T> draw(Index count, std::uint64_t seed, double low, double high) {
  std::vector<T> values;
  for (Index i = 0; i < count; ++i) values.push_back(T(static_cast<float>(RandomStream(seed).uniform(i, low, high))));
  return values;
}

template <class T>
struct Sums {
  explicit Sums(Index n) : scale(n), mass(n), value(n) {}
  kernels::ExpSums<T> view() { return {scale.data(), mass.data(), value.data()}; }
  T mean(Index c) const { return value[c] / mass[c]; }
  std::vector<T> scale, mass, value;
};

/// Two passes, key by key, and two halves joined agree, however far apart the keys lie and however large they are.
template <class T>
void check_orders(double spread, double offset, double tolerance) {
  const Index keys = 7, n = 3;
  std::vector<T> k = draw<T>(keys * n, 1, -spread, spread), v = draw<T>(keys * n, 2, -1, 1);
  for (T& x : k) x += T(offset);
  Sums<T> passes(n), single(n), first(n), second(n);
  const T* const none = nullptr;
  kernels::exp_sums_of(keys, n, k.data(), n, v.data(), n, none, passes.view());
  kernels::exp_sums_of(1, n, k.data(), n, v.data(), n, none, single.view());
  for (Index s = 1; s < keys; ++s)
    kernels::exp_sums_add<T>(n, k.data() + s * n, nullptr, v.data() + s * n, single.view());
  kernels::exp_sums_of(3, n, k.data(), n, v.data(), n, none, first.view());
  kernels::exp_sums_of(4, n, k.data() + 3 * n, n, v.data() + 3 * n, n, none, second.view());
  kernels::exp_sums_add<T>(n, second.scale.data(), second.mass.data(), second.value.data(), first.view());
  for (Index c = 0; c < n; ++c) {
    double largest = -1e300, mass = 0, value = 0;
    for (Index s = 0; s < keys; ++s) largest = std::max(largest, static_cast<double>(k[s * n + c]));
    for (Index s = 0; s < keys; ++s) {
      const double e = std::exp(static_cast<double>(k[s * n + c]) - largest);
      mass += e, value += e * static_cast<double>(v[s * n + c]);
    }
    for (const Sums<T>* sums : {&passes, &single, &first}) {
      BOOST_TEST(static_cast<double>(sums->scale[c]) == largest);
      BOOST_TEST(std::abs(static_cast<double>(sums->mass[c]) - mass) <= tolerance * mass);
      BOOST_TEST(std::abs(static_cast<double>(sums->mean(c)) - value / mass) <= tolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE(all_orders_agree_whatever_the_range) {
  for (const double spread : {0.5, 30.0, 3000.0})
    for (const double offset : {0.0, 1000.0, -1000.0}) {
      check_orders<double>(spread, offset, 1e-14);
      check_orders<float>(spread, offset, 1e-6);
    }
}

BOOST_AUTO_TEST_CASE(a_large_key_does_not_round_the_bias_away) {
  // In float 1000 + 0.00001 is 1000: subtracting 1000 first keeps the bias.
  const std::vector<float> k{1000, 1000}, v{0, 1}, bias{0, 1e-5f};
  Sums<float> sums(1);
  kernels::exp_sums_of(2, 1, k.data(), 1, v.data(), 1, bias.data(), sums.view());
  BOOST_TEST(sums.mass[0] == 1 + std::exp(1e-5f));
}

BOOST_AUTO_TEST_CASE(one_key_has_all_the_weight_and_no_gradient) {
  const std::vector<double> k{-700, 3}, v{2, -5}, bias{40}, dy{1, 1};
  Sums<double> sums(2);
  kernels::exp_sums_of(1, 2, k.data(), 2, v.data(), 2, bias.data(), sums.view());
  std::vector<double> dk(2, 9), dv(2, 9);
  double dbias = 9;
  kernels::exp_sums_backward(1, 2, k.data(), 2, v.data(), 2, bias.data(), sums.scale.data(), dy.data(), v.data(),
                             Update::assign, dk.data(), 2, dv.data(), 2, &dbias);
  BOOST_TEST(sums.mean(0) == 2);
  BOOST_TEST(sums.mean(1) == -5);
  BOOST_TEST(dk == std::vector<double>(2, 0.0), boost::test_tools::per_element());
  BOOST_TEST(dv == std::vector<double>(2, 1.0), boost::test_tools::per_element());
  BOOST_TEST(dbias == 0);
}

BOOST_AUTO_TEST_CASE(factors_of_the_product_are_the_exponentials) {
  const std::vector<double> x{5, 1, 3, 900};
  std::vector<double> e(4);
  BOOST_TEST(kernels::exp_of_row<double>(4, 1, 3, x.data(), e.data()) == 3);
  const std::vector<double> expected{0, std::exp(-2), 1, 0};
  BOOST_TEST(e == expected, boost::test_tools::per_element());
  const std::vector<double> k{1, 2, 4, 0}, v{10, 20, 30, 40};
  std::vector<double> maximum(2), f(8);
  kernels::exp_of_columns(2, 2, k.data(), 2, v.data(), 2, maximum.data(), f.data());
  BOOST_TEST(maximum[0] == 4);
  BOOST_TEST(maximum[1] == 2);
  BOOST_TEST(f[0] == std::exp(-3));
  BOOST_TEST(f[1] == 1);
  BOOST_TEST(f[2] == 10 * std::exp(-3));
  BOOST_TEST(f[7] == 40 * std::exp(-2));
}

template <class F>
Counts counted(F f) {
  Counted::tally() = {};
  f();
  return Counted::tally();
}

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_contracts) {
  const Index keys = 5, n = 3;
  std::vector<Counted> k = draw<Counted>(keys * n, 1, -2, 2), v = draw<Counted>(keys * n, 2, -1, 1),
                       b = draw<Counted>(keys, 3, -1, 1);
  std::vector<Counted> dk(keys * n), dv(keys * n), db(keys), f(2 * keys * n);
  Sums<Counted> sums(n), more(n);
  const Counted* const none = nullptr;
  const auto of = [&](const Counted* bias) {
    return counted([&] { kernels::exp_sums_of(keys, n, k.data(), n, v.data(), n, bias, sums.view()); });
  };
  BOOST_TEST((of(none) == n * Counts{.mul = keys, .add = 3 * keys - 2, .exp = keys, .cmp = keys - 1}));
  BOOST_TEST((of(b.data()) == n * Counts{.mul = keys, .add = 5 * keys - 2, .exp = keys, .cmp = keys - 1}));
  BOOST_TEST((counted([&] { kernels::exp_sums_add(n, k.data(), none, v.data(), sums.view()); }) ==
              n * Counts{.mul = 3, .add = 3, .exp = 1, .cmp = 1}));
  BOOST_TEST((counted([&] { kernels::exp_sums_add(n, k.data(), v.data(), v.data(), sums.view()); }) ==
              n * Counts{.mul = 4, .add = 3, .exp = 1, .cmp = 1}));
  BOOST_TEST((counted([&] {
                kernels::exp_sums_at_key(n, k.data(), v.data(), sums.view(), Update::accumulate, dk.data(), dv.data());
              }) == n * Counts{.mul = 3, .add = 4, .exp = 1}));
  BOOST_TEST((counted([&] {
                kernels::exp_sums_backward(keys, n, k.data(), n, v.data(), n, b.data(), sums.scale.data(), v.data(),
                                           v.data(), Update::assign, dk.data(), n, dv.data(), n, db.data());
              }) == keys * Counts{.mul = 2 * n, .add = 3 * n + n - 1, .exp = n}));
  BOOST_TEST(
      (counted([&] { kernels::exp_of_row(keys, 1, 4, b.data(), db.data()); }) == Counts{.add = 3, .exp = 3, .cmp = 2}));
  BOOST_TEST((counted([&] { kernels::exp_of_columns(keys, n, k.data(), n, v.data(), n, dk.data(), f.data()); }) ==
              n * Counts{.mul = keys, .add = keys, .exp = keys, .cmp = keys - 1}));
}

BOOST_AUTO_TEST_CASE(gate_is_finite_everywhere) {
  const std::vector<float> q{-1000, -1, 0, 1, 1000}, y{1, 1, 1, 1, 1};
  std::vector<float> out(5), dq(5), dy(5);
  kernels::gate_forward<float>(5, q.data(), y.data(), out.data());
  kernels::gate_backward<float>(5, q.data(), y.data(), y.data(), Update::assign, dq.data(), dy.data());
  const std::vector<double> gate{0, 0.2689414213699951, 0.5, 0.7310585786300049, 1};
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(std::abs(out[i] - gate[i]) < 1e-7);
    BOOST_TEST(std::abs(dq[i] - gate[i] * (1 - gate[i])) < 1e-7);
    BOOST_TEST(dy[i] == out[i]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
