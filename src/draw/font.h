// Glyphs of Canvas::text.
#pragma once

#include "heed/base/tensor.h"

namespace heed::draw {

/// Height of a glyph in points: 7 above the baseline, 2 below.
inline constexpr Index glyph_rows = 9;

/// Returns the width of a character's glyph in points. Characters outside printable ASCII get that of '?'.
Index glyph_width(char character);

/// Returns true if the point in row y and column x of a glyph is black; false outside the glyph.
bool glyph_point(char character, Index y, Index x);

}  // namespace heed::draw
