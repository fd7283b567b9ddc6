// Evaluation of a model on held-out examples.
#pragma once

#include "heed/train/inference.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tasks/task.h"

#include <atomic>
#include <functional>
#include <span>

namespace heed {

/// Thrown if a loss, gradient, weight or output of the model is not finite, in training or evaluation.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Callback for the logits of consecutive examples of the source, starting at index `first`. Called by several threads
/// at once.
template <class T>
using AnswerVisitor = std::function<void(Index first, View<const T> logits)>;

/// Optional arguments of an evaluation.
template <class T>
struct EvaluationPartners {
  const std::atomic<bool>* interrupt = nullptr;  ///< stops the evaluation when true
  Ranks* ranks = &one_process();                 ///< processes that share the evaluation
  const AnswerVisitor<T>* visit = nullptr;       ///< called with this process's logits
};

/// Evaluates the model on all examples of `source`, which must be opened for evaluation, and divides them among all
/// processes. `counts` is Task::counts(). An interrupted evaluation covers fewer examples. Throws Diverged if the loss
/// is not finite, Error if the number of processes is not a power of two.
template <class T>
Evaluation evaluate(const Model& model, Parameters<T>& parameters, BatchSource<T>& source, Index counts,
                    Index microbatch, const EvaluationPartners<T>& partners = {});

/// Throws Diverged unless all of a model's outputs are finite; `kind` names one of them in the message, for example
/// "logit".
template <class T>
void require_finite_answers(std::span<const T> answers, const char* kind);

}  // namespace heed
