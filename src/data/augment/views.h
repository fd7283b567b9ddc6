// Views of an image for a student and a teacher whose outputs are to agree: crops with changed colours. Draws depend on
// the random stream alone.
#pragma once

#include "src/data/images/resample.h"
#include "heed/base/random.h"
#include "heed/config/data.h"
#include "heed/config/dino.h"

namespace heed {

/// Draws a crop whose fraction of the area is uniform in scale[0]..scale[1] and whose aspect, width by height, is
/// log-uniform in 3/4..4/3. After ten draws that exceed the image, returns the largest centred crop with an aspect in
/// that range. (Szegedy et al., arXiv:1409.4842; torchvision's constants.)
Box draw_part(ImageSize size, const std::vector<double>& scale, const RandomStream& stream);

/// Changes brightness, contrast, saturation and hue (data/images/colour.h), in random order: factors uniform in
/// 0.6..1.4, 0.6..1.4 and 0.8..1.2, and a hue rotation uniform in -0.1..0.1 of the circle.
void jitter(Image& image, const RandomStream& stream);

/// Maker of the views of an image, with the augmentations that data.augment selects.
class ViewMaker {
 public:
  /// Views 0 and 1 have size `large`, the others dino.local_size.
  ViewMaker(const DataConfig& data, const DinoConfig& dino, ImageSize large);

  Index count() const { return 2 + dino_.local_crops; }
  ImageSize size(Index view) const { return view < 2 ? large_ : small_; }

  /// Returns view number `view` of an image: a crop (draw_part), resized bicubically to the view's size, to which these
  /// operations are applied, if selected, with these probabilities:
  ///   flip       1/2
  ///   jitter     0.8
  ///   grey       0.2
  ///   blur       1 for view 0, 0.1 for view 1, 0.5 for small views; sigma uniform in 0.1..2 pixels
  ///   solarise   0.2 for view 1, 0 for all others
  Image operator()(const Image& image, Index view, const RandomStream& stream) const;

 private:
  DinoConfig dino_;
  ImageSize large_, small_;
  bool flip_ = false, jitter_ = false, grey_ = false, blur_ = false, solarise_ = false;
};

}  // namespace heed
