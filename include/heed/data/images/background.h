// The background of an image: the grey of its edge, if that is uniform.
#pragma once

#include "heed/data/dataset.h"

#include <optional>

namespace heed {

/// The median grey level, 0 to 255, of an image's outermost pixels, if four fifths of these are within 32 of it.
std::optional<int> background(const Image& image);

/// The median background of a data set, if four fifths of its images have one within 32 of it. Looks at a hundred of
/// them at most.
std::optional<int> common_background(const Dataset& data);

}  // namespace heed
