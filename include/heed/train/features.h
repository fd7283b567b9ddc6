// What a trained model makes of images before its classifier, and a linear classifier trained on that.
#pragma once

#include "heed/analysis/classifiers.h"
#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/data/loader.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Some images of a set, brought to a size and normalised as `data` says, and never augmented.
struct ImageSelection {
  const Dataset* set;
  std::vector<Index> images;
  DataConfig data;
  ImageSize size;
};

/// Goes through the images in their order, nothing augmented.
template <class T>
std::unique_ptr<Loader<T>> plain_images(const ImageSelection& images, Index batch);

/// Features of images: of the last `blocks` blocks (Model::features), from the earlier to the last, joined. [count,
/// blocks D], in the order of the images. `piece` images at a time go through the model. Throws Error if the model has
/// no such features.
template <class T>
Features<T> features_of(const Model& model, Parameters<T>& parameters, const ImageSelection& images, Index blocks,
                        Index piece);

/// The normalised pixels of images as their features: [count, C H W].
template <class T>
Features<T> pixels_of(const ImageSelection& images);

/// How the linear classifier of frozen features is trained: by SGD with momentum 0.9, with the rate
/// lr (1 + cos(pi e / epochs)) / 2 in epoch e, from 0, without weight decay. Weights are first N(0, 0.01^2), biases 0.
/// Of an epoch's examples, in a new order each time, those that fill no batch are left out.
struct LinearRule {
  Index epochs = 100, batch = 128;
  double lr = 0.001 * 128 / 256;
  std::uint64_t seed = 1;  ///< of first weights and order
};

/// Logits [m, classes] of the rows of `test` [m, width], by the weights after the last epoch. Throws Error where there
/// are fewer examples than a batch.
template <class T>
Tensor<T> linear_logits(const Features<T>& teachers, const Tensor<T>& test, Index classes, const LinearRule& rule);

/// How well scores [m, classes] that are no logits answer, as judge_logits() tells it (train/tasks/classification.h).
/// They have no loss: it is -1 for each example.
Evaluation judge_scores(const Tensor<double>& scores, const std::vector<int>& labels);

}  // namespace heed
