// Kernels of convolutions.
#include "support/fast_kernel.h"

#include "heed/kernels/grids/depthwise.h"
#include "heed/kernels/grids/neighbourhood.h"

namespace heed::test {

namespace {

using kernels::Windows;

struct Geometry {
  Index kernel, stride, padding;

  /// Returns windows on images of 4 x 5.
  Windows windows(Index channels) const { return {channels, 4, 5, kernel, stride, padding}; }
};

/// Returns true if channel c of an array has non-finite elements. Multiplied by a zero of the padding, which kernels
/// may skip, they give NaN.
bool has_infinite(const Matrix<const double>& m, Index c) {
  for (Index r = 0; r < m.rows; ++r)
    if (!std::isfinite(m(r, c))) return true;
  return false;
}

/// A tap of the window at a result position, and the image position under it.
struct Meeting {
  Index place, tap, from;
};

/// Returns all meetings, grouped by the member `by`: element r < count has those in which this member is r.
std::vector<std::vector<Meeting>> meetings(const Windows& w, Index Meeting::*by, Index count) {
  std::vector<std::vector<Meeting>> all(static_cast<std::size_t>(count));
  kernels::detail::for_each_place(w, [&](Index place, Index tap, Index from) {
    const Meeting m{place, tap, from};
    if (from >= 0) all[static_cast<std::size_t>(m.*by)].push_back(m);
  });
  return all;
}

/// Returns the sum of |term| over group r.
double sum_of(const std::vector<std::vector<Meeting>>& all, Index r, const auto& term) {
  double sum = 0;
  for (const Meeting& m : all[static_cast<std::size_t>(r)]) sum += std::abs(term(m));
  return sum;
}

void add_depthwise(std::vector<FastKernel>& list, const Geometry& g) {
  const std::string name = fmt::format(" {} x {}, stride {}, padding {}", g.kernel, g.kernel, g.stride, g.padding);
  const Index taps = g.kernel * g.kernel, places = g.windows(1).places();
  const double count = static_cast<double>(taps + 4);
  const auto windows = [=](Index n) { return g.windows(n); };
  list.push_back(fast_kernel(
      "depthwise" + name,
      [=](Index, Index n) {
        return std::vector<Array>{{20, n}, {taps, n}, {1, n}, {places, n, Role::changed}};
      },
      [=](const auto& m) {
        kernels::depthwise(windows(m[0].columns), m[0], m[1], m[2].data, Update::accumulate, m[3]);
      },
      [=, met = meetings(windows(1), &Meeting::place, places)](const Call& call, std::size_t, Index r, Index c) {
        const auto &x = call.given[0], &W = call.given[1];
        if (has_infinite(W, c)) return unspecified;
        const double sum = sum_of(met, r, [&](const Meeting& m) { return W(m.tap, c) * x(m.from, c); });
        return 2 * count * u * (sum + std::abs(call.given[2](0, c)) + std::abs(call.given[3](r, c)));
      }));
  list.push_back(fast_kernel(
      "depthwise_backward" + name,
      [=](Index, Index n) {
        return std::vector<Array>{{places, n}, {taps, n}, {20, n, Role::made}};
      },
      [=](const auto& m) { kernels::depthwise_backward(windows(m[0].columns), m[0], m[1], Update::assign, m[2]); },
      [=, met = meetings(windows(1), &Meeting::from, 20)](const Call& call, std::size_t, Index r, Index c) {
        const auto &dy = call.given[0], &W = call.given[1];
        return 2 * count * u * sum_of(met, r, [&](const Meeting& m) { return W(m.tap, c) * dy(m.place, c); });
      }));
  list.push_back(fast_kernel(
      "depthwise_weight_gradient" + name,
      [=](Index, Index n) {
        return std::vector<Array>{{20, n}, {places, n}, {taps, n, Role::changed}};
      },
      [=](const auto& m) {
        kernels::depthwise_weight_gradient(windows(m[0].columns), m[0], m[1], Update::accumulate, m[2]);
      },
      [=, met = meetings(windows(1), &Meeting::tap, taps)](const Call& call, std::size_t, Index r, Index c) {
        const auto &x = call.given[0], &dy = call.given[1];
        if (has_infinite(dy, c)) return unspecified;
        const double sum = sum_of(met, r, [&](const Meeting& m) { return dy(m.place, c) * x(m.from, c); });
        return 2 * (count + static_cast<double>(places)) * u * (sum + std::abs(call.given[2](r, c)));
      }));
}

/// Adds the kernel of sums over neighbourhoods. The compared results do not depend on the sums' scales: scale + log
/// mass, and value / mass. Exponents are normal numbers times `spread`, a power of two.
void add_neighbourhood(std::vector<FastKernel>& list, const kernels::Neighbourhood& g, double spread, bool mirrored) {
  const Index N = g.cells(), places = g.places();
  list.push_back(fast_kernel(
      fmt::format("neighbourhood_sums {} x {}, window {}, spread {}", g.height, g.width, places, spread),
      [=](Index, Index n) {
        return std::vector<Array>{{N, 1}, {N, n}, {1, places}, {N, 1, Role::made}, {N, n, Role::made}};
      },
      [=](const auto& m) {
        using T = std::remove_reference_t<decltype(m[0](0, 0))>;
        const Index n = m[1].columns;
        MemoryLayout<T> size;
        kernels::lay_out_neighbourhood(g, n, size);
        std::vector<T> memory(static_cast<std::size_t>(size.taken() + N * (2 + n))), x;
        for (Index s = 0; s < N; ++s) x.push_back(T(spread) * m[0](s, 0));
        MemoryLayout<T> layout(memory.data());
        const auto scratch = kernels::lay_out_neighbourhood(g, n, layout);
        const auto sums = kernels::lay_out_exp_sums(N, 1, n, layout);
        const kernels::ExpSums<const T> terms{{x.data(), N, 1}, {}, m[1]};
        kernels::neighbourhood_sums(g, terms, m[2].data, mirrored, scratch, sums);
        for (Index t = 0; t < N; ++t) {
          m[3](t, 0) = sums.scale(t, 0) + std::log(sums.mass(t, 0));
          for (Index c = 0; c < n; ++c) m[4](t, c) = sums.value(t, c) / sums.mass(t, 0);
        }
      },
      [=](const Call& call, std::size_t a, Index r, Index c) {
        const double error = 7e-7 + 6e-8 * static_cast<double>(g.height + g.width + places);
        if (a == 3) return error + 4 * u * std::abs(call.results[3](r, 0));
        return 2 * error * largest_over(N, [&](Index s) { return std::abs(call.given[1](s, c)); });
      }));
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_windows() {
  std::vector<FastKernel> list;
  // Geometries without padding, with some and with much. Filters larger than the image have taps that are always
  // outside.
  for (const Geometry& g : {Geometry{3, 1, 1},
                            {3, 2, 1},
                            {3, 1, 0},
                            {3, 2, 2},
                            {5, 1, 2},
                            {5, 2, 4},
                            {7, 1, 3},
                            {7, 2, 3},
                            {9, 1, 4},
                            {9, 2, 4},
                            {2, 3, 1},
                            {1, 1, 0}})
    add_depthwise(list, g);
  for (const kernels::Neighbourhood& g :
       {kernels::Neighbourhood{4, 5, 1, 1}, {1, 11, 0, 2}, {3, 2, 4, 4}, {9, 1, 1, 0}, {6, 13, 2, 3, false}})
    for (const double spread : {1.0, 4.0, 32.0}) add_neighbourhood(list, g, spread, g.width > 4);
  for (FastKernel& kernel : list) kernel.of_rows = false;
  return list;
}

}  // namespace heed::test
