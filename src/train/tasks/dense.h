// Classification of the patches of an image.
#pragma once

#include "heed/data/readers/scenes.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Patch classification on scenes (data/readers/scenes.h). The loss is the mean cross entropy over patches. The
/// accuracy of an evaluation is the mean intersection over union of the classes that occur: the patches of a class that
/// are classified as it, divided by the patches of which either is true.
template <class T>
class PatchClassification : public Task<T> {
 public:
  PatchClassification(const Experiment& experiment, const Model& model);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  Index counts() const override { return classes_ * classes_; }
  void conclude(Evaluation& evaluation) const override;
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

 private:
  DataConfig data_;
  TrainConfig train_;
  Shape image_;
  Index patches_, classes_;
  std::vector<std::string> names_;
};

/// Returns the intersection over union of each class, -1 for an empty union, from counts [classes, classes] of patches
/// by label and answer.
std::vector<double> overlaps_of(const std::vector<double>& counts, Index classes);

}  // namespace heed
