// metrics.csv and gradients.csv as they are read: by a run that is resumed, and by all that compare or show runs.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// The first lines. Earlier versions of heed had other columns behind kind,epoch,step.
inline constexpr const char* metrics_header = "kind,epoch,step,loss,accuracy,lr,images_per_s";
inline constexpr const char* gradients_header = "kind,epoch,step,gradient_norm";

/// A row; see MetricsRow.
struct TableRow {
  std::string line, kind;
  Index epoch = 0, step = 0;
  std::vector<std::string> columns;            ///< of the table
  std::vector<std::optional<double>> numbers;  ///< of the columns behind kind,epoch,step

  /// Nothing where the table has no such column, or nothing in it.
  std::optional<double> number(std::string_view column) const;
};

/// f(row) for each row of a table whose first line is `header`; if that is empty, of one of any version of heed. Throws
/// Error, naming file and line, where a line is none of heed train's. A last line without an end, which is being
/// written or was cut off, is left out.
void for_each_row(const std::string& path, std::string_view header, const std::function<void(const TableRow&)>& f);

}  // namespace heed
