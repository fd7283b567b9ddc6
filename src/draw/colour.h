// Colour maps.
#pragma once

#include "canvas.h"

namespace heed {

/// Returns the colour of a value from 0 to 1 (matplotlib's viridis, by Smith and van der Walt, CC0), which is
/// perceptually uniform and monotonic in brightness.
Colour sequential_colour(double share);

/// Returns the colour of a number from -1 (blue) through 0 (light grey) to 1 (red): Moreland, "Diverging color maps for
/// scientific visualization", 2009.
Colour diverging_colour(double number);

/// Blends `colour` over a grey of this brightness, which shows through.
Colour over_grey(Colour colour, std::uint8_t grey);

}  // namespace heed
