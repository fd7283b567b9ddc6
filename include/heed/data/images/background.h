// The background of an image: the grey of its edge, if that is uniform.
#pragma once

#include "heed/data/dataset.h"

#include <optional>

namespace heed {

/// Returns the median grey level, 0 to 255, of the outermost pixels, if at least four fifths of them are within 32 of
/// it.
std::optional<int> background(const Image& image);

/// Returns the median background of a data set's images, if at least four fifths of the images have a background within
/// 32 of it. Reads at most 100 images.
std::optional<int> common_background(const Dataset& data);

}  // namespace heed
