// A batch for the prediction of the next token.
#pragma once

#include "heed/ops/sequences.h"
#include "rank_of.h"

namespace heed {

/// Sequences [B, T] and the target token of each position [B, T], -1 for none; owned by the caller. The loss is the
/// mean of -log softmax over the batch's positions with a target.
template <class T>
class LanguageBatch : public TaskBatch<T> {
 public:
  LanguageBatch(View<const int> tokens, View<const int> targets)
      : tokens_(tokens),
        targets_(targets),
        terms_(std::count_if(targets.begin(), targets.end(), [](int target) { return target >= 0; })) {}

  Index size() const override { return tokens_.shape()[0]; }
  Index terms() const override { return terms_; }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, ModelInput<T>{.sequences = {tokens_.part(microbatch.first, microbatch.count)}}, visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override {
    return label_cross_entropy(logits, targets_of(microbatch), terms);
  }
  Index correct(View<const T> logits, ExampleRange microbatch) const override {
    return correct_rows(logits, targets_of(microbatch));
  }
  Score judge(View<const T> logits, ExampleRange microbatch, std::span<double>) const override {
    return score_rows(logits, targets_of(microbatch), [](Index, Index, Index) {});
  }

 private:
  const int* targets_of(ExampleRange microbatch) const {
    return targets_.data() + microbatch.first * targets_.shape()[1];
  }

  View<const int> tokens_, targets_;
  Index terms_;
};

}  // namespace heed
