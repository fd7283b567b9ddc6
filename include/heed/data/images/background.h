// The background of an image: the grey of its edge, if that is uniform.
#pragma once

#include "heed/data/dataset.h"

#include <optional>

namespace heed {

/// Returns the median grey level, 0 to 255, of the outermost pixels, if four fifths of these are within 32 of it.
std::optional<int> background(const Image& image);

/// Returns the median background of a data set, if four fifths of its images have one within 32 of it. Reads at most a
/// hundred images.
std::optional<int> common_background(const Dataset& data);

}  // namespace heed
