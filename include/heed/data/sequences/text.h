// Text of any bytes as tokens 0..255. It is never decoded.
#pragma once

#include "heed/config/data.h"
#include "heed/data/dataset.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// The bytes of data.path, or the first data.limit of them. Throws Error if there are none.
std::vector<std::uint8_t> read_text(const DataConfig& data);

/// Returns a part of a text: the first floor(0.9 n) of n bytes to train on, those up to floor(0.95 n) to validate, or
/// the rest to test.
std::span<const std::uint8_t> part_of(std::span<const std::uint8_t> text, Part part);

/// A window of a text in an evaluation: inputs x[first .. first + length), of whose predictions those from `fresh` on
/// count, that no earlier window has made.
struct TextWindow {
  Index first = 0, length = 0, fresh = 0;
};

/// The windows of at most `context` inputs, each `stride` behind the one before, that predict each of n bytes but the
/// first once; with `start`, the first byte too.
std::vector<TextWindow> evaluation_windows(Index n, Index context, Index stride, bool start);

}  // namespace heed
