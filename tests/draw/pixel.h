// A pixel of a picture.
#pragma once

#include "heed/data/images/image.h"
#include "src/draw/colour.h"

namespace heed::test {

inline Colour pixel(const Image& image, Index y, Index x) {
  const auto at = [&](Index c) {
    return image.pixels[static_cast<std::size_t>((c * image.size.height + y) * image.size.width + x)];
  };
  return {at(0), at(1), at(2)};
}

}  // namespace heed::test
