// The background of an image: the grey of its edge, if that is uniform.
#pragma once

#include "heed/data/dataset.h"

#include <optional>

namespace heed {

/// Returns the median grey level, 0 to 255, of the outermost pixels, if at least four fifths of them are within 32 of
/// it.
std::optional<int> background(const Image& image);

/// Returns the median background of up to 100 images, spread over a data set, if at least four fifths of them have a
/// background within 32 of it.
std::optional<int> common_background(const Dataset& data);

}  // namespace heed
