// Evaluation of a model on examples that it is not trained on.
#pragma once

#include "heed/train/inference.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tasks/task.h"

#include <atomic>
#include <functional>
#include <span>

namespace heed {

/// Error of a loss that is not finite, in training or evaluation.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Function called with the logits of consecutive examples from index `first` of the source on, by several threads at
/// once.
template <class T>
using AnswerVisitor = std::function<void(Index first, View<const T> logits)>;

/// Optional partners of an evaluation.
template <class T>
struct EvaluationPartners {
  const std::atomic<bool>* interrupt = nullptr;  ///< stops the evaluation when true
  Ranks* ranks = &one_process();                 ///< processes that share the evaluation
  const AnswerVisitor<T>* visit = nullptr;       ///< called with the logits of this process
};

/// Evaluates all examples of `source`, opened not for training, on all processes. `counts` is the task's counts(). An
/// interrupted evaluation covers fewer examples. Throws Diverged if the loss is not finite.
template <class T>
Evaluation evaluate(const Model& model, Parameters<T>& parameters, BatchSource<T>& source, Index counts,
                    Index microbatch, const EvaluationPartners<T>& partners = {});

/// Throws Diverged unless all of a model's answers are finite; `kind` names them, for example "logit".
template <class T>
void require_finite_answers(std::span<const T> answers, const char* kind);

}  // namespace heed
