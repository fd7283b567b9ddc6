// Self-supervision by a teacher that is a slow average of the student. Caron et al., arXiv:2104.14294v2, Algorithm 1.
//
//   q_i = softmax((t_i - c) / teacher_temp)           t: the teacher's logits of two large views; no gradient
//   loss = mean of -q_i . log p_j                     p: the student's, of all views j but i (ops/dino.h)
//   c := center_momentum c + (1 - center_momentum) mean(t)
//   clip each tensor's gradient, optimiser step
//   teacher := l teacher + (1 - l) student            l rises from [dino] ema to 1
//
// The teacher has its own running statistics of batch norm, from its views.
#pragma once

#include "heed/data/dataset.h"
#include "heed/train/inference.h"
#include "heed/train/tasks/task.h"
#include "heed/train/tasks/teaching.h"

namespace heed {

template <class T>
class Dino : public Task<T> {
 public:
  /// Constructs the task for a model of nn/dino.h, or a backbone, for which open() is not available.
  Dino(const Experiment& experiment, const Model& model);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  Index counts() const override;
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

  void begin(const Parameters<T>& student) override;
  UpdateRules update_rules(const StepPlace& place) const override;
  void after_step(const Parameters<T>& student, const StepPlace& place) override;
  std::string end_epoch() override;
  std::vector<TaskTensor<T>> state() override;
  Parameters<T>* teacher() override { return &teacher_; }

  /// Computes the teacher's targets for two large views of images, [B, 2, C, H, W]. after_step() updates the centre by
  /// them.
  void answer(View<const T> views, Index epoch);
  /// Returns q [B, 2, K] of the last targets.
  View<const T> answers() const { return teaching_.q.view(); }

 private:
  const Dataset& dataset(Split split);
  Index outputs() const { return center_.size(); }

  Experiment x_;
  const Model& model_;
  ImageSize image_;
  std::unique_ptr<Dataset> train_set_, test_set_;
  Parameters<T> teacher_;
  Inference<T> teacher_pass_;
  Tensor<T> center_, entropy_;  ///< entropy_ [2]: sum over the steps of the epoch, and their number
  Tensor<T> logits_;
  Teaching<T> teaching_;
};

}  // namespace heed
