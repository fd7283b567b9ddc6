// Kernels of convolutions.
#include "support/fast_kernel.h"

#include "heed/kernels/depthwise.h"

namespace heed::test {

namespace {

using kernels::Windows;

struct Geometry {
  Index kernel, stride, padding;

  /// On images of 4 x 5.
  Windows windows(Index channels) const { return {channels, 4, 5, kernel, stride, padding}; }
};

/// Does channel c of an array hold what is not finite? Times a zero of the padding, which kernels need not look at,
/// that is NaN.
bool has_infinite(const Matrix<const double>& m, Index c) {
  for (Index r = 0; r < m.rows; ++r)
    if (!std::isfinite(m(r, c))) return true;
  return false;
}

/// Sum of |a||b| over the pairs (place, tap, place of the image) that f selects, for errors.
double pairs(const Windows& w, const auto& term) {
  double sum = 0;
  kernels::reference::detail::for_each_place(w, [&](Index place, Index tap, Index from) {
    if (from >= 0) sum += std::abs(term(place, tap, from));
  });
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
      [=](const Call& call, std::size_t, Index r, Index c) {
        const auto &x = call.given[0], &W = call.given[1];
        if (has_infinite(W, c)) return unspecified;
        const double sum = pairs(
            windows(1), [&](Index place, Index tap, Index from) { return place == r ? W(tap, c) * x(from, c) : 0; });
        return 2 * count * u * (sum + std::abs(call.given[2](0, c)) + std::abs(call.given[3](r, c)));
      }));
  list.push_back(fast_kernel(
      "depthwise_backward" + name,
      [=](Index, Index n) {
        return std::vector<Array>{{places, n}, {taps, n}, {20, n, Role::made}};
      },
      [=](const auto& m) { kernels::depthwise_backward(windows(m[0].columns), m[0], m[1], Update::assign, m[2]); },
      [=](const Call& call, std::size_t, Index r, Index c) {
        const auto &dy = call.given[0], &W = call.given[1];
        return 2 * count * u * pairs(windows(1), [&](Index place, Index tap, Index from) {
                 return from == r ? W(tap, c) * dy(place, c) : 0;
               });
      }));
  list.push_back(fast_kernel(
      "depthwise_weight_gradient" + name,
      [=](Index, Index n) {
        return std::vector<Array>{{20, n}, {places, n}, {taps, n, Role::changed}};
      },
      [=](const auto& m) {
        kernels::depthwise_weight_gradient(windows(m[0].columns), m[0], m[1], Update::accumulate, m[2]);
      },
      [=](const Call& call, std::size_t, Index r, Index c) {
        const auto &x = call.given[0], &dy = call.given[1];
        if (has_infinite(dy, c)) return unspecified;
        const double sum = pairs(
            windows(1), [&](Index place, Index tap, Index from) { return tap == r ? dy(place, c) * x(from, c) : 0; });
        return 2 * (count + static_cast<double>(places)) * u * (sum + std::abs(call.given[2](r, c)));
      }));
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_windows() {
  std::vector<FastKernel> list;
  // Without padding, with some and with much; filters larger than the image have taps that never meet it.
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
  for (FastKernel& kernel : list) kernel.of_rows = false;
  return list;
}

}  // namespace heed::test
