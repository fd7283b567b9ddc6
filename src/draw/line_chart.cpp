#include "heed/draw/line_chart.h"

#include "heed/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace heed {

namespace {

constexpr double width = 860, height = 460, left = 70, right = 640, top = 44, bottom = 400;

/// Okabe and Ito, "Color universal design", 2008: distinguishable by colour-blind readers.
constexpr std::array<const char*, 8> colours{"#000000", "#0072b2", "#d55e00", "#009e73",
                                             "#cc79a7", "#e69f00", "#56b4e9", "#999999"};
/// The dash pattern changes each time the colours repeat.
constexpr std::array<const char*, 4> dashes{"none", "6 3", "2 3", "8 3 2 3"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

/// Map from values to pixels.
struct Axis {
  double low, high, from, to;
  bool log = false;

  double operator()(double value) const {
    const auto place = [&](double v) { return log ? std::log10(v) : v; };
    return from + (to - from) * (place(value) - place(low)) / (place(high) - place(low));
  }

  /// Returns round values: powers of ten, with their multiples by 2 and 5 if the axis has less than two decades, or
  /// about six multiples of 1, 2 or 5 times a power of ten.
  std::vector<double> ticks() const {
    std::vector<double> list;
    if (log) {
      const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
      for (double power = first; power <= last; ++power)
        for (const double factor : {1, 2, 5}) {
          const double tick = factor * std::pow(10, power);
          const bool shown = factor == 1 || high < 100 * low;
          if (shown && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) list.push_back(tick);
        }
      return list;
    }
    const double rough = (high - low) / 6, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
    for (double n = std::ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n) list.push_back(n * step);
    return list;
  }
};

/// Returns an axis for values from `low` to `high`, widened for a single value and for values so close that tick labels
/// would be equal.
Axis axis(double low, double high, double from, double to, bool log) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > 1e-9 * size) return {low, high, from, to, log};
  if (log) return {low / 2, high * 2, from, to, log};
  const double room = std::max(0.5, 1e-3 * size);
  return {low - room, high + room, from, to, log};
}

std::string text(double x, double y, const char* anchor, const std::string& content) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(content));
}

std::string straight(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string drawn(const ChartLine& line, std::size_t number, const Axis& x, const Axis& y) {
  const char* const colour = colours[number % colours.size()];
  const char* const dash = dashes[number / colours.size() % dashes.size()];
  std::string path;
  bool pen_down = false;
  for (const auto& [a, b] : line.points) {
    if (std::isfinite(b)) path += fmt::format("{}{:.1f} {:.1f}", pen_down ? " L" : " M", x(a), y(b));
    pen_down = std::isfinite(b);
  }
  const std::string style =
      fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"{}\"", colour, dash);
  const double legend = top + 8 + 18 * static_cast<double>(number);
  return fmt::format("<path d=\"{}\" {}/>\n", path, style) +
         straight(right + 16, legend, right + 40, legend, style.c_str()) +
         text(right + 46, legend + 4, "start", line.name);
}

double height_of(const LineChart& chart) {
  return std::max(height, top + 26 + 18 * static_cast<double>(chart.lines.size()));
}

}  // namespace

std::string svg(const LineChart& chart) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double x_low = infinity, x_high = -infinity, y_low = infinity, y_high = -infinity;
  for (const ChartLine& line : chart.lines)
    for (const auto& [a, b] : line.points) {
      if (!std::isfinite(b)) continue;
      x_low = std::min(x_low, a), x_high = std::max(x_high, a);
      y_low = std::min(y_low, b), y_high = std::max(y_high, b);
    }
  HEED_ASSERT(x_low <= x_high);
  const Axis x = axis(x_low, x_high, left, right, chart.log_x), y = axis(y_low, y_high, bottom, top, chart.log_y);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height_of(chart));
  out += text((left + right) / 2, top - 18, "middle", chart.title);
  out += text((left + right) / 2, bottom + 40, "middle", chart.x_title);
  out += text(left, top - 18, "end", chart.y_title);
  for (const double tick : x.ticks()) {
    out += straight(x(tick), top, x(tick), bottom, "stroke=\"#dddddd\"");
    out += text(x(tick), bottom + 18, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    out += straight(left, y(tick), right, y(tick), "stroke=\"#dddddd\"");
    out += text(left - 8, y(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  for (std::size_t i = 0; i < chart.lines.size(); ++i) out += drawn(chart.lines[i], i, x, y);
  for (const ChartMark& mark : chart.marks) {
    out += straight(x(mark.x), top, x(mark.x), bottom, "stroke=\"#d55e00\" stroke-dasharray=\"3 3\"");
    out += text(x(mark.x) + 4, top + 12, "start", mark.name);
  }
  return out + "</svg>\n";
}

std::string svg(const std::vector<LineChart>& charts) {
  double sum = 0;
  std::string inner;
  for (const LineChart& chart : charts) {
    inner += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", sum, svg(chart));
    sum += height_of(chart);
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n", width,
             sum) +
         inner + "</svg>\n";
}

}  // namespace heed
