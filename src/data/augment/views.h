// Views of an image, from which a student and a teacher are to make the same: parts of it with other colours. What is
// drawn depends on the random stream alone.
#pragma once

#include "src/data/images/resample.h"
#include "heed/base/random.h"
#include "heed/config/data.h"
#include "heed/config/dino.h"

namespace heed {

/// A part of an image whose share of the area is uniform in scale[0]..scale[1] and whose aspect, width by height, is
/// log-uniform in 3/4..4/3. One that sticks out is drawn anew, ten times at most; then it is the largest part in the
/// middle of the image with an aspect in that range. (Szegedy et al., arXiv:1409.4842; torchvision's numbers.)
Box draw_part(ImageSize size, const std::vector<double>& scale, const RandomStream& stream);

/// Brightness, contrast, saturation and hue (data/images/colour.h), in a random order: factors uniform in 0.6..1.4,
/// 0.6..1.4 and 0.8..1.2, a turn uniform in -0.1..0.1.
void jitter(Image& image, const RandomStream& stream);

/// The augmentations of views, by data.augment.
class ViewMaker {
 public:
  /// Views 0 and 1 are `large`, the others have dino.local_size.
  ViewMaker(const DataConfig& data, const DinoConfig& dino, ImageSize large);

  Index count() const { return 2 + dino_.local_crops; }
  ImageSize size(Index view) const { return view < 2 ? large_ : small_; }

  /// View number `view` of an image: a part of it (draw_part) at the view's size, bicubically; then, as far as they are
  /// asked for,
  ///   flip       with probability 1/2
  ///   jitter     0.8
  ///   grey       0.2
  ///   blur       1 of view 0, 0.1 of view 1, 0.5 of small ones; sigma uniform in 0.1..2 pixels
  ///   solarise   0.2 of view 1
  Image operator()(const Image& image, Index view, const RandomStream& stream) const;

 private:
  DinoConfig dino_;
  ImageSize large_, small_;
  bool flip_ = false, jitter_ = false, grey_ = false, blur_ = false, solarise_ = false;
};

}  // namespace heed
