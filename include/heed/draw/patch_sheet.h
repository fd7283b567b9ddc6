// Images with a class for each patch, in colours.
#pragma once

#include "heed/data/images/image.h"

#include <string>
#include <vector>

namespace heed {

/// An image, and classes of its patches, row by row: as somebody tells them, and as they are. Class 0 is background.
struct PatchPicture {
  Image image;
  std::vector<int> told, truth;
};

/// A row for each picture: the image, the classes told, and the true ones, over the image. Ten colours stand for
/// classes 1 to 10, and again for those beyond. Each pixel is `scale` pixels wide.
Image patch_sheet(const std::vector<PatchPicture>& pictures, Index patch, Index scale);

/// Returns the legend of the colours by class: "1 blue, 2 orange".
std::string patch_legend(const std::vector<std::string>& names);

}  // namespace heed
