// Training of an experiment into a run directory.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/weights.h"
#include "heed/train/evaluate.h"

#include <atomic>
#include <string>

namespace heed {

/// Options of a run other than its experiment.
struct TrainOptions {
  std::string run;            ///< the run directory
  std::string init{};         ///< initial weights, a file or a run directory; empty: random, from the seed
  bool resume = false;        ///< continue the run in the directory
  bool changed_data = false;  ///< continue even though the data have changed
  const std::atomic<bool>* interrupt = nullptr;  ///< when true: finish the step, save, stop
  Profile* profile = nullptr;                    ///< receives the time of operations in training steps
  bool check = false;                            ///< run the first step only and write nothing; `run` may be empty
  Ranks* ranks = &one_process();                 ///< processes that share the training
  TensorObserver<float>* tensors = nullptr;  ///< receives the tensors of each step's first microbatch, in float runs
};

/// A run before its first step.
struct TrainPlan {
  Index parameters = 0;
  std::string example;  ///< noun for an example: "image" or "sequence"
  std::string measure;  ///< quantity that an evaluation reports, such as "accuracy by class"
  Index train_examples = 0, validation_examples = 0, test_examples = 0;
  bool own_validation = false;           ///< in a new run: the data have separate validation examples
  std::vector<std::string> class_names;  ///< class names of a classification
  std::vector<Index> train_classes, validation_classes, test_classes;  ///< number of examples per class
  Index steps_per_epoch = 0;
  Index epoch = 0, step = 0;  ///< completed before the start; 0 unless resumed
  Index operations = 0;       ///< multiplications and additions in contractions, per example of a training step
  double energy_pj = 0;       ///< energy of `operations` by the built-in table (cost/energy.h)
  bool shorter = false;       ///< some training examples are shorter than the context, so their operations are fewer
  std::string run;
  Index epochs_before = 0;  ///< planned epochs of the resumed run; 0 unless resumed
  std::string init;         ///< file of the initial weights; empty: none
  TakenWeights taken;       ///< tensors loaded from that file
};

/// State after a training step.
struct StepReport {
  Index epoch = 0;      ///< from 1
  Index batch = 0;      ///< batches of the epoch so far
  Index step = 0;       ///< steps of the run so far
  double loss = 0;      ///< mean over the epoch so far
  double accuracy = 0;  ///< on the training examples of the epoch so far
  double lr = 0;
  double images_per_s = 0;  ///< over the epoch so far
};

/// A completed epoch.
struct EpochReport {
  StepReport train;
  bool validated = false;                               ///< whether there are validation examples
  double validation_loss = 0, validation_accuracy = 0;  ///< the loss is negative if the task has no loss
  double seconds = 0;                                   ///< training time without evaluation
  Index skipped = 0;                                    ///< skipped steps (train.on_nonfinite)
  std::string remark;                                   ///< the task's line about the epoch, or empty
};

/// Observer of a run's progress; base of progress displays and tests.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void begin(const TrainPlan&) {}
  virtual void step(const StepReport&) {}
  virtual void epoch(const EpochReport&) {}
  /// Called if training ends early after `epochs` epochs because validation has not improved (train.patience).
  virtual void out_of_patience(Index /*epochs*/) {}
  /// Called with the evaluation of the best weights on the test set.
  virtual void test(const Evaluation&) {}
};

/// Reason for the end of a training run: all epochs or train.patience, train.max_steps, `interrupt`, or the first step
/// of a check.
enum class Outcome { finished, stopped, interrupted, checked };

/// Trains an experiment and fills the run directory. Throws Error for bad input, before anything is written, and
/// Diverged for a non-finite loss, gradient or weight. best.safetensors has the weights with the best validation
/// accuracy, or the latest without validation. The test set is evaluated once, at the end. A check (options.check)
/// describes the data as a new run does, reads the first batch of each part, and runs one training step, after which
/// the weights must be finite. Several processes with the same arguments share the run: process 0 reads and writes the
/// run directory and calls its observer; an interrupt of any process stops all of them after the same step.
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer);

/// Trains the caller's model and task, in float or double; [model], [attention] and [data] are only recorded.
template <class T>
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
              Task<T>& task);

}  // namespace heed
