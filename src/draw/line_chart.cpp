#include "heed/draw/line_chart.h"

#include "heed/base/error.h"
#include "heed/draw/line_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace heed {

namespace {

/// Lengths in pixels. Text of 15 pixels can still be read on a phone, where the chart is scaled down to about 400
/// pixels.
constexpr double width = 640, left = 68, right = 610, top = 62, bottom = 362, text_size = 15, legend_line = 22;

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

  /// Returns round values. A logarithmic axis gets the powers of ten and, if it spans less than two decades, their
  /// multiples by 2 and 5. A linear axis, or a logarithmic one with at most one such value, gets about six multiples of
  /// 1, 2 or 5 times a power of ten.
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
      if (list.size() > 1) return list;
      list.clear();
    }
    const double rough = (high - low) / 6, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
    const double first = std::ceil(low / step - 1e-9) + 0.0;  // 0 instead of -0, whose label would be "-0"
    for (double n = first; n * step <= high + 1e-9 * step; ++n) list.push_back(n * step);
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

/// Returns text that is squeezed if it would be wider than `room`; a character takes about 0.56 of the text's size.
std::string fitted(double x, double y, const std::string& content, double room, const char* style = "") {
  const double size = 0.56 * text_size * static_cast<double>(content.size());
  const std::string squeezed =
      size > room ? fmt::format(" textLength=\"{:.0f}\" lengthAdjust=\"spacingAndGlyphs\"", room) : "";
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, style, squeezed, escaped(content));
}

std::string stroke(const LineStyle& style) {
  return fmt::format("stroke=\"{}\" stroke-width=\"1.8\"", line_colours[style.colour]);
}

std::string dashed(const LineStyle& style) {
  return fmt::format("{} stroke-dasharray=\"{}\"", stroke(style), line_dashes[style.dashes]);
}

std::string marker(double x, double y, const LineStyle& style) {
  return fmt::format("<path transform=\"translate({:.1f} {:.1f})\" d=\"{}\" fill=\"{}\" {}/>\n", x, y,
                     line_markers[style.colour].path, line_colours[style.colour], stroke(style));
}

/// Returns a line with about ten markers, and one at each point that no segment of the line reaches.
std::string drawn(const ChartLine& line, const LineStyle& style, const Axis& x, const Axis& y) {
  const std::size_t step = (line.points.size() + 9) / 10;
  std::string path, markers;
  bool pen_down = false;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const auto& [a, b] = line.points[i];
    const double at = y(std::min(b, y.high));
    const bool alone = !pen_down && (i + 1 == line.points.size() || !std::isfinite(line.points[i + 1].second));
    if (std::isfinite(b)) path += fmt::format("{}{:.1f} {:.1f}", pen_down ? " L" : " M", x(a), at);
    if (std::isfinite(b) && (alone || i % step == step / 2)) markers += marker(x(a), at, style);
    pen_down = std::isfinite(b);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" {}/>\n", path, dashed(style)) + markers;
}

/// Columns, rows and entries of the legend, which is below the chart.
struct Legend {
  std::size_t columns, rows;
  explicit Legend(const std::vector<ChartLine>& lines) {
    std::size_t longest = 1;
    for (const ChartLine& line : lines) longest = std::max(longest, line.name.size());
    const double entry = 60 + 0.56 * text_size * static_cast<double>(longest);
    columns = std::clamp<std::size_t>(static_cast<std::size_t>((width - 20) / entry), 1, 4);
    rows = (lines.size() + columns - 1) / columns;
  }
  std::string entry(const std::string& name, std::size_t number, const LineStyle& style) const {
    const double room = (width - 20) / static_cast<double>(columns);
    const double x = 10 + room * static_cast<double>(number % columns);
    const double y = bottom + 70 + legend_line * static_cast<double>(number / columns);
    return straight(x, y, x + 36, y, dashed(style).c_str()) + marker(x + 18, y, style) +
           fitted(x + 44, y + 5, name, room - 48);
  }
};

double height_of(const LineChart& chart) {
  return bottom + 66 + legend_line * static_cast<double>(Legend(chart.lines).rows);
}

}  // namespace

std::string svg(const LineChart& chart) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double x_low = infinity, x_high = -infinity, y_low = infinity, y_high = -infinity;
  for (const ChartLine& line : chart.lines)
    for (const auto& [a, b] : line.points) {
      if (!std::isfinite(b)) continue;
      x_low = std::min(x_low, a), x_high = std::max(x_high, a);
      y_low = std::min({y_low, b, chart.y_most}), y_high = std::max(y_high, std::min(b, chart.y_most));
    }
  HEED_ASSERT(x_low <= x_high);
  for (const ChartMark& mark : chart.marks) x_low = std::min(x_low, mark.x), x_high = std::max(x_high, mark.x);
  const Axis x = axis(x_low, x_high, left, right, chart.log_x), y = axis(y_low, y_high, bottom, top, chart.log_y);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"{2}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height_of(chart), text_size);
  out += fitted(10, 22, chart.title, 0.9 * (width - 20), " font-weight=\"bold\"");
  out += fitted(10, 46, chart.y_title, width - 20);
  out += text((left + right) / 2, bottom + 44, "middle", chart.x_title);
  for (const double tick : x.ticks()) {
    out += straight(x(tick), top, x(tick), bottom, "stroke=\"#dddddd\"");
    out += text(x(tick), bottom + 20, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    out += straight(left, y(tick), right, y(tick), "stroke=\"#dddddd\"");
    out += text(left - 8, y(tick) + 5, "end", fmt::format("{:g}", tick));
  }
  std::vector<std::string> names;
  for (const ChartLine& line : chart.lines) names.push_back(line.name);
  const std::vector<LineStyle> styles = line_styles(names);
  const Legend legend(chart.lines);
  for (std::size_t i = 0; i < names.size(); ++i)
    out += drawn(chart.lines[i], styles[i], x, y) + legend.entry(names[i], i, styles[i]);
  for (const ChartMark& mark : chart.marks) {
    out += straight(x(mark.x), top, x(mark.x), bottom, "stroke=\"#222222\" stroke-dasharray=\"3 3\"");
    const bool before = x(mark.x) > (left + right) / 2;
    out += text(x(mark.x) + (before ? -5 : 5), top + 14, before ? "end" : "start", mark.name);
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
