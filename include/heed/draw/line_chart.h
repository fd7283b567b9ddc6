// Line charts as SVG.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A line of a chart, with its name in the legend.
struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y; the line is interrupted at non-finite y
};

/// A marked position on the x axis; the axis is extended to include it.
struct ChartMark {
  double x;
  std::string name;
};

/// A line chart with axis titles; each axis may be logarithmic.
struct LineChart {
  std::string title, x_title, y_title;
  bool log_x = false;
  std::vector<ChartLine> lines{};
  std::vector<ChartMark> marks{};
  bool log_y = false;
  double y_most = std::numeric_limits<double>::infinity();  ///< greater values are drawn at the upper edge
};

/// Returns the chart as an SVG file with axes, a legend, and the styles of line_styles(). Requires at least one finite
/// point, and positive x and marks if log_x, positive y if log_y.
std::string svg(const LineChart& chart);

/// Returns an SVG file with the charts one below the other.
std::string svg(const std::vector<LineChart>& charts);

}  // namespace heed
