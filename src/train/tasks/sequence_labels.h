// Classification of sequences, or of pairs of them.
#pragma once

#include "heed/train/tasks/classification.h"

namespace heed {

template <class T>
class SequenceClassification : public Task<T> {
 public:
  SequenceClassification(const Experiment& experiment, const Model& model);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  Index counts() const override { return classification_counts(classes_); }
  std::vector<std::string> class_names() override { return numbered(classes_); }
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

 private:
  DataConfig data_;
  TrainConfig train_;
  Index context_, vocabulary_, classes_;
  bool pairs_;
  std::vector<std::string> names_;
};

}  // namespace heed
