// Colours, markers and dashes of lines: the one list for charts, reports and plotting scripts (`heed list --style`).
#pragma once

#include <array>
#include <string>
#include <vector>

namespace heed {

/// The colours of Okabe and Ito, "Color universal design", 2008, distinguishable by colour-blind readers; those too
/// pale on white are darkened. src/apps/web/page/colours.css and notebooks/lab.py have the same colours.
inline constexpr std::array<const char*, 8> line_colours{"#0072b2", "#d55e00", "#008a64", "#b0508a",
                                                         "#2e9bd6", "#a87400", "#6b4fbb", "#6d6d6d"};

/// A marker of a line's points: its name and its shape.
struct LineMarker {
  const char *name, *path;  ///< an SVG path around 0
};

/// The marker of each colour: lines of different colours can also be distinguished in greyscale.
inline constexpr std::array<LineMarker, line_colours.size()> line_markers{{
    {"circle", "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z"},
    {"square", "M-3.2-3.2h6.4v6.4h-6.4z"},
    {"up", "M0-4.4L4 3.2H-4z"},
    {"diamond", "M0-4.6L4.2 0L0 4.6L-4.2 0z"},
    {"down", "M0 4.4L4-3.2H-4z"},
    {"cross", "M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5"},
    {"left", "M-4.4 0L3.2-4V4z"},
    {"plus", "M0-4.4V4.4M-4.4 0H4.4"},
}};

/// SVG dash patterns, for lines of equal colour.
inline constexpr std::array<const char*, 6> line_dashes{"none", "6 3", "2 3", "8 3 2 3", "12 3", "8 3 2 3 2 3"};

/// The style of a line in a chart.
struct LineStyle {
  std::size_t colour, dashes;  ///< index in line_colours and line_markers; index in line_dashes

  bool operator==(const LineStyle&) const = default;
};

/// Returns a style for each name, all different for up to 48 names. A name that contains, as a word, the name of a
/// mechanism or of one of its settings, such as "sima", "mnist-sima" or "sima:norm=l2", has the mechanism's colour in
/// every chart, unless all dash patterns of this colour are used. The name of a mechanism alone also has the same
/// dashes in every chart.
std::vector<LineStyle> line_styles(const std::vector<std::string>& names);

}  // namespace heed
