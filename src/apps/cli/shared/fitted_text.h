// Text wrapped to the terminal.
#pragma once

#include <string>

namespace heed::cli {

/// Returns `text` wrapped to the terminal's width, at most 100 columns. A long line continues below its last text
/// column, as in tables with columns separated by two or more spaces; a line that ends in a comment, "# ...", continues
/// as a comment. Words stay whole.
std::string fitted(const std::string& text);

/// Returns `text` with the lines of each paragraph joined. A line continues the previous one if it has the same
/// indentation and no columns.
std::string joined(const std::string& text);

}  // namespace heed::cli
