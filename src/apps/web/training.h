// Training in the page: the steps of `heed train`, one at a time.
#pragma once

#include "member.h"

#include "heed/data/dataset.h"
#include "heed/data/loader.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/optimizer.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"

#include <memory>

namespace heed::web {

/// Training and test images in memory.
struct ImageSets {
  std::unique_ptr<Dataset> train, test;
};

/// Parses grey images of one size, `trained` for training followed by `tested` for testing. The bytes are the pixels of
/// all images, then their labels. Throws Error if the number of bytes does not match.
ImageSets image_sets(const std::string& name, Index classes, ImageSize size, Index trained, Index tested,
                     std::span<const std::uint8_t> bytes);

/// A model in training.
class Training {
 public:
  Training(std::unique_ptr<Member> member, ImageSets sets);

  Member& member() { return *member_; }

  /// Runs the next step and returns {"step", "epoch", "loss", "accuracy", "lr", "gradient"}. Steps and epochs are
  /// counted from 1; loss and accuracy are computed on the batch before the update; "gradient" is the gradient's norm
  /// before clipping. Throws Error for a non-finite loss or norm.
  Json step();

  /// Returns {"loss", "accuracy", "images"} on the test images.
  Json evaluate();

 private:
  std::unique_ptr<Member> member_;
  ImageSets sets_;
  Loader<float> loader_;
  Optimizer<float> optimizer_;
  BatchGradient<float> gradient_;
  Inference<float> inference_;
  Index step_ = 0;
};

}  // namespace heed::web
