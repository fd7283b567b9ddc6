// How well a model does on examples that it does not learn from.
#pragma once

#include "heed/train/step.h"

#include <atomic>
#include <functional>
#include <span>

namespace heed {

/// The loss is not a finite number, in training or evaluation.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Is shown the logits of consecutive examples, the first of which is at position `first` in the source. Several
/// threads call it at once.
template <class T>
using AnswerVisitor = std::function<void(Index first, View<const T> logits)>;

/// Who else has to do with an evaluation.
template <class T>
struct EvaluationPartners {
  const std::atomic<bool>* interrupt = nullptr;  ///< stops it early when it becomes true, if there is one
  Ranks* ranks = &one_process();                 ///< the processes that share it
  const AnswerVisitor<T>* visit = nullptr;       ///< sees the answers of this process, if there is one
};

/// Goes once through `source`, which must not be a training one, all processes together. `counts` is the task's. The
/// result of one that was interrupted covers fewer examples than there are. Throws Diverged where the loss is not
/// finite.
template <class T>
Evaluation evaluate(const Model& model, Parameters<T>& parameters, BatchSource<T>& source, Index counts, Index piece,
                    const EvaluationPartners<T>& partners = {});

/// Throws Diverged unless all of a model's answers are finite; `kind`, such as "logit", is what they are called.
template <class T>
void require_finite_answers(std::span<const T> answers, const char* kind);

}  // namespace heed
