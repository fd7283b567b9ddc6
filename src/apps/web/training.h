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

/// Images in memory, those to train on and those to test with.
struct ImageSets {
  std::unique_ptr<Dataset> train, test;
};

/// Grey images of one size: `trained` to train on and `tested` to test with, their pixels one after the other, then
/// their labels. Throws Error if there are more or fewer bytes.
ImageSets image_sets(const std::string& name, Index classes, ImageSize size, Index trained, Index tested,
                     std::span<const std::uint8_t> bytes);

/// A model that is trained.
class Training {
 public:
  Training(std::unique_ptr<Member> member, ImageSets sets);

  Member& member() { return *member_; }

  /// The next step: {"step", from 1, "epoch", from 1, "loss", "accuracy", "lr", "gradient"}: of its batch, before the
  /// weights were changed, and the gradient's norm. Throws Error where the loss is no longer finite.
  Json step();

  /// {"loss", "accuracy", "images"} on the test images.
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
