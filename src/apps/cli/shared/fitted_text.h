// Text wrapped to the terminal.
#pragma once

#include <string>

namespace heed::cli {

/// Returns `text` wrapped to the terminal's width, but to at least 40 and at most 100 columns. A long line continues
/// below its last text column, as in tables with columns separated by two or more spaces, unless that column starts in
/// the last third of the width; a line that ends in a comment, "# ...", continues as a comment. Words stay whole.
std::string fitted(const std::string& text);

/// Returns `text` with the lines of each paragraph joined. A line with one column continues the previous line if it
/// starts below that line's last column. No line continues an empty line, or one that ends in a colon.
std::string joined(const std::string& text);

}  // namespace heed::cli
