// Text of arbitrary bytes as tokens 0..255, without decoding.
#pragma once

#include "heed/config/data.h"
#include "heed/data/dataset.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// Returns the bytes of data.path, or the first data.limit of them, without a byte order mark. Throws Error if there
/// are none.
std::vector<std::uint8_t> read_text(const DataConfig& data);

/// Returns true if every byte is a character, as in ASCII; in UTF-8, other characters have bytes of 128 and above.
bool bytes_are_characters(std::span<const std::uint8_t> text);

/// Returns a part of a text of n bytes: the first floor(0.9 n) for training, those up to floor(0.95 n) for validation,
/// or the rest for testing.
std::span<const std::uint8_t> part_of(std::span<const std::uint8_t> text, Part part);

/// A window of a text in an evaluation, with inputs x[first .. first + length). Its predictions from index `fresh` on
/// are counted; those of lower index are counted in earlier windows.
struct TextWindow {
  Index first = 0, length = 0, fresh = 0;
};

/// Returns windows of at most `context` inputs, each starting `stride` after the previous one. Together they count each
/// of n bytes once; the first byte is counted only if `start`.
std::vector<TextWindow> evaluation_windows(Index n, Index context, Index stride, bool start);

}  // namespace heed
