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

/// Returns the x >= 0 that minimises the weighted sum over r of (f_r - y_r)^2 / (f_r y_r), f_r = sum_j a_rj x_j, in
/// which f_r = 2 y_r costs as much as f_r = y_r / 2, plus the sum of pull * c_j (x_j - usual_j)^2, where c_j measures
/// how well the data determine x_j. A coefficient without data keeps its usual value.
std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull);

}  // namespace heed::bench
