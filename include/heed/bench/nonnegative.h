// Least squares with coefficients that cannot be negative.
#pragma once

#include <vector>

namespace heed::bench {

/// Measurements y_r, each a sum over j of amounts a_rj times coefficients x_j that are wanted.
struct Fit {
  std::vector<std::vector<double>> amounts;  ///< a row for each measurement
  std::vector<double> measured;              ///< y > 0

  void add(std::vector<double> row, double y) {
    amounts.push_back(std::move(row));
    measured.push_back(y);
  }
};

/// The x >= 0 with the least sum over r of (sum_j a_rj x_j / y_r - 1)^2, relative errors, and of
/// pull * c_j (x_j - usual_j)^2, c_j = sum_r (a_rj / y_r)^2. A coefficient that no measurement knows is the usual one.
std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull);

}  // namespace heed::bench
