// Images that are judged by the classes of their nearest neighbours among training images.
#pragma once

#include "heed/train/features.h"

namespace heed {

/// The classes of images, as the 20 nearest training images tell them by the features that a model has of both. When it
/// is started it looks at the training images, with `parameters` as they are then, of which an evaluation takes the
/// same. Answers have no loss.
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
