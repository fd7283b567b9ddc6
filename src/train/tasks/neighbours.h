// Classification of images by their nearest neighbours among training images.
#pragma once

#include "heed/train/features.h"

namespace heed {

/// Returns a source of batches of the images `judged`. The logits of a batch are class scores: votes of the 20 training
/// images, among `teachers`, that are nearest in the model's features. start() computes the features of the training
/// images with the current `parameters`, which the evaluation must use too. There is no loss.
template <class T>
std::unique_ptr<BatchSource<T>> neighbour_source(const Model& model, Parameters<T>& parameters, ImageSelection teachers,
                                                 const ImageSelection& judged, const TrainConfig& train);

}  // namespace heed
