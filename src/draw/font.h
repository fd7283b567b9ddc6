// The glyphs of Canvas::text.
#pragma once

#include "heed/base/tensor.h"

namespace heed::draw {

/// Points of a glyph from top to bottom: 7 above the baseline, 2 below.
inline constexpr Index glyph_rows = 9;

/// Points that the glyph of a character is wide. What is not printable ASCII looks like '?'.
Index glyph_width(char character);

/// Is the point in row y and column x of a glyph black? False outside it.
bool glyph_point(char character, Index y, Index x);

}  // namespace heed::draw
