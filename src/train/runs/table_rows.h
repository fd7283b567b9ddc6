// Reading of metrics.csv and gradients.csv.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Header lines. Earlier versions of heed had other columns after kind,epoch,step.
inline constexpr const char* metrics_header = "kind,epoch,step,loss,accuracy,lr,images_per_s";
inline constexpr const char* gradients_header = "kind,epoch,step,gradient_norm";

/// A row of metrics.csv or gradients.csv; see MetricsRow.
struct TableRow {
  std::string line, kind;
  Index epoch = 0, step = 0;
  std::vector<std::string> columns;            ///< names of all columns
  std::vector<std::optional<double>> numbers;  ///< values after kind,epoch,step

  /// Returns the value in a column; empty if the column or its value is missing.
  std::optional<double> number(std::string_view column) const;
};

/// Calls f(row) for each row of a table with the header line `header` or, if that is empty, the header of any version
/// of heed. Skips an incomplete last line. Throws Error, naming file and line, for a line that `heed train` does not
/// write.
void for_each_row(const std::string& path, std::string_view header, const std::function<void(const TableRow&)>& f);

}  // namespace heed
