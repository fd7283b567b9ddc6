// Least squares with coefficients that cannot be negative.
#pragma once

#include <vector>

namespace heed::bench {

/// Measurements y_r, each a sum over j of amounts a_rj times coefficients x_j that are wanted.
struct Fit {
  std::vector<std::vector<double>> amounts;  ///< a row for each measurement
  std::vector<double> measured;              ///< y > 0
  std::vector<double> weight;                ///< weight of the equation

  void add(std::vector<double> row, double y, double matters = 1) {
    amounts.push_back(std::move(row));
    measured.push_back(y);
    weight.push_back(matters);
  }
};

/// The x >= 0 with the least weighted sum over r of (f_r - y_r)^2 / (f_r y_r), f_r = sum_j a_rj x_j: twice as long is
/// as bad as half as long. And of pull * c_j (x_j - usual_j)^2, where c_j says how much the measurements know of x_j. A
/// coefficient of which they know nothing is the usual one.
std::vector<double> nonnegative_fit(const Fit& fit, const std::vector<double>& usual, double pull);

}  // namespace heed::bench
