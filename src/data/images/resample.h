// Resampling of a rectangle of an image.
#pragma once

#include "heed/data/images/image.h"

namespace heed {

/// A rectangle of an image: rows [top, bottom), columns [left, right).
struct Box {
  Index top = 0, left = 0, bottom = 0, right = 0;
  Index height() const { return bottom - top; }
  Index width() const { return right - left; }
  Index area() const { return height() * width(); }
};

/// Weight of a pixel as a function of its distance from an output pixel's centre. The unit of distance is the input
/// pixel where the image grows and, to avoid aliasing, the output pixel where it shrinks.
enum class Filter {
  linear,  ///< 1 - distance
  cubic,   ///< Keys' cubic convolution with a = -1/2, two pixels to each side (kernels/grids/bicubic.h): Pillow's
           ///< BICUBIC
};

/// Returns the rectangle `box` of an image, resized to height x width. Pixels outside the box are not read; weights are
/// divided by their sum.
Image resampled(const Image& image, const Box& box, Index height, Index width, Filter filter);

}  // namespace heed
