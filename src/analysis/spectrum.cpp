#include "heed/analysis/spectrum.h"

#include "heed/base/error.h"
#include "heed/kernels/solvers/singular_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed {

Spectrum spectrum_of(std::vector<double> matrix, Index rows) {
  constexpr double equivalent_share = 0.9;
  const Index columns = static_cast<Index>(matrix.size()) / rows;
  HEED_ASSERT(rows * columns == static_cast<Index>(matrix.size()));
  require(std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); }),
          "an attention map contains inf or NaN; its singular values are not defined");
  const auto n = static_cast<std::size_t>(std::min(rows, columns));
  Spectrum spectrum{std::vector<double>(n), std::vector<double>(n, 1.0), 0};
  kernels::singular_values(Matrix(matrix.data(), rows, columns), spectrum.values.data());
  const double total = std::accumulate(spectrum.values.begin(), spectrum.values.end(), 0.0);
  if (total == 0) return spectrum;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) spectrum.cumulative[i] = (sum += spectrum.values[i]) / total;
  const auto enough = std::lower_bound(spectrum.cumulative.begin(), spectrum.cumulative.end(), equivalent_share);
  spectrum.rank = enough - spectrum.cumulative.begin() + 1;
  return spectrum;
}

}  // namespace heed
