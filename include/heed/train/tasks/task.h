// Tasks: batches, loss and metric of a training run. Training and evaluation use tasks and batches through these
// interfaces only.
#pragma once

#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/io/given_tensors.h"
#include "heed/nn/model.h"
#include "heed/train/lanes.h"

#include <memory>
#include <string>
#include <vector>

namespace heed {

/// Sums over the terms of a loss: images, for example, or tokens with a target.
struct Score {
  double terms = 0, loss = 0, correct = 0;

  double mean_loss() const { return terms == 0 ? 0 : loss / terms; }
  double accuracy() const { return terms == 0 ? 0 : correct / terms; }

  friend Score operator+(const Score& a, const Score& b) {
    return {a.terms + b.terms, a.loss + b.loss, a.correct + b.correct};
  }
};

/// Position of a step in its run: its index and epoch, from 0, and the number of steps.
struct StepPlace {
  Index step = 0, steps = 0, epoch = 0;
};

/// Examples with their targets. Ranges of examples can be processed separately, by several threads at once.
template <class T>
class TaskBatch {
 public:
  virtual ~TaskBatch() = default;

  /// Returns the number of examples.
  virtual Index size() const = 0;

  /// Returns the number of terms; the loss is their mean.
  virtual Index terms() const = 0;

  /// Called before a step with this batch, for example to compute a teacher's outputs.
  virtual void before_step(const StepPlace&) const {}

  /// Computes the logits of a microbatch. `visit`, if given, is called for each attention layer of the model.
  virtual Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                        const AttentionVisitor<T>* visit = nullptr) const = 0;

  /// Computes the microbatch's contribution to the training loss, a scalar: the sum of its terms divided by `terms`,
  /// the number of terms of the batch.
  virtual Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const = 0;

  /// Returns the number of the microbatch's terms that are predicted correctly.
  virtual Index correct(View<const T> logits, ExampleRange microbatch) const = 0;

  /// Returns the microbatch's contribution to an evaluation, without label smoothing. Updates the task's `counts`.
  virtual Score judge(View<const T> logits, ExampleRange microbatch, std::span<double> counts) const = 0;
};

/// A sequence of batches. Only one thread may use it.
template <class T>
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Return the number of examples, and of batches in an epoch.
  virtual Index examples() const = 0;
  virtual Index batches() const = 0;

  /// Returns the paths of the files that the examples are read from; empty if they are parts of a single file.
  virtual std::vector<std::string> files() const { return {}; }

  /// Returns the number of examples of each class; empty if the task is not a classification.
  virtual std::vector<Index> class_counts() const { return {}; }

  /// Returns true if some examples have fewer tokens than the model's context.
  virtual bool has_shorter() const { return false; }

  /// Restricts the examples to a process's slice from the next start() on; others need not be loaded.
  virtual void make_only(const BatchShare&) {}

  /// Starts an epoch at its batch `first_batch`.
  virtual void start(Index epoch, Index first_batch = 0) = 0;

  /// Returns the next batch, valid until the next call; nullptr after the last. Throws Error if an example cannot be
  /// read.
  virtual const TaskBatch<T>* next() = 0;
};

/// Result of an evaluation.
struct Evaluation {
  Score score;
  std::vector<double> counts;  ///< counters that the task defines, whole numbers
};

/// A tensor of a task's state, besides the model's weights.
template <class T>
struct TaskTensor {
  std::string name;
  View<T> values;
};

/// Rules of the update in a step.
struct UpdateRules {
  bool clip_each = false;             ///< optim.clip limits the norm of each tensor's gradient, not of all gradients
  std::vector<ParameterId> frozen{};  ///< tensors that the optimiser skips
};

/// Task of a model: its data in batches, the loss, the evaluation and the report.
template <class T>
class Task {
 public:
  virtual ~Task() = default;

  /// Opens a part of the data. If `training`, examples are shuffled each epoch and augmented, and all batches are full;
  /// otherwise all examples are read in order, without augmentation. Returns null if there are
  /// no validation examples. Throws Error if the data are missing or do not fit the model.
  virtual std::unique_ptr<BatchSource<T>> open(Part part, bool training) = 0;

  /// Returns the length of Evaluation::counts, the counters that the task defines.
  virtual Index counts() const { return 0; }

  /// Returns the class names of a classification; empty for other tasks.
  virtual std::vector<std::string> class_names() { return {}; }

  /// Returns a description of the data, after open().
  virtual DataFacts data_facts() { return {}; }

  /// Sets the accuracy of an evaluation from its counts, for tasks whose accuracy is not a mean over terms.
  virtual void conclude(Evaluation&) const {}

  /// Returns the name of the quantity that report() details; call it after open().
  virtual std::string measure() const { return "accuracy by class"; }

  /// Returns an evaluation as lines of text.
  virtual std::string report(const Evaluation& evaluation) const = 0;

  /// Returns random examples, for measuring time.
  virtual std::unique_ptr<TaskBatch<T>> random_batch(Index size) = 0;

  /// Returns a batch of the caller's examples, without smoothing, cropping or normalisation. Throws Error if the
  /// tensors do not match the task.
  virtual std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const = 0;

  /// Called before a run's first step with the initial weights.
  virtual void begin(const Parameters<T>&) {}

  /// Returns the rules of the update in this step.
  virtual UpdateRules update_rules(const StepPlace&) const { return {}; }

  /// Called after each update of the weights, for example to update a teacher.
  virtual void after_step(const Parameters<T>&, const StepPlace&) {}

  /// Called after each epoch; returns a line to print about it, or an empty text.
  virtual std::string end_epoch() { return {}; }

  /// Returns the state that after_step() and end_epoch() change, except the teacher, for checkpoints.
  virtual std::vector<TaskTensor<T>> state() { return {}; }

  /// Returns the weights that a run saves under the model's names and evaluates, if these differ from the trained ones;
  /// otherwise null.
  virtual Parameters<T>* teacher() { return nullptr; }
};

/// Returns the task of an experiment for its model. With `any_size`, images are resized to the model's size.
template <class T>
std::unique_ptr<Task<T>> make_task(const Experiment& experiment, const Model& model, bool any_size = false);

}  // namespace heed
