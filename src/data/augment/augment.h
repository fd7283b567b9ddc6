// Augmentation of training images. Draws for an image depend on its random stream alone, not on the thread or on
// earlier draws.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"
#include "heed/base/random.h"
#include "src/data/images/resample.h"

#include <span>

namespace heed {

/// Augmentations of data.augment. They are applied in the order below, whatever the order of the list.
struct Augmentations {
  bool crop = false;         ///< a window of the image's size from the image padded with black pixels
  bool flip = false;         ///< mirrored left to right with probability 1/2
  bool randaugment = false;  ///< randomly chosen operations on colour and geometry
  bool erase = false;        ///< a rectangle replaced by noise
  bool mixup = false;        ///< two images and their targets are blended
  bool cutmix = false;       ///< a rectangle, and the same fraction of the target, replaced by another image's

  bool any() const { return crop || flip || randaugment || erase || mixup || cutmix; }
};

/// Parses data.augment and checks the parameters. Throws Error for an unknown name (suggesting the nearest), for a
/// repeated name and for parameters out of range.
Augmentations parse_augmentations(const DataConfig& config);

/// Crops the window at (top, left) of the image padded with `padding` black pixels; 0 <= top, left <= 2 padding.
void crop(Image& image, Index padding, Index top, Index left);

/// Mirrors an image left to right.
void flip(Image& image);

/// An operation of RandAugment. `strength` is from 0 (the image hardly changes) to 1; identity, autocontrast and
/// equalize ignore it. `sign`, 1 or -1, is the direction of operations that have two directions.
struct AugmentOperation {
  const char* name;
  void (*apply)(Image& image, double strength, double sign);
};

/// Returns the operations of RandAugment (Cubuk et al., 2019, arXiv:1909.13719v2).
std::span<const AugmentOperation> randaugment_operations();

/// Applies `ops` random operations of RandAugment, each with strength `magnitude` / 10.
void randaugment(Image& image, Index ops, double magnitude, const RandomStream& stream);

/// Applies the selected augmentations that work on bytes (crop, flip, randaugment), drawn from `stream`.
void augment(Image& image, const Augmentations& which, const DataConfig& config, const RandomStream& stream);

/// Applies random erasing (Zhong et al., 2017, arXiv:1708.04896v2): with `probability`, a rectangle with 2% to 33% of
/// the area and an aspect ratio of 0.3 to 1/0.3 is replaced by normal noise. `image` holds normalised pixels [C,H,W].
template <class T>
void erase(View<T> image, double probability, const RandomStream& stream);

/// Mixing of a batch's images: of B images, image i is mixed with image B-1-i.
struct Mix {
  double keep = 1;   ///< weight of an image's own target
  bool cut = false;  ///< cutmix: `box` comes from the partner; otherwise mixup: pixels are blended with weight `keep`
  Box box;
};

/// Draws a mix for a batch of images of the given size: mixup (Zhang et al., 2017, arXiv:1710.09412v2) or cutmix (Yun
/// et al., 2019, arXiv:1905.04899v2), each with probability 1/2 if both are selected.
Mix draw_mix(const Augmentations& which, const DataConfig& config, ImageSize size, const RandomStream& stream);

/// Mixes images [B,C,H,W] and targets [B,classes] in place.
template <class T>
void apply_mix(const Mix& mix, View<T> images, View<T> targets);

}  // namespace heed
