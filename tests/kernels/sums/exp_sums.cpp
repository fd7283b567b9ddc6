#include "heed/cost/counted.h"
#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/elements/gate.h"
#include "heed/base/random.h"

#include "support/compare.h"

#include <vector>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(exp_sums)

/// Returns uniform random numbers in [low, high), the same for each T.
template <class T>
std::vector<T> draw(Index count, std::uint64_t seed, double low, double high) {
  std::vector<T> values;
  for (Index i = 0; i < count; ++i) values.push_back(T(static_cast<float>(RandomStream(seed).uniform(i, low, high))));
  return values;
}

template <class T>
struct Sums {
  explicit Sums(Index n) : scale(n), mass(n), value(n) {}
  kernels::ExpSums<T> view() { return {row(scale), row(mass), row(value)}; }
  static Matrix<T> row(std::vector<T>& numbers) { return {numbers.data(), 1, static_cast<Index>(numbers.size())}; }
  T mean(Index c) const { return value[c] / mass[c]; }
  std::vector<T> scale, mass, value;
};

/// Returns contiguous keys and values of n channels.
template <class T>
kernels::KeysAndValues<const T> keys_of(Index keys, Index n, const std::vector<T>& k, const std::vector<T>& v) {
  return {{k.data(), keys, n}, {v.data(), keys, n}};
}

/// Returns a key as an operand to add to sums.
template <class T>
kernels::ExpSums<const T> as_sum(const kernels::KeysAndValues<const T>& key) {
  return {key.k, {}, key.v};
}

/// Checks sums over all keys at once, sums to which keys are added one by one, and joined sums over two parts of the
/// keys, for keys within `spread` of `offset`.
template <class T>
void check_orders(double spread, double offset, double tolerance) {
  const Index keys = 7, n = 3;
  std::vector<T> k = draw<T>(keys * n, 1, -spread, spread), v = draw<T>(keys * n, 2, -1, 1);
  for (T& x : k) x += T(offset);
  Sums<T> passes(n), single(n), first(n), second(n);
  const auto all = keys_of(keys, n, k, v);
  kernels::exp_sums_of(all, nullptr, passes.view());
  kernels::exp_sums_of(all.row(0), nullptr, single.view());
  for (Index s = 1; s < keys; ++s) kernels::exp_sums_add(as_sum(all.row(s)), single.view());
  kernels::exp_sums_of(all.middle_rows(0, 3), nullptr, first.view());
  kernels::exp_sums_of(all.middle_rows(3, 4), nullptr, second.view());
  kernels::exp_sums_add(second.view(), first.view());
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
  // In float 1000 + 0.00001 is 1000: subtracting 1000 first preserves the bias.
  const std::vector<float> k{1000, 1000}, v{0, 1}, bias{0, 1e-5f};
  Sums<float> sums(1);
  kernels::exp_sums_of(keys_of(2, 1, k, v), bias.data(), sums.view());
  BOOST_TEST(sums.mass[0] == 1 + std::exp(1e-5f));
}

BOOST_AUTO_TEST_CASE(one_key_has_all_the_weight_and_no_gradient) {
  const std::vector<double> k{-700, 3}, v{2, -5}, bias{40}, dy{1, 1};
  Sums<double> sums(2);
  const auto key = keys_of(1, 2, k, v);
  kernels::exp_sums_of(key, bias.data(), sums.view());
  std::vector<double> dk(2, 9), dv(2, 9);
  double dbias = 9;
  kernels::exp_sums_backward(key, bias.data(), {sums.view().scale, key.v, {dy.data(), 1, 2}}, Update::assign,
                             kernels::KeysAndValues<double>{{dk.data(), 1, 2}, {dv.data(), 1, 2}}, &dbias);
  BOOST_TEST(sums.mean(0) == 2);
  BOOST_TEST(sums.mean(1) == -5);
  BOOST_TEST(dk == std::vector<double>(2, 0.0), boost::test_tools::per_element());
  BOOST_TEST(dv == std::vector<double>(2, 1.0), boost::test_tools::per_element());
  BOOST_TEST(dbias == 9);  // unchanged
}

BOOST_AUTO_TEST_CASE(factors_of_the_product_are_the_exponentials) {
  const std::vector<double> x{5, 1, 3, 900};
  std::vector<double> e(4);
  BOOST_TEST(kernels::exp_of_row({x.data(), 1, 4}, 1, 3, Matrix<double>(e.data(), 1, 4)) == 3);
  const std::vector<double> expected{0, std::exp(-2), 1, 0};
  BOOST_TEST(e == expected, boost::test_tools::per_element());
  const std::vector<double> k{1, 2, 4, 0}, v{10, 20, 30, 40};
  std::vector<double> maximum(2), f(8);
  kernels::exp_of_columns(keys_of(2, 2, k, v), maximum.data(), Matrix<double>(f.data(), 2, 4));
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
  Sums<Counted> sums(n);
  const auto all = keys_of(keys, n, k, v);
  for (const Counted* const bias : {static_cast<const Counted*>(nullptr), static_cast<const Counted*>(b.data())})
    BOOST_TEST((counted([&] { kernels::exp_sums_of(all, bias, sums.view()); }) ==
                kernels::exp_sums_of_counts(keys, n, bias != nullptr)));
  BOOST_TEST((counted([&] { kernels::exp_sums_add(as_sum(all.row(0)), sums.view()); }) ==
              kernels::exp_sums_add_counts(n, false)));
  BOOST_TEST((counted([&] {
                kernels::exp_sums_add({all.k.top_rows(1), all.v.top_rows(1), all.v.top_rows(1)}, sums.view());
              }) == kernels::exp_sums_add_counts(n, true)));
  const kernels::KeysAndValues<Counted> gradient{{dk.data(), keys, n}, {dv.data(), keys, n}};
  const kernels::WeightedMeans<Counted> mean{sums.view().scale, all.v.top_rows(1), all.v.top_rows(1)};
  for (const Update update : {Update::assign, Update::accumulate}) {
    BOOST_TEST((counted([&] { kernels::exp_sums_at_key(all.row(0), sums.view(), update, gradient.row(0)); }) ==
                kernels::exp_sums_at_key_counts(n, update)));
    BOOST_TEST((counted([&] { kernels::exp_sums_backward(all, b.data(), mean, update, gradient, db.data()); }) ==
                kernels::exp_sums_backward_counts(keys, n, update)));
  }
  const Matrix<Counted> row(db.data(), 1, keys);
  BOOST_TEST((counted([&] { kernels::exp_of_row({b.data(), 1, keys}, 1, 4, row); }) == kernels::exp_of_row_counts(3)));
  BOOST_TEST((counted([&] { kernels::exp_of_columns(all, dk.data(), Matrix<Counted>(f.data(), keys, 2 * n)); }) ==
              kernels::exp_of_columns_counts(keys, n)));
}

BOOST_AUTO_TEST_CASE(counts_of_gates) {
  const Index rows = 3, n = 4;
  std::vector<Counted> q = draw<Counted>(rows * n, 1, -2, 2), out(rows * n), dq(rows * n), dy(rows * n);
  const Matrix<const Counted> in(q.data(), rows, n);
  BOOST_TEST((counted([&] { kernels::gate_forward(in, in, Matrix<Counted>(out.data(), rows, n)); }) ==
              kernels::gate_forward_counts(rows * n)));
  for (const Update update : {Update::assign, Update::accumulate})
    for (const Index stride : {n, Index(0)}) {
      const Counts sums{.add = stride == 0 ? (rows - 1) * n : 0};
      BOOST_TEST((counted([&] {
                    kernels::gate_backward(in, in, in, update, Matrix<Counted>(dq.data(), rows, n),
                                           Matrix<Counted>(dy.data(), rows, n, stride));
                  }) == kernels::gate_backward_counts(rows * n, update) + sums));
    }
}

// The fast float versions, compared with the references in double. For keys of deviation 100, most exps are negligible.
BOOST_AUTO_TEST_CASE(fast_sums_at_every_length) {
  for (Index n = 0; n <= 140; n += n < 40 ? 1 : 25)
    for (const Index keys : {1, 2, 7, 50})
      for (const double spread : {1.0, 100.0})
        for (const bool biased : {false, true}) {
          const Index k_stride = n + 3, v_stride = n + 1;
          const auto k = normal_floats(keys * k_stride, 1, spread), v = normal_floats(keys * v_stride, 2);
          const auto bias = normal_floats(keys, 3, spread / 2);
          Guarded fk(k, 1), fv(v, 2), fbias(bias, 0), scale(n, 0), mass(n, 1), value(n, 3);
          Sums<double> sums(n);
          kernels::reference::exp_sums_of({{k.data(), keys, n, k_stride}, {v.data(), keys, n, v_stride}},
                                          biased ? bias.data() : nullptr, sums.view());
          kernels::exp_sums_of(
              {{fk.data(), keys, n, k_stride}, {fv.data(), keys, n, v_stride}}, biased ? fbias.data() : nullptr,
              kernels::ExpSums<float>{{scale.data(), 1, n}, {mass.data(), 1, n}, {value.data(), 1, n}});
          require_close("scale", scale, sums.scale,
                        [&](std::size_t c) { return biased ? 6e-8 * std::abs(sums.scale[c]) : 0; });
          for (Index c = 0; c < n; ++c) {
            const double factor = std::exp(sums.scale[c] - static_cast<double>(scale[c]));
            sums.mass[c] *= factor, sums.value[c] *= factor;
          }
          // A term's argument x has an error of 1.2e-7 |x|, and |x| e^x < 0.4. A bias, of size below 2 spread, adds an
          // error of 6e-8 of that size. |v| < 5.
          const double relative = 4e-7 + 1.2e-7 * static_cast<double>(keys) + (biased ? 1.2e-7 * spread : 0);
          const auto bound = [&](std::size_t c) { return relative * sums.mass[c]; };
          require_close("mass", mass, sums.mass, bound);
          require_close("value", value, sums.value, [&](std::size_t c) { return 5 * bound(c); });
        }
}

BOOST_AUTO_TEST_CASE(fast_exp_of_columns_at_every_length) {
  for (Index n = 0; n <= 140; n += n < 40 ? 1 : 25)
    for (const Index keys : {1, 2, 7, 50})
      for (const double spread : {1.0, 100.0}) {
        const Index k_stride = n + 3, v_stride = n + 1;
        const auto k = normal_floats(keys * k_stride, 1, spread), v = normal_floats(keys * v_stride, 2);
        std::vector<double> largest(n), f(2 * keys * n);
        Guarded fk(k, 1), fv(v, 2), maximum(n, 0), ff(2 * keys * n, 3);
        kernels::reference::exp_of_columns({{k.data(), keys, n, k_stride}, {v.data(), keys, n, v_stride}},
                                           largest.data(), Matrix<double>(f.data(), keys, 2 * n));
        kernels::exp_of_columns({{fk.data(), keys, n, k_stride}, {fv.data(), keys, n, v_stride}}, maximum.data(),
                                {ff.data(), keys, 2 * n});
        require_close("maximum", maximum, largest, [](std::size_t) { return 0; });
        require_close("f", ff, f, [&](std::size_t i) {
          const Index c = static_cast<Index>(i) % n, s = static_cast<Index>(i) / (2 * n);
          return std::abs(f[i]) * (3e-7 + 6.5e-8 * std::abs(k[s * k_stride + c] - largest[c])) + 6e-38;
        });
      }
}

BOOST_AUTO_TEST_CASE(a_key_that_is_not_a_number_spoils_its_channel_only) {
  const Index keys = 3, n = 37;
  for (Index at = 0; at < keys * n; ++at) {
    Guarded k(keys * n, 0, 0.5f), v(keys * n, 0, 1.0f), scale(n, 0), mass(n, 0), value(n, 0), f(2 * keys * n, 0);
    k.data()[at] = NAN;
    const kernels::KeysAndValues<const float> all{{k.data(), keys, n}, {v.data(), keys, n}};
    kernels::exp_sums_of(all, nullptr,
                         kernels::ExpSums<float>{{scale.data(), 1, n}, {mass.data(), 1, n}, {value.data(), 1, n}});
    kernels::exp_of_columns(all, scale.data(), {f.data(), keys, 2 * n});
    BOOST_REQUIRE(std::isnan(f[at / n * 2 * n + at % n]));
    for (Index c = 0; c < n; ++c) {
      BOOST_REQUIRE(std::isnan(mass[c]) == (c == at % n));
      BOOST_REQUIRE(std::isnan(value[c]) == (c == at % n));
    }
  }
}

// The bound is a relative error of 4e-7 for the logistic function, plus that of exp's argument.
BOOST_AUTO_TEST_CASE(fast_gate_at_every_length) {
  for (Index n = 0; n <= 140; n += n < 40 ? 1 : 25)
    for (const double spread : {1.0, 40.0}) {
      const auto q = normal_floats(n, 1, spread), y = normal_floats(n, 2), dout = normal_floats(n, 3);
      const auto before = normal_floats(n, 4);
      std::vector<double> out(n), dy(n);
      const auto bound = [&](double factor) {
        return [&, factor](std::size_t i) {
          const double gate = 1 / (1 + std::exp(-q[i]));
          return factor * gate * std::abs(y[i]) * (1 + 0.01 * std::abs(q[i])) + 1e-37;
        };
      };
      Guarded fq(q, 1), fy(y, 2), fdout(dout, 3), fout(n, 0);
      kernels::reference::gate_forward({q.data(), 1, n}, {y.data(), 1, n}, Matrix(out.data(), 1, n));
      kernels::gate_forward({fq.data(), 1, n}, {fy.data(), 1, n}, Matrix<float>(fout.data(), 1, n));
      require_close("out", fout, out, bound(4e-7));
      for (const Update update : {Update::assign, Update::accumulate}) {
        std::vector<double> dq(before);
        Guarded fdq(before, 1), fdy(n, 0);
        kernels::reference::gate_backward({q.data(), 1, n}, {y.data(), 1, n}, {dout.data(), 1, n}, update,
                                          Matrix(dq.data(), 1, n), Matrix(dy.data(), 1, n));
        kernels::gate_backward({fq.data(), 1, n}, {fy.data(), 1, n}, {fdout.data(), 1, n}, update,
                               Matrix<float>(fdq.data(), 1, n), Matrix<float>(fdy.data(), 1, n));
        require_close("dy", fdy, dy,
                      [&](std::size_t i) { return 4e-7 * std::abs(dy[i]) * (1 + 0.01 * std::abs(q[i])) + 1e-37; });
        require_close("dq", fdq, dq, [&](std::size_t i) {
          return 1e-6 * std::abs(dy[i] * y[i]) * (1 + 0.01 * std::abs(q[i])) + 1e-7 * std::abs(before[i]) + 1e-37;
        });
      }
      kernels::gate_forward({fq.data(), 1, n}, {fy.data(), 1, n}, Matrix<float>(fy.data(), 1, n));
      require_close("out in place of y", fy, out, bound(4e-7));
    }
}

// Padded rows; and a single row of y for all, whose gradient is the sum over rows.
BOOST_AUTO_TEST_CASE(fast_gate_of_rows) {
  constexpr Index rows = 3, n = 37, stride = n + 2, numbers = rows * stride;
  const auto all = [](auto* data) { return Matrix(data, rows, n, stride); };
  for (const bool shared : {false, true}) {
    const auto one = [shared](auto* data) { return Matrix(data, rows, n, shared ? 0 : stride); };
    const auto q = normal_floats(numbers, 1), y = normal_floats(numbers, 2), dout = normal_floats(numbers, 3);
    std::vector<double> out(numbers), dq(numbers), dy(numbers);
    Guarded fq(q, 1), fy(y, 2), fdout(dout, 3), fout(numbers, 0), fdq(numbers, 0), fdy(numbers, 0);
    kernels::reference::gate_forward(all(q.data()), one(y.data()), all(out.data()));
    kernels::reference::gate_backward(all(q.data()), one(y.data()), all(dout.data()), Update::assign, all(dq.data()),
                                      one(dy.data()));
    kernels::gate_forward(all(fq.data()), one(fy.data()), all(fout.data()));
    kernels::gate_backward(all(fq.data()), one(fy.data()), all(fdout.data()), Update::assign, all(fdq.data()),
                           one(fdy.data()));
    // |y| and |dout| are below 5. dq is a product of both and sigma' <= 1 / 4, and dy a sum over at most three rows.
    const auto bound = [](std::size_t) { return 15 * 4e-7; };
    require_close("out", fout, out, bound);
    require_close("dq", fdq, dq, bound);
    require_close("dy", fdy, dy, bound);
    double sum = 0;
    for (Index r = 0; r < (shared ? rows : 1); ++r) sum += dout[r * stride] / (1 + std::exp(-q[r * stride]));
    BOOST_TEST(std::abs(dy[0] - sum) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(fast_gate_of_special_values) {
  Guarded q({INFINITY, -INFINITY, NAN, -1e30, 1e30, -100, -80}, 1), y(7, 0, 2.0f), out(7, 0), dq(7, 0), dy(7, 0);
  const std::vector<double> expected{2, 0, NAN, 0, 2, 0, 2 * std::exp(-80.0)};
  const auto bound = [&](std::size_t i) { return 6e-7 * expected[i]; };
  kernels::gate_forward({q.data(), 1, 7}, {y.data(), 1, 7}, Matrix<float>(out.data(), 1, 7));
  require_close("out", out, expected, bound);
  kernels::gate_backward({q.data(), 1, 7}, {y.data(), 1, 7}, {y.data(), 1, 7}, Update::assign,
                         Matrix<float>(dq.data(), 1, 7), Matrix<float>(dy.data(), 1, 7));
  require_close("dy", dy, expected, bound);
  require_close("dq", dq, {0, 0, NAN, 0, 0, 0, 4 * std::exp(-80.0)}, [&](std::size_t i) { return 2 * bound(i); });
}

BOOST_AUTO_TEST_CASE(gate_is_finite_everywhere) {
  const std::vector<float> q{-1000, -1, 0, 1, 1000}, y{1, 1, 1, 1, 1};
  std::vector<float> out(5), dq(5), dy(5);
  const Matrix<const float> qs(q.data(), 1, 5), ys(y.data(), 1, 5);
  kernels::reference::gate_forward(qs, ys, Matrix(out.data(), 1, 5));
  kernels::reference::gate_backward(qs, ys, ys, Update::assign, Matrix(dq.data(), 1, 5), Matrix(dy.data(), 1, 5));
  const std::vector<double> gate{0, 0.2689414213699951, 0.5, 0.7310585786300049, 1};
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(std::abs(out[i] - gate[i]) < 1e-7);
    BOOST_TEST(std::abs(dq[i] - gate[i] * (1 - gate[i])) < 1e-7);
    BOOST_TEST(dy[i] == out[i]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
