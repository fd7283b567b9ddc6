// What a model is trained for: what a batch is, its loss, its metric. Training and evaluation know tasks and batches by
// this alone.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/given_tensors.h"
#include "heed/nn/model.h"
#include "heed/train/lanes.h"

#include <memory>
#include <string>
#include <vector>

namespace heed {

/// Sums over terms of a loss: over images, say, or over tokens that have a target.
struct Score {
  double terms = 0, loss = 0, correct = 0;

  double mean_loss() const { return terms == 0 ? 0 : loss / terms; }
  double accuracy() const { return terms == 0 ? 0 : correct / terms; }

  friend Score operator+(const Score& a, const Score& b) {
    return {a.terms + b.terms, a.loss + b.loss, a.correct + b.correct};
  }
};

/// Where a step stands in its run: its number, from 0, of so many, and its epoch, from 0.
struct StepPlace {
  Index step = 0, steps = 0, epoch = 0;
};

/// Examples with what they are to teach. Any consecutive ones can be taken through a model by themselves, by several
/// threads at once.
template <class T>
class TaskBatch {
 public:
  virtual ~TaskBatch() = default;

  /// Number of examples.
  virtual Index size() const = 0;

  /// The loss is a mean over so many terms.
  virtual Index terms() const = 0;

  /// Called before a step with them: a teacher answers, say.
  virtual void before_step(const StepPlace&) const {}

  /// What the loss is a function of, for the examples of a piece. `visit`, if given, sees the model's attention layers.
  virtual Var<T> logits(const Model& model, Tape<T>& tape, Piece piece,
                        const AttentionVisitor<T>* visit = nullptr) const = 0;

  /// What they add to the training loss, a scalar: the sum of their terms divided by `terms`, the number of terms of
  /// the whole batch.
  virtual Var<T> loss(Var<T> logits, Piece piece, Index terms) const = 0;

  /// How many of their terms are answered right.
  virtual Index correct(View<const T> logits, Piece piece) const = 0;

  /// Their part of an evaluation, in which nothing is smoothed. What else the task counts is added to `counts`.
  virtual Score judge(View<const T> logits, Piece piece, std::span<double> counts) const = 0;
};

/// Goes through examples, batch by batch. One thread may use it.
template <class T>
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Examples there are, and batches in an epoch.
  virtual Index examples() const = 0;
  virtual Index batches() const = 0;

  /// From the next start() on nobody looks at any examples but those of the share; others need not be made.
  virtual void make_only(const BatchShare&) {}

  /// Begins an epoch, at its batch `first_batch`.
  virtual void start(Index epoch, Index first_batch = 0) = 0;

  /// The next batch, valid until the next call; nullptr after the last. Throws Error if an example cannot be read.
  virtual const TaskBatch<T>* next() = 0;
};

/// What an evaluation comes to.
struct Evaluation {
  Score score;
  std::vector<double> counts;  ///< what else the task counts, whole numbers
};

/// Examples to learn from, to choose weights by, and to be looked at once.
enum class Part { train, validation, test };

/// A tensor that a task keeps besides the model's weights.
template <class T>
struct TaskTensor {
  std::string name;
  View<T> values;
};

/// How the gradients of a step become an update.
struct UpdateRules {
  bool clip_each = false;  ///< is optim.clip the largest norm of each tensor's gradient, not of all together?
  std::vector<ParameterId> frozen{};  ///< tensors that the optimiser leaves alone
};

template <class T>
class Task {
 public:
  virtual ~Task() = default;

  /// A part of the data. To train: in a new order each epoch, augmented, in whole batches; else all, as it is. Null
  /// where nothing is set aside for validation. Throws Error if the data are missing or do not fit the model.
  virtual std::unique_ptr<BatchSource<T>> open(Part part, bool training) = 0;

  /// How many numbers an evaluation counts besides its score.
  virtual Index counts() const { return 0; }

  /// What to call the answers of a task that gives each example one of so many classes; empty for other tasks.
  virtual std::vector<std::string> class_names() { return {}; }

  /// Gives an evaluation the task's own accuracy, where that is no mean over terms: its score gets as many correct
  /// ones.
  virtual void conclude(Evaluation&) const {}

  /// An evaluation as lines of text.
  virtual std::string report(const Evaluation& evaluation) const = 0;

  /// Examples of random numbers, for measuring time.
  virtual std::unique_ptr<TaskBatch<T>> random_batch(Index size) = 0;

  /// The examples that somebody gives; nothing is smoothed, cropped or normalised. Throws Error if the tensors are not
  /// those of the task.
  virtual std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const = 0;

  /// Called before a run's first step with the weights that it begins with.
  virtual void begin(const Parameters<T>&) {}

  virtual UpdateRules update_rules(const StepPlace&) const { return {}; }

  /// Called after each update of the weights: a teacher follows them, say.
  virtual void after_step(const Parameters<T>&, const StepPlace&) {}

  /// Called after each epoch; returns what is to be said about it, in one line, if anything is.
  virtual std::string end_epoch() { return {}; }

  /// What after_step() and end_epoch() change, the teacher apart. Checkpoints keep it.
  virtual std::vector<TaskTensor<T>> state() { return {}; }

  /// The weights that a run keeps under the model's names, and evaluates, instead of those that it trains; null where
  /// there are no others.
  virtual Parameters<T>* teacher() { return nullptr; }
};

/// The task of an experiment, for its model. With `any_size` images of another size than the model's are brought to it.
template <class T>
std::unique_ptr<Task<T>> make_task(const Experiment& experiment, const Model& model, bool any_size = false);

}  // namespace heed
