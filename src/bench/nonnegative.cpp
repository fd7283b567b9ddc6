#include "heed/bench/nonnegative.h"

#include <algorithm>
#include <cmath>

namespace heed::bench {

std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull) {
  // G x = h with G = A^T A, h = A^T 1 for rows divided by what was measured; then one coefficient after the other, each
  // put where it is best while the others stay, until none moves.
  const std::size_t n = usual.size();
  std::vector<double> g(n * n, 0.0), h(n, 0.0);
  for (std::size_t r = 0; r < fit.measured.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      const double a = fit.amounts[r][i] / fit.measured[r];
      h[i] += a;
      for (std::size_t j = 0; j < n; ++j) g[i * n + j] += a * fit.amounts[r][j] / fit.measured[r];
    }
  for (std::size_t j = 0; j < n; ++j) {
    h[j] += pull * g[j * n + j] * usual[j];
    g[j * n + j] *= 1 + pull;
  }
  std::vector<double> x = usual;
  constexpr int most_sweeps = 20'000;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (g[i * n + i] <= 0) continue;
      double rest = h[i];
      for (std::size_t j = 0; j < n; ++j)
        if (j != i) rest -= g[i * n + j] * x[j];
      const double better = std::max(0.0, rest / g[i * n + i]);
      moved = std::max(moved, std::abs(better - x[i]) * std::sqrt(g[i * n + i]));
      x[i] = better;
    }
    if (moved < 1e-9) break;
  }
  return x;
}

}  // namespace heed::bench
