// Drawing of images with a class for each patch.
#pragma once

#include "heed/data/images/image.h"

#include <string>
#include <vector>

namespace heed {

/// An image with the predicted and true classes of its patches, row by row. Class 0 is background.
struct PatchPicture {
  Image image;
  std::vector<int> predicted, truth;
};

/// Draws a row for each picture: the image, the image with the predicted classes, and the image with the true classes.
/// The ten colours of classes 1 to 10 repeat for further classes. Each image pixel is drawn `scale` pixels wide. If
/// there is room, each patch except background shows the first letter of its class's name.
Image patch_sheet(const std::vector<PatchPicture>& pictures, const std::vector<std::string>& names, Index patch,
                  Index scale);

/// Returns the legend of the colours by class, such as "0 blue, 1 orange" for digits.
std::string patch_legend(const std::vector<std::string>& names);

}  // namespace heed
