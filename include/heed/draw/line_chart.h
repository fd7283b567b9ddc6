// Lines over a plane, as a picture that any browser opens.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heed {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y; the line is broken where y is not finite
};

/// A place on the x axis that is pointed out.
struct ChartMark {
  double x;
  std::string name;
};

struct LineChart {
  std::string title, x_title, y_title;
  bool log_x = false;
  std::vector<ChartLine> lines;
  std::vector<ChartMark> marks;
  bool log_y = false;
};

/// The chart as a file in SVG, with axes and a legend. There must be a finite point; x is above 0 where log_x is set,
/// and y where log_y is.
std::string svg(const LineChart& chart);

/// Returns a file with the charts one below the other.
std::string svg(const std::vector<LineChart>& charts);

}  // namespace heed
