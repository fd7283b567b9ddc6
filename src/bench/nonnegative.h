// Least squares with coefficients that cannot be negative.
#pragma once

#include <vector>

namespace heed::bench {

/// Measurements y_r, each modelled as a sum over j of amounts a_rj times unknown coefficients x_j.
struct Fit {
  std::vector<std::vector<double>> amounts;  ///< a row per measurement
  std::vector<double> measured;              ///< y > 0
  std::vector<double> weight;                ///< weight of the equation

  void add(std::vector<double> row, double y, double matters = 1) {
    amounts.push_back(std::move(row));
    measured.push_back(y);
    weight.push_back(matters);
  }
};

/// Fits x >= 0 by iteratively reweighted least squares: minimises sum_r w_r (f_r - y_r)^2 / (g_r y_r) + pull sum_j c_j
/// (x_j - usual_j)^2. The fitted value f_r is sum_j a_rj x_j, and g_r is y_r in the first iteration, then the
/// previous f_r, clipped to at least y_r / 10 and at most 10 y_r; w_r is the weight of a measurement, and c_j measures
/// how well the data determine x_j. When g_r = f_r, the terms of fitted values 2 y_r and y_r / 2 are equal. A coefficient
/// without data keeps its usual value.
std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull);

}  // namespace heed::bench
