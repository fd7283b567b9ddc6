// Augmentation of training images. What is drawn for an image depends on its random stream alone, so it is the same
// whichever thread does it and whatever was drawn before.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"
#include "heed/base/random.h"
#include "src/data/images/resample.h"

#include <span>

namespace heed {

/// The augmentations of data.augment. They are applied in the order below, whatever the order in the list.
struct Augmentations {
  bool crop = false;         ///< a window of the image's size out of the image with black pixels put around it
  bool flip = false;         ///< mirrored left to right, one image in two
  bool randaugment = false;  ///< randomly chosen operations on colour and geometry
  bool erase = false;        ///< a rectangle replaced by noise
  bool mixup = false;        ///< two images, and their targets, blended
  bool cutmix = false;       ///< a rectangle, and a like part of the target, taken from another image

  bool any() const { return crop || flip || randaugment || erase || mixup || cutmix; }
};

/// Reads data.augment and checks the parameters. Throws Error for a name that is unknown (with the nearest one) or
/// given twice, and for parameters out of range.
Augmentations parse_augmentations(const DataConfig& config);

/// The window at (top, left) of the image surrounded by `padding` black pixels; 0 <= top, left <= 2 padding.
void crop(Image& image, Index padding, Index top, Index left);

/// Mirrors an image left to right.
void flip(Image& image);

/// An operation of RandAugment. `strength` is from 0 (the image hardly changes) to 1; `sign`, 1 or -1, is the direction
/// of those that have two.
struct AugmentOperation {
  const char* name;
  void (*apply)(Image& image, double strength, double sign);
};

/// The list of operations of RandAugment (Cubuk et al., 2019, arXiv:1909.13719v2).
std::span<const AugmentOperation> randaugment_operations();

/// RandAugment: `ops` operations, each drawn from the list, with strength `magnitude` / 10.
void randaugment(Image& image, Index ops, double magnitude, const RandomStream& stream);

/// The augmentations of bytes: crop, flip, randaugment, as asked for, drawn from `stream`.
void augment(Image& image, const Augmentations& which, const DataConfig& config, const RandomStream& stream);

/// Random erasing (Zhong et al., 2017, arXiv:1708.04896v2): with `probability`, a rectangle of 2% to 33% of the area
/// and an aspect of 0.3 to 1/0.3 is replaced by normal noise. Pixels are normalised [C,H,W].
template <class T>
void erase(View<T> image, double probability, const RandomStream& stream);

/// The mixing of a batch's images: image i with image size-1-i.
struct Mix {
  double keep = 1;   ///< weight of an image's own target
  bool cut = false;  ///< cutmix: `box` comes from the partner; otherwise mixup: pixels are blended with weight `keep`
  Box box;
};

/// Draws a mix for a batch of images of the given size: mixup (Zhang et al., 2017, arXiv:1710.09412v2) or cutmix (Yun
/// et al., 2019, arXiv:1905.04899v2), either with probability 1/2 where both are asked for.
Mix draw_mix(const Augmentations& which, const DataConfig& config, ImageSize size, const RandomStream& stream);

/// Mixes images [B,C,H,W] and targets [B,classes] in place.
template <class T>
void apply_mix(const Mix& mix, View<T> images, View<T> targets);

}  // namespace heed
