// The random generator in standard tests (Knuth, The Art of Computer Programming 2, 3.3.2; Marsaglia's birthday
// spacings), along a stream, and across streams, names and seeds, as used in training.
#include "heed/base/random.h"

#include "support/statistics.h"

using namespace heed;
using namespace heed::test;

namespace {

/// A way to draw a sequence of 64-bit words.
struct Sequence {
  const char* name;
  std::uint64_t (*bits)(Index i);
};

const Sequence sequences[] = {
    {"along a stream", [](Index i) { return RandomStream(1).bits(i); }},
    {"along a stream's stream", [](Index i) { return RandomStream(1).derive("dropout").derive(3).bits(i); }},
    {"across streams", [](Index i) { return RandomStream(1).derive(static_cast<std::uint64_t>(i)).bits(0); }},
    {"across images",
     [](Index i) { return RandomStream(1).derive("step").derive(static_cast<std::uint64_t>(i / 64)).bits(i % 64); }},
    {"across seeds", [](Index i) { return RandomStream(static_cast<std::uint64_t>(i)).bits(7); }},
    {"across names", [](Index i) { return RandomStream(1).derive("blocks." + std::to_string(i)).bits(0); }}};

std::vector<double> uniforms(const Sequence& of, Index n) {
  std::vector<double> u;
  for (Index i = 0; i < n; ++i) u.push_back(static_cast<double>(of.bits(i) >> 11) * 0x1p-53);
  return u;
}

constexpr Index many = Index{1} << 18;

}  // namespace

BOOST_AUTO_TEST_SUITE(random_generator)

// Counts of numbers in 1024 cells of [0, 1), and of pairs of successive numbers in 64 x 64 cells.
BOOST_AUTO_TEST_CASE(numbers_and_pairs_are_equally_distributed) {
  for (const Sequence& of : sequences) {
    const std::vector<double> u = uniforms(of, many);
    std::vector<double> single(1024), pairs(64 * 64);
    for (std::size_t i = 0; i < u.size(); ++i) ++single[static_cast<std::size_t>(1024 * u[i])];
    for (std::size_t i = 0; i + 1 < u.size(); i += 2)
      ++pairs[64 * static_cast<std::size_t>(64 * u[i]) + static_cast<std::size_t>(64 * u[i + 1])];
    check_z(z_of_equal_cells(single), std::string("cells, ") + of.name);
    check_z(z_of_equal_cells(pairs), std::string("pairs, ") + of.name);
  }
}

// Each of the 64 bits is 1 with probability 1/2, and independent of its neighbour and of the same bit in the next word.
BOOST_AUTO_TEST_CASE(bits_are_balanced_and_do_not_follow_from_each_other) {
  constexpr Index n = Index{1} << 15;
  for (const Sequence& of : sequences)
    for (int bit = 0; bit < 64; ++bit) {
      double ones = 0, as_neighbour = 0, as_next = 0;
      for (Index i = 0; i < n; ++i) {
        const std::uint64_t word = of.bits(i), next = of.bits(i + 1);
        ones += word >> bit & 1;
        as_neighbour += (word >> bit & 1) == (word >> (bit + 1) % 64 & 1);
        as_next += (word >> bit & 1) == (next >> bit & 1);
      }
      for (const double count : {ones, as_neighbour, as_next})
        check_z(z_of_successes(count, n, 0.5), std::string("bit ") + std::to_string(bit) + ", " + of.name);
    }
}

// For n numbers and lag k, the sum of (u[i] - 1/2) (u[i + k] - 1/2) has variance n / 144.
BOOST_AUTO_TEST_CASE(numbers_are_not_correlated) {
  for (const Sequence& of : sequences) {
    const std::vector<double> u = uniforms(of, many);
    for (const std::size_t lag : {1, 2, 3, 4, 7, 8, 16, 64, 1000}) {
      double sum = 0;
      for (std::size_t i = 0; i + lag < u.size(); ++i) sum += (u[i] - 0.5) * (u[i + lag] - 0.5);
      check_z(12 * sum / std::sqrt(static_cast<double>(u.size() - lag)),
              std::string("lag ") + std::to_string(lag) + ", " + of.name);
    }
  }
}

// Runs up and down in n numbers: their expected number is (2 n - 1) / 3, with variance (16 n - 29) / 90.
BOOST_AUTO_TEST_CASE(runs_are_as_long_as_they_should_be) {
  for (const Sequence& of : sequences) {
    const std::vector<double> u = uniforms(of, many);
    double runs = 1;
    for (std::size_t i = 2; i < u.size(); ++i) runs += (u[i] > u[i - 1]) != (u[i - 1] > u[i - 2]);
    const double n = static_cast<double>(u.size());
    check_z((runs - (2 * n - 1) / 3) / std::sqrt((16 * n - 29) / 90), of.name);
  }
}

// For m birthdays in a year of n days, the number of repeated spacings is Poisson distributed with mean m^3 / (4 n): 16
// here, 3200 in 200 years. Tested for the upper and the lower bits.
BOOST_AUTO_TEST_CASE(birthdays_are_spaced_by_chance) {
  constexpr Index m = 1024, years = 200;
  for (const Sequence& of : sequences)
    for (const int shift : {40, 0}) {
      double again = 0;
      for (Index year = 0; year < years; ++year) {
        std::vector<std::uint64_t> days, spacings;
        for (Index i = 0; i < m; ++i) days.push_back(of.bits(year * m + i) >> shift & 0xffffff);
        std::sort(days.begin(), days.end());
        for (std::size_t i = 1; i < days.size(); ++i) spacings.push_back(days[i] - days[i - 1]);
        spacings.push_back(days[0] + 0x1000000 - days.back());
        std::sort(spacings.begin(), spacings.end());
        for (std::size_t i = 1; i < spacings.size(); ++i) again += spacings[i] == spacings[i - 1];
      }
      check_z((again - 16.0 * years) / std::sqrt(16.0 * years), of.name);
    }
}

BOOST_AUTO_TEST_CASE(what_is_made_of_the_bits) {
  const RandomStream stream(5);
  std::vector<double> uniform, normal;
  for (Index i = 0; i < many; ++i) uniform.push_back(stream.uniform(i, -2, 3)), normal.push_back(stream.normal(i));
  check_distribution(
      uniform, [](double x) { return (x + 2) / 5; }, "uniform");
  check_distribution(normal, normal_distribution, "normal");
  for (const Index n : {2, 3, 7, 10, 1000}) {
    std::vector<double> counts(static_cast<std::size_t>(n));
    for (Index i = 0; i < many; ++i) ++counts[static_cast<std::size_t>(stream.derive(1).below(i, n))];
    check_z(z_of_equal_cells(counts), "below " + std::to_string(n));
  }
}

BOOST_AUTO_TEST_SUITE_END()
