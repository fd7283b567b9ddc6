// A check that JPEG files must pass before stb_image sees them.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::data {

/// Whether no Huffman table of a JPEG file announces more than the 256 codes that there can be. stb_image before 2.28
/// writes beyond its tables for such files (nothings/stb issue 1289), in the header already. Files that are not JPEG
/// pass, and so does the beginning of a file if it announces no such table.
bool huffman_tables_fit(const std::vector<std::uint8_t>& bytes);

}  // namespace heed::data
