// Features of images from a trained model, and a linear classifier trained on them.
#pragma once

#include "heed/analysis/classifiers.h"
#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/data/loader.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Images of a set, resized and normalised by `data`, without augmentation.
struct ImageSelection {
  const Dataset* set;
  std::vector<Index> images;
  DataConfig data;
  ImageSize size;
};

/// Returns a loader of the images in order, without augmentation.
template <class T>
std::unique_ptr<Loader<T>> plain_images(const ImageSelection& images, Index batch);

/// Computes features of images [count, blocks D]: those of the last `blocks` blocks (Model::features), concatenated
/// from the earliest to the last. Throws Error if the model has no such features.
template <class T>
Features<T> features_of(const Model& model, Parameters<T>& parameters, const ImageSelection& images, Index blocks,
                        Index microbatch);

/// Returns the normalised pixels of images as features: [count, C H W].
template <class T>
Features<T> pixels_of(const ImageSelection& images);

/// Training of a linear classifier on frozen features: SGD with momentum 0.9 and the learning rate
/// lr (1 + cos(pi e / epochs)) / 2 in epoch e, counted from 0, without weight decay. Initial weights are N(0, 0.01^2),
/// biases 0. Examples are shuffled each epoch; an incomplete last batch is dropped.
struct LinearRule {
  Index epochs = 100, batch = 128;
  double lr = 0.001 * 128 / 256;
  std::uint64_t seed = 1;  ///< determines the initial weights and the order of the examples
};

/// Trains on `teachers` and returns the logits [m, classes] of the rows of `test` [m, width] after the last epoch.
/// Throws Error if there are fewer training examples than a batch.
template <class T>
Tensor<T> linear_logits(const Features<T>& teachers, const Tensor<T>& test, Index classes, const LinearRule& rule);

/// Evaluates class scores [m, classes] in the same way as judge_logits() (train/tasks/classification.h) evaluates
/// logits. Scores have no cross entropy, so the loss is -1 per example.
Evaluation judge_scores(const Tensor<double>& scores, const std::vector<int>& labels);

}  // namespace heed
