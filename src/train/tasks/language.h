// Prediction of the next token.
#pragma once

#include "heed/config/experiment.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Sequences [B, T] and the target token of each row [B, T], -1 for none. Both belong to the caller. The loss is the
/// mean of -log softmax over the rows of the batch that have a target.
template <class T>
class LanguageBatch : public TaskBatch<T> {
 public:
  LanguageBatch(View<const int> tokens, View<const int> targets);

  Index size() const override { return tokens_.shape()[0]; }
  Index terms() const override { return terms_; }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, ModelInput<T>{.sequences = {tokens_.part(microbatch.first, microbatch.count)}}, visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override;
  Index correct(View<const T> logits, ExampleRange microbatch) const override;
  Score judge(View<const T> logits, ExampleRange microbatch, std::span<double> counts) const override;

 private:
  const int* targets_of(ExampleRange microbatch) const {
    return targets_.data() + microbatch.first * targets_.shape()[1];
  }

  View<const int> tokens_, targets_;
  Index terms_;
};

/// Prediction of text by bytes, or of images by sub-pixels.
template <class T>
class Language : public Task<T> {
 public:
  Language(const Experiment& experiment, const Model& model);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

 private:
  DataConfig data_;
  TrainConfig train_;
  Index context_, vocabulary_;
  bool start_;
  std::vector<std::uint8_t> text_;
};

}  // namespace heed
