// Colours for numbers.
#pragma once

#include "canvas.h"

namespace heed {

/// Colour of a share from 0 to 1 (matplotlib's viridis, by Smith and van der Walt, CC0): equal steps look equal, and
/// brightness alone tells the order.
Colour sequential_colour(double share);

/// Colour of a number from -1 (blue) through 0 (light grey) to 1 (red): Moreland, "Diverging color maps for scientific
/// visualization", 2009.
Colour diverging_colour(double number);

/// `colour` over a grey of this brightness, which shows through.
Colour over_grey(Colour colour, std::uint8_t grey);

}  // namespace heed
