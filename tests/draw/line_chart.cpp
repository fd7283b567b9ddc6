// Line charts: positions of points, and axes.
#include "heed/draw/line_chart.h"

#include "heed/draw/line_style.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cmath>
#include <tuple>

using namespace heed;

namespace {

bool has(const std::string& picture, const std::string& piece) { return picture.find(piece) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(draw_line_chart)

BOOST_AUTO_TEST_CASE(points_lie_between_the_ends_of_the_axes) {
  const std::string picture = svg({"title", "x", "y", false, {{"a", {{0, 0}, {5, 1}, {10, 0.25}}}}, {}});
  BOOST_TEST(has(picture, "<path d=\" M68.0 362.0 L339.0 62.0 L610.0 287.0\""), picture);
  for (const char* label : {">title<", ">x<", ">y<", ">a<", ">10<", ">0.2<"}) BOOST_TEST(has(picture, label), label);
}

BOOST_AUTO_TEST_CASE(a_logarithmic_axis_has_powers_of_ten) {
  const std::string picture = svg({"", "", "", true, {{"a", {{1e-3, 0}, {1e-2, 1}, {1e-1, 2}}}}, {{1e-2, "here"}}});
  BOOST_TEST(has(picture, "M68.0 362.0 L339.0 212.0 L610.0 62.0"));
  for (const char* label : {">0.001<", ">0.01<", ">0.1<", ">here<"}) BOOST_TEST(has(picture, label), label);
  BOOST_TEST(has(picture, "<line x1=\"339.0\" y1=\"62.0\" x2=\"339.0\" y2=\"362.0\" stroke=\"#222222\""));
}

BOOST_AUTO_TEST_CASE(a_logarithmic_axis_of_less_than_two_decades_has_multiples) {
  LineChart chart{"", "", "", true, {{"a", {{10, 1}, {20, 10}, {40, 100}}}}, {}};
  chart.log_y = true;
  const std::string picture = svg(chart);
  BOOST_TEST(has(picture, "M68.0 362.0 L339.0 212.0 L610.0 62.0"), picture);
  for (const char* label : {">10<", ">20<", ">1<", ">100<"}) BOOST_TEST(has(picture, label), label);
  BOOST_TEST(!has(picture, ">50<"));
}

// Ranges that contain at most one of 1, 2 and 5 times a power of ten have other ticks; positions are still logarithmic.
BOOST_AUTO_TEST_CASE(a_short_logarithmic_axis_has_ticks_too) {
  const auto labels = [](double low, double high) {
    const std::string picture = svg({"", "", "", true, {{"a", {{low, 0}, {high, 1}}}}, {}});
    std::string list;
    for (std::size_t at = 0; (at = picture.find("y=\"382.0\" text-anchor=\"middle\">", at)) != std::string::npos;) {
      at = picture.find('>', at) + 1;
      list += picture.substr(at, picture.find('<', at) - at) + " ";
    }
    return list;
  };
  BOOST_TEST(labels(64, 96) == "65 70 75 80 85 90 95 ");
  BOOST_TEST(labels(60, 90) == "60 65 70 75 80 85 90 ");
  BOOST_TEST(labels(3, 4) == "3 3.2 3.4 3.6 3.8 4 ");
  BOOST_TEST(labels(0.0012, 0.0019) == "0.0012 0.0013 0.0014 0.0015 0.0016 0.0017 0.0018 0.0019 ");
  BOOST_TEST(labels(40, 90) == "40 50 60 70 80 90 ");
  BOOST_TEST(labels(40, 110) == "50 100 ");
  const std::string picture = svg({"", "", "", true, {{"a", {{64, 0}, {96, 1}}}}, {}});
  BOOST_TEST(has(picture, fmt::format("<line x1=\"{:.1f}\"", 68 + 542 * std::log(80 / 64.0) / std::log(96 / 64.0))));
}

BOOST_AUTO_TEST_CASE(charts_one_below_the_other) {
  const LineChart first{"first", "", "", false, {{"a", {{0, 0}, {1, 1}}}}, {}},
      second{"second", "", "", false, first.lines, {}};
  const std::string picture = svg(std::vector<LineChart>{first, second});
  BOOST_TEST(has(picture, "viewBox=\"0 0 640 900\""), picture);
  BOOST_TEST(picture.find(">first<") < picture.find("translate(0 450)"));
  BOOST_TEST(picture.find("translate(0 450)") < picture.find(">second<"));
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_breaks_the_line) {
  const std::string picture = svg({"", "", "", false, {{"a", {{0, 0}, {1, NAN}, {2, 1}, {3, INFINITY}, {4, 1}}}}, {}});
  BOOST_TEST(has(picture, "d=\" M68.0 362.0 M339.0 62.0 M610.0 62.0\""), picture);
  BOOST_TEST(!has(picture, "nan"));
  BOOST_TEST(!has(picture, "inf"));
}

// Every second one of 19 points has a marker, from the second on. The ninth and the last, which gaps isolate, have one,
// too.
BOOST_AUTO_TEST_CASE(a_point_between_gaps_has_a_marker) {
  LineChart chart{"", "", "", false, {{"a", {}}}, {}};
  for (int i = 0; i <= 18; ++i) chart.lines[0].points.emplace_back(i, i == 7 || i == 9 || i == 17 ? NAN : i);
  const std::string picture = svg(chart);
  for (const int i : {8, 18})
    BOOST_TEST(has(picture, fmt::format("translate({:.1f} {:.1f})", 68 + 542 * i / 18.0, 362 - 300 * i / 18.0)), i);
  BOOST_TEST(!has(picture, fmt::format("translate({:.1f} {:.1f})", 68 + 542 * 6 / 18.0, 362 - 300 * 6 / 18.0)));
}

BOOST_AUTO_TEST_CASE(a_single_point_has_room_around_it) {
  for (const bool log : {false, true}) {
    const std::string picture = svg({"", "", "", log, {{"a", {{3, 7}}}}, {}});
    BOOST_TEST(has(picture, " M339.0 212.0"), picture);
    BOOST_TEST(!has(picture, "nan"));
  }
}

// Ticks between values as close as these would be equal.
BOOST_AUTO_TEST_CASE(values_that_differ_by_a_last_digit_have_room_around_them) {
  for (const double value : {1.0, 1e-300, 1e300}) {
    const std::string picture = svg({"", "", "", false, {{"a", {{0, value}, {1, value * (1 + 1e-15)}}}}, {}});
    BOOST_TEST(std::count(picture.begin(), picture.end(), '\n') < 60);
    BOOST_TEST(!has(picture, "nan"));
    BOOST_TEST(!has(picture, "inf"));
  }
}

BOOST_AUTO_TEST_CASE(values_above_the_limit_are_at_the_upper_edge) {
  LineChart chart{"", "", "", false, {{"a", {{0, 0}, {1, 900}, {2, 4}}}}, {}};
  chart.y_most = 4;
  BOOST_TEST(has(svg(chart), "d=\" M68.0 362.0 L339.0 62.0 L610.0 62.0\""));
}

BOOST_AUTO_TEST_CASE(long_titles_and_names_are_squeezed_into_the_chart) {
  const std::string narrow(30, 'i'), wide(200, 'w');
  const auto squeezed = [&](const std::string& title, const std::string& name) {
    const std::string picture = svg({title, "", "", false, {{name, {{0, 0}, {1, 1}}}}, {}});
    std::size_t count = 0;
    for (std::size_t at = 0; (at = picture.find("textLength", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  BOOST_TEST(squeezed(narrow, narrow) == 0U);
  BOOST_TEST(squeezed(wide, narrow) == 1U);
  BOOST_TEST(squeezed(wide, wide) == 2U);
}

BOOST_AUTO_TEST_CASE(many_lines_are_told_apart_and_names_are_text) {
  LineChart chart{"a & b", "", "", false, {}, {}};
  for (int i = 0; i < 40; ++i) chart.lines.push_back({"<" + std::to_string(i) + ">", {{0, 0}, {1, i}}});
  const std::string picture = svg(chart);
  BOOST_TEST(has(picture, "a &amp; b"));
  BOOST_TEST(has(picture, ">&lt;39&gt;<"));
  BOOST_TEST(has(picture, "height=\"648\""));
  BOOST_TEST(has(picture, "stroke=\"#0072b2\" stroke-width=\"1.8\" stroke-dasharray=\"6 3\""));
  BOOST_TEST(has(picture, "fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.8\" stroke-dasharray=\"6 3\""));
}

BOOST_AUTO_TEST_CASE(marks_beyond_the_lines_extend_the_axis) {
  const std::string picture = svg({"", "", "", true, {{"a", {{10, 0}, {100, 1}}}}, {{1, "low"}, {1000, "high"}}});
  BOOST_TEST(has(picture, fmt::format("d=\" M{:.1f} 362.0 L{:.1f} 62.0\"", 68 + 542 / 3.0, 68 + 542 * 2 / 3.0)),
             picture);
  for (const char* at : {"<line x1=\"68.0\"", "<line x1=\"610.0\""})
    BOOST_TEST(has(picture, std::string(at) + " y1=\"62.0\" x2=" + (at + 9) + " y2=\"362.0\" stroke=\"#222222\""));
}

// The text of a mark is on the side towards the middle of the chart. The legend has columns of (640 - 20) / 4 pixels
// for short names; its lines are 36 pixels long, the first ones 70 pixels below the plot, which ends at y = 362.
BOOST_AUTO_TEST_CASE(marks_and_legend_by_hand) {
  LineChart chart{"", "across", "up", false, {}, {{2, "left"}, {8, "right"}}};
  for (const char* name : {"a", "b", "c", "d", "e"}) chart.lines.push_back({name, {{0, 0}, {10, 1}}});
  const std::string picture = svg(chart);
  BOOST_TEST(has(picture, "<text x=\"181.4\" y=\"76.0\" text-anchor=\"start\">left</text>"), picture);
  BOOST_TEST(has(picture, "<text x=\"496.6\" y=\"76.0\" text-anchor=\"end\">right</text>"));
  BOOST_TEST(has(picture, "<text x=\"339.0\" y=\"406.0\" text-anchor=\"middle\">across</text>"));
  for (const char* tick : {">0<", ">2<", ">4<", ">6<", ">8<", ">10<"}) BOOST_TEST(has(picture, tick), tick);
  BOOST_TEST(!has(picture, ">-0<"));
  for (const auto& [name, x, y] :
       {std::tuple("a", 10, 432), {"b", 165, 432}, {"c", 320, 432}, {"d", 475, 432}, {"e", 10, 454}}) {
    BOOST_TEST(has(picture, fmt::format("<line x1=\"{0}.0\" y1=\"{1}.0\" x2=\"{2}.0\" y2=\"{1}.0\"", x, y, x + 36)),
               name);
    BOOST_TEST(has(picture, fmt::format("<text x=\"{}.0\" y=\"{}.0\">{}</text>", x + 44, y + 5, name)), name);
  }
}

// Markers are at every tenth of 100 points, in the middle of each ten, and in the legend; colours differ.
BOOST_AUTO_TEST_CASE(lines_have_about_ten_markers) {
  LineChart chart{"", "", "", false, {{"a", {}}, {"b", {{0, 0}, {99, 1}}}}, {}};
  for (int i = 0; i < 100; ++i) chart.lines[0].points.emplace_back(i, i % 2);
  const std::string picture = svg(chart);
  const auto count = [&](const std::string& piece) {
    int found = 0;
    for (std::size_t at = 0; (at = picture.find(piece, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  BOOST_TEST(count("<path transform=") == 10 + 1 + 2 + 1);
  BOOST_TEST(has(picture, fmt::format("<path transform=\"translate({:.1f} 62.0)", 68 + 542 * 5 / 99.0)));
  for (const LineStyle& style : line_styles({"a", "b"}))
    BOOST_TEST(count(fmt::format("fill=\"none\" stroke=\"{}\"", line_colours[style.colour])) == 1);
}

// A chart with five lines has two rows in its legend and is 22 pixels taller than a chart with one row.
BOOST_AUTO_TEST_CASE(charts_may_have_different_heights) {
  LineChart small{"", "", "", false, {{"a", {{0, 0}, {1, 1}}}}, {}}, large = small;
  for (const char* name : {"b", "c", "d", "e"}) large.lines.push_back({name, large.lines[0].points});
  const std::string picture = svg(std::vector<LineChart>{small, large, small});
  BOOST_TEST(has(picture, "viewBox=\"0 0 640 1372\""), picture);
  for (const char* at : {"translate(0 0)", "translate(0 450)", "translate(0 922)"}) BOOST_TEST(has(picture, at), at);
}

// A column of the legend has room for the longest name, first or second: names of 29 characters (8.4 pixels each, and
// 60 more) fit in two columns, names of 30 characters in one.
BOOST_AUTO_TEST_CASE(the_legend_has_room_for_the_longest_name) {
  const auto picture = [](std::size_t first, std::size_t second) {
    LineChart chart{"", "", "", false, {}, {}};
    for (const std::size_t length : {first, second})
      chart.lines.push_back({std::string(length, length == first ? 'a' : 'b'), {{0, 0}, {1, 1}}});
    return svg(chart);
  };
  for (const auto& [first, second] : {std::pair(1, 29), {29, 1}}) {
    BOOST_TEST(has(picture(first, second), "height=\"450\""));
    BOOST_TEST(has(picture(first, second), "<text x=\"364.0\" y=\"437.0\">b"));
  }
  for (const auto& [first, second] : {std::pair(1, 30), {30, 1}}) {
    BOOST_TEST(has(picture(first, second), "height=\"472\""));
    BOOST_TEST(has(picture(first, second), "<text x=\"54.0\" y=\"459.0\">b"));
  }
}

// The chart's title, the y axis's below it, and a line and a label for each tick: x from 0 to 10 in steps of 2, y from
// 0 to 1 in steps of 0.2.
BOOST_AUTO_TEST_CASE(titles_and_ticks_by_hand) {
  const std::string picture = svg({"top", "across", "up", false, {{"a", {{0, 0}, {10, 1}}}}, {}});
  for (const char* piece :
       {"<text x=\"10.0\" y=\"22.0\" font-weight=\"bold\">top</text>", "<text x=\"10.0\" y=\"46.0\">up</text>",
        "<line x1=\"284.8\" y1=\"62.0\" x2=\"284.8\" y2=\"362.0\" stroke=\"#dddddd\"/>",
        "<text x=\"284.8\" y=\"382.0\" text-anchor=\"middle\">4</text>",
        "<line x1=\"68.0\" y1=\"302.0\" x2=\"610.0\" y2=\"302.0\" stroke=\"#dddddd\"/>",
        "<text x=\"60.0\" y=\"307.0\" text-anchor=\"end\">0.2</text>",
        "<text x=\"60.0\" y=\"67.0\" text-anchor=\"end\">1</text>"})
    BOOST_TEST(has(picture, piece), piece);
}

BOOST_AUTO_TEST_SUITE_END()
