// Text in lines that fit the terminal.
#pragma once

#include <string>

namespace heed::cli {

/// `text`, whose lines are no longer than the terminal is wide, and not more than 100 columns. A longer line goes on
/// below its last column of text, as a table's does behind two spaces or more; one that ends in a comment, "# ...",
/// goes on as a comment. Words stay whole.
std::string fitted(const std::string& text);

/// `text` with the lines of each paragraph as one: those that begin where the text of the line before does, and hold no
/// columns of their own.
std::string joined(const std::string& text);

}  // namespace heed::cli
