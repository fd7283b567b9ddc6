// The task of telling the patches of an image apart into classes.
#pragma once

#include "heed/data/readers/scenes.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Scenes (data/readers/scenes.h), by data.name. The loss is the mean cross entropy over patches. The accuracy of an
/// evaluation is the mean over classes of intersection over union: of the patches that are of a class or are taken for
/// it, the share that both is true of. Classes of which there are none count in no mean.
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

/// For each class its intersection over union, by counts [classes, classes] of patches of a row's class that were taken
/// for a column's; -1 where there is no union.
std::vector<double> overlaps_of(const std::vector<double>& counts, Index classes);

}  // namespace heed
