// Decoding of text files from any system.
#pragma once

#include <string>

namespace heed::cli {

/// Returns the text as UTF-8 with line feeds and without a byte order mark: CR LF and CR become LF, UTF-16 is decoded,
/// and a text that is not UTF-8 is read as Latin-1. Throws Error if it contains a zero byte.
std::string plain_text(const std::string& bytes);

}  // namespace heed::cli
