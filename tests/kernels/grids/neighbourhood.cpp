#include "heed/cost/counted.h"
#include "heed/kernels/grids/neighbourhood.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(neighbourhood)

constexpr kernels::Neighbourhood grids[] = {{4, 5, 1, 1}, {1, 6, 0, 2}, {3, 2, 2, 2}, {5, 1, 1, 0},
                                            {1, 1, 1, 1}, {6, 7, 2, 1}, {7, 70, 1, 2}};
constexpr Index n = 3;

template <class T>
struct Data {
  Data(const kernels::Neighbourhood& g, double spread, bool has_mass) {
    const auto fill = [](std::vector<T>& values, Index count, std::uint64_t seed, double low, double high) {
      for (Index i = 0; i < count; ++i)
        values.push_back(T(static_cast<float>(RandomStream(seed).uniform(i, low, high))));
    };
    fill(x, g.cells(), 1, -spread, spread);
    fill(mass, has_mass ? g.cells() : 0, 2, 0.5, 2);
    fill(value, g.cells() * n, 3, -1, 1);
    fill(bias, g.places(), 4, -2, 2);
    scale.resize(x.size()), sum_mass.resize(x.size()), sum_value.resize(value.size());
    MemoryLayout<T> size;
    kernels::lay_out_neighbourhood(g, n, size);
    scratch.resize(static_cast<std::size_t>(size.taken()));
  }
  Index cells() const { return static_cast<Index>(x.size()); }
  kernels::ExpSums<const T> terms() const {
    return {{x.data(), cells(), 1}, {mass.empty() ? nullptr : mass.data(), cells(), 1}, {value.data(), cells(), n}};
  }
  kernels::ExpSums<T> sums() {
    return {{scale.data(), cells(), 1}, {sum_mass.data(), cells(), 1}, {sum_value.data(), cells(), n}};
  }
  void run(const kernels::Neighbourhood& g, bool mirrored) {
    MemoryLayout<T> layout(scratch.data());
    kernels::neighbourhood_sums(g, terms(), bias.data(), mirrored, kernels::lay_out_neighbourhood(g, n, layout),
                                sums());
  }
  std::vector<T> x, mass, value, bias, scale, sum_mass, sum_value, scratch;
};

/// Returns the position of s in the window around t, or -1.
Index place_of(const kernels::Neighbourhood& g, Index t, Index s) {
  const Index dy = s / g.width - t / g.width, dx = s % g.width - t % g.width;
  return std::abs(dy) <= g.reach_y && std::abs(dx) <= g.reach_x ? g.place(dy, dx) : -1;
}

/// Compares the sums, converted to the scale of the largest term, with sums over all pairs in double.
template <class T>
void check_sums(double spread, double tolerance) {
  for (kernels::Neighbourhood g : grids)
    for (const bool has_mass : {false, true})
      for (const bool mirrored : {false, true})
        for (const bool outside : {false, true}) {
          g.outside = outside;
          Data<T> d(g, spread, has_mass);
          d.run(g, mirrored);
          for (Index t = 0; t < g.cells(); ++t) {
            const auto each = [&](const auto& f) {
              for (Index s = 0; s < g.cells(); ++s) {
                const Index place = mirrored ? place_of(g, s, t) : place_of(g, t, s);
                if (place >= 0 || outside)
                  f(s, static_cast<double>(d.x[s]) + (place >= 0 ? static_cast<double>(d.bias[place]) : 0));
              }
            };
            double largest = -1e300, mass = 0, value = 0;
            each([&](Index, double x) { largest = std::max(largest, x); });
            each([&](Index s, double x) {
              mass += std::exp(x - largest) * (has_mass ? d.mass[s] : 1);
              value += std::exp(x - largest) * d.value[s * n + 1];
            });
            const double shift = std::exp(static_cast<double>(d.scale[t]) - largest);
            const double above = std::is_same_v<T, float> ? 32 : 0;  // in float, all cells may share one scale
            BOOST_TEST(d.scale[t] - largest >= -1e-6 * (1 + std::abs(largest)));
            BOOST_TEST(d.scale[t] - largest <= above + 1e-6 * (1 + std::abs(largest)));
            BOOST_TEST(std::abs(d.sum_mass[t] * shift - mass) <= tolerance * mass);
            BOOST_TEST(std::abs(d.sum_value[t * n + 1] * shift - value) <= tolerance * mass);
          }
        }
}

BOOST_AUTO_TEST_CASE(sums_are_those_over_all_pairs) {
  check_sums<double>(1, 1e-14);
  check_sums<float>(1, 2e-6);
}

BOOST_AUTO_TEST_CASE(far_apart_cells_lose_nothing) {
  check_sums<double>(2000, 1e-12);
  check_sums<float>(2000, 2e-6);
}

BOOST_AUTO_TEST_CASE(bias_gradient_is_the_sum_over_pairs) {
  for (const auto& g : grids) {
    Data<double> d(g, 1, false);
    std::vector<double> y(d.value.size()), G(d.value.size()), dbias(d.bias.size(), 9), expected(dbias);
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = RandomStream(7).uniform(static_cast<Index>(i));
      G[i] = RandomStream(8).uniform(static_cast<Index>(i), -1, 1);
    }
    d.run(g, false);
    kernels::neighbourhood_bias_gradient(g, d.terms(), d.bias.data(),
                                         {d.sums().scale, {y.data(), g.cells(), n}, {G.data(), g.cells(), n}},
                                         dbias.data());
    for (Index t = 0; t < g.cells(); ++t)
      for (Index s = 0; s < g.cells(); ++s)
        if (const Index place = place_of(g, t, s); place >= 0)
          for (Index c = 0; c < n; ++c)
            expected[place] +=
                std::exp(d.x[s] + d.bias[place] - d.scale[t]) * G[t * n + c] * (d.value[s * n + c] - y[t * n + c]);
    for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(std::abs(dbias[i] - expected[i]) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_contracts) {
  for (kernels::Neighbourhood g : grids)
    for (const bool has_mass : {false, true})
      for (const bool outside : {false, true}) {
        g.outside = outside;
        Data<Counted> d(g, 1, has_mass);
        Counted::tally() = {};
        d.run(g, false);
        BOOST_TEST((Counted::tally() == kernels::neighbourhood_sums_counts(g, n, has_mass)));
        Counted::tally() = {};
        std::vector<Counted> dbias(d.bias.size());
        const Matrix<const Counted> value = d.terms().value;
        kernels::neighbourhood_bias_gradient(g, d.terms(), d.bias.data(), {d.sums().scale, value, value}, dbias.data());
        BOOST_TEST((Counted::tally() == kernels::neighbourhood_bias_gradient_counts(g, n)));
      }
}

BOOST_AUTO_TEST_SUITE_END()
