// Classification of images by their nearest neighbours among training images.
#pragma once

#include "heed/train/features.h"

namespace heed {

/// Images with scores of classes from their 20 nearest training images, by the model's features. start() computes the
/// features of the training images by the current `parameters`, which the evaluation must use too. There is no loss.
template <class T>
class NeighbourSource : public BatchSource<T> {
 public:
  NeighbourSource(const Model& model, Parameters<T>& parameters, ImageSelection teachers, ImageSelection judged,
                  const TrainConfig& train);
  ~NeighbourSource() override;

  Index examples() const override;
  Index batches() const override;
  void start(Index epoch, Index first_batch) override;
  const TaskBatch<T>* next() override;

 private:
  class Images;
  std::unique_ptr<Images> images_;
};

}  // namespace heed
