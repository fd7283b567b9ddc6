#include "nonnegative.h"

#include <algorithm>
#include <cmath>

namespace heed::bench {

namespace {

/// Returns the x >= 0 that minimises sum_r (sum_j a_rj x_j - y_r)^2 w_r / s_r^2 + pull sum_j G_jj (x_j - usual_j)^2,
/// with w the weights of `fit`, s = scale and G the matrix of the normal equations without the second sum.
std::vector<double> with_scales(const Fit& fit, const std::vector<double>& scale, const std::vector<double>& usual,
                                double pull) {
  // Solves the normal equations of the scaled rows and the penalty by coordinate descent: each coefficient in turn is
  // set to its optimum, at least 0, for fixed others, until the changes are negligible.
  const std::size_t n = usual.size();
  std::vector<double> g(n * n, 0.0), h(n, 0.0);
  for (std::size_t r = 0; r < fit.measured.size(); ++r) {
    const double matters = fit.weight[r] / (scale[r] * scale[r]);
    for (std::size_t i = 0; i < n; ++i) {
      const double a = matters * fit.amounts[r][i];
      h[i] += a * fit.measured[r];
      for (std::size_t j = 0; j < n; ++j) g[i * n + j] += a * fit.amounts[r][j];
    }
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

}  // namespace

std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull) {
  // Iteratively reweighted least squares: row r is divided by y_r in the first round, and by sqrt(y_r f_r) in later
  // rounds, with f_r for the previous x, clipped to at least y_r / 10 and at most 10 y_r.
  std::vector<double> scale = fit.measured, x;
  constexpr int turns = 12;
  for (int turn = 0; turn < turns; ++turn) {
    x = with_scales(fit, scale, usual, pull);
    for (std::size_t r = 0; r < scale.size(); ++r) {
      double f = 0;
      for (std::size_t j = 0; j < x.size(); ++j) f += fit.amounts[r][j] * x[j];
      const double y = fit.measured[r];
      scale[r] = std::sqrt(y * std::clamp(f, y / 10, 10 * y));
    }
  }
  return x;
}

}  // namespace heed::bench
