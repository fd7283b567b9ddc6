// Parts of images at other sizes.
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

/// Returns a pixel's weight by its distance from an output pixel's centre. Distances are counted in input
/// pixels where the image grows, and in output pixels where it shrinks, so that nothing aliases.
enum class Filter {
  linear,  ///< 1 - distance
  cubic,   ///< Keys' cubic convolution with a = -1/2, two pixels to each side (kernels/grids/bicubic.h): Pillow's
           ///< BICUBIC
};

/// The part `box` of an image, height x width pixels large. Pixels outside of it are not looked at; weights are divided
/// by their sum.
Image resampled(const Image& image, const Box& box, Index height, Index width, Filter filter);

}  // namespace heed
