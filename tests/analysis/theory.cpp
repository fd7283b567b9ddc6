// Statements proved or argued in the papers, compared with random samples and closed forms.
#include "heed/analysis/newton_residual.h"
#include "heed/analysis/spectrum.h"
#include "heed/base/random.h"
#include "heed/kernels/distances/l1_distance.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <numbers>

using namespace heed;

namespace {

std::vector<double> normal_numbers(Index count, std::string_view name) {
  const RandomStream random = RandomStream(1).derive(name);
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = random.normal(i);
  return numbers;
}

double variance(const std::vector<double>& numbers) {
  const double n = static_cast<double>(numbers.size());
  double mean = 0, squares = 0;
  for (const double x : numbers) mean += x / n;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  return squares / (n - 1);
}

/// Returns softmax(-|q - k|_1 / sqrt(2 d (1 - 2/pi))) of N random queries and keys of width d, [N, N].
std::vector<double> adder_map(Index N, Index d, std::string_view name) {
  std::vector<double> q = normal_numbers(N * d, std::string(name) + "q"),
                      k = normal_numbers(N * d, std::string(name) + "k"), map(static_cast<std::size_t>(N * N));
  const Matrix<double> H(map.data(), N, N);
  kernels::reference::negative_l1<double>(Matrix<double>(q.data(), N, d), Matrix<double>(k.data(), N, d), H);
  const double scale = 1 / std::sqrt(2 * static_cast<double>(d) * (1 - 2 * std::numbers::inv_pi));
  for (Index i = 0; i < N; ++i) {
    double sum = 0;
    for (Index j = 0; j < N; ++j) sum += H(i, j) = std::exp(scale * H(i, j));
    for (Index j = 0; j < N; ++j) H(i, j) /= sum;
  }
  return map;
}

std::vector<double> with_identity(std::vector<double> map, Index N) {
  for (Index i = 0; i < N; ++i) map[static_cast<std::size_t>(i * N + i)] += 1;
  return map;
}

/// Rounds to half precision: 11 bits, smallest step 2^-24, infinity from 65520 on.
double half(double x) {
  if (std::abs(x) >= 65520) return std::copysign(HUGE_VAL, x);
  const int exponent = x == 0 ? -14 : std::max(std::ilogb(x), -14);
  return std::ldexp(std::nearbyint(std::ldexp(x, 10 - exponent)), exponent - 10);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(theory)

// Shu et al., NeurIPS 2021, Theorem 1. 40,000 pairs estimate a variance to about 1 %. Without the factor 1 - 2/pi, or
// with the formula for dot products, the expected variance of distances would be more than a third larger.
BOOST_AUTO_TEST_CASE(variances_of_dot_products_and_distances) {
  constexpr Index pairs = 40000;
  for (const Index d : {4, 16, 48}) {
    const std::vector<double> q = normal_numbers(pairs * d, "q"), k = normal_numbers(pairs * d, "k");
    std::vector<double> products(pairs), distances(pairs);
    for (Index i = 0; i < pairs; ++i)
      for (Index c = 0; c < d; ++c) {
        const auto at = static_cast<std::size_t>(i * d + c), pair = static_cast<std::size_t>(i);
        products[pair] += q[at] * k[at];
        distances[pair] += std::abs(q[at] - k[at]);
      }
    const double width = static_cast<double>(d), expected = 2 * width * (1 - 2 * std::numbers::inv_pi);
    BOOST_TEST(std::abs(variance(products) / width - 1) < 0.03, d);
    BOOST_TEST(std::abs(variance(distances) / expected - 1) < 0.03, d);
  }
}

// Shu et al., Proposition 1, for maps of random queries and keys: f, the cumulative share of singular values, is
// concave; with the identity added it is nearer to r / N and the equivalent rank is higher.
BOOST_AUTO_TEST_CASE(the_identity_homogenises_adder_maps) {
  constexpr Index N = 50;
  for (const Index d : {4, 16, 64}) {
    const std::vector<double> map = adder_map(N, d, "map");
    const Spectrum plain = spectrum_of(map, N), raised = spectrum_of(with_identity(map, N), N);
    for (std::size_t r = 0; r < N; ++r) {
      BOOST_TEST(raised.cumulative[r] <= plain.cumulative[r] + 1e-12, "d " << d << ", r " << r + 1);
      if (r > 1)
        BOOST_TEST(plain.cumulative[r] - plain.cumulative[r - 1] <=
                   plain.cumulative[r - 1] - plain.cumulative[r - 2] + 1e-12);
    }
    BOOST_TEST(raised.rank > plain.rank);
  }
}

// Proposition 1 of Shu et al. does not hold for every attention map. If each token attends only to the next one, all
// singular values are 1 and f is already r / N; those of the map with the identity are |1 + exp(2 pi i k / N)| = 2
// |cos(pi k / N)|, and the rank falls.
BOOST_AUTO_TEST_CASE(the_identity_lowers_the_rank_of_a_cyclic_shift) {
  constexpr Index N = 50;
  std::vector<double> shift(N * N), expected;
  for (Index i = 0; i < N; ++i) {
    shift[static_cast<std::size_t>(i * N + (i + 1) % N)] = 1;
    expected.push_back(2 * std::abs(std::cos(std::numbers::pi * static_cast<double>(i) / N)));
  }
  std::sort(expected.rbegin(), expected.rend());
  const Spectrum plain = spectrum_of(shift, N), raised = spectrum_of(with_identity(shift, N), N);
  for (std::size_t r = 0; r < N; ++r) BOOST_TEST(std::abs(raised.values[r] - expected[r]) < 1e-12);
  BOOST_TEST(plain.rank >= 45);
  BOOST_TEST(raised.rank == 36);
  BOOST_TEST(raised.cumulative[9] > plain.cumulative[9] + 0.1);
}

// SimA, Section 1: products of normalised queries and keys do not overflow in half precision. For a channel with mean 5
// the sum of k v over tokens exceeds 65504 near 2600 tokens; for k / |k|_1 it is at most the largest |v|. This needs a
// norm in float: in half precision it overflows near 13,100 tokens. And k / |k|_1 is about 1 / N, below 2^-14 above
// 16,384 tokens, where half precision loses digits.
BOOST_AUTO_TEST_CASE(sima_in_half_precision) {
  const RandomStream random = RandomStream(1).derive("half");
  const auto channel = [&](Index tokens, Index from) {
    std::vector<double> values;
    for (Index i = 0; i < tokens; ++i) values.push_back(half(5 + random.normal(from + i)));
    return values;
  };
  for (const Index tokens : {1024, 4096, 65536}) {
    const std::vector<double> k = channel(tokens, 0), v = channel(tokens, 1 << 20);
    double norm = 0, largest = 0, exact = 0, plain = 0, normalised = 0;
    for (std::size_t i = 0; i < k.size(); ++i) {
      norm += std::abs(k[i]);
      largest = std::max(largest, std::abs(v[i]));
    }
    // Sums are computed in double, like the float sums of half-precision units; results are stored as halves.
    for (std::size_t i = 0; i < k.size(); ++i) {
      exact += k[i] / norm * v[i];
      plain += k[i] * v[i];
      normalised += half(k[i] / norm) * v[i];
    }
    BOOST_TEST(std::isinf(half(plain)) == (tokens > 2600), tokens);
    BOOST_TEST(std::isinf(half(norm)) == (tokens > 13100), tokens);
    BOOST_TEST(half(normalised) <= largest * (1 + 1e-3), tokens);
    // An element has a relative error of at most 2^-11, or an absolute one of at most 2^-25, which is 2^-9 of 1 / N for
    // 65,536 tokens.
    BOOST_TEST(std::abs(half(normalised) / exact - 1) < (tokens < 16384 ? 0x1p-10 : 0x1p-8), tokens);
  }
  BOOST_TEST(half(65504) == 65504);
  BOOST_TEST(half(0x1p-24) == 0x1p-24);
  BOOST_TEST(half(0x1p-26) == 0);
  BOOST_TEST(half(1 + 0x1p-11) == 1);
}

// SOFT, Proposition 1: |A A_k A - A| falls monotonically for sufficiently small a, down to rounding. The landmarks lie
// on a line, some close to each other.
BOOST_AUTO_TEST_CASE(the_residual_of_soft_falls_monotonously) {
  constexpr Index m = 12;
  for (const double spread : {0.1, 1.0, 3.0}) {
    std::vector<double> A(m * m);
    const auto at = [&](Index i) { return spread * RandomStream(1).normal(i); };
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < m; ++j)
        A[static_cast<std::size_t>(i * m + j)] = std::exp(-(at(i) - at(j)) * (at(i) - at(j)) / 2);
    const NewtonResidual residual = heed::newton_residual(kernels::NewtonInverse{.m = m, .iterations = 24}, A.data());
    for (std::size_t k = 1; k < residual.relative.size(); ++k)
      BOOST_TEST((residual.relative[k] < residual.relative[k - 1] || residual.relative[k] < 1e-11),
                 "spread " << spread << ", step " << k);
    BOOST_TEST(residual.relative.back() < 0.32 * 1.5 * 0x1p-12);  // 0.32 (|A|_1 / l_1) 2^(-k/2); ratio <= 1.5, k = 24
  }
}

BOOST_AUTO_TEST_SUITE_END()
