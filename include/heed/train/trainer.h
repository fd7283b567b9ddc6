// Training: from an experiment to a run directory.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/weights.h"
#include "heed/train/evaluate.h"

#include <atomic>
#include <string>

namespace heed {

struct TrainOptions {
  std::string run;      ///< the run directory
  std::string init{};   ///< weights to start from, a file or a run directory; empty: drawn by the seed
  bool resume = false;  ///< continue the run in the directory
  const std::atomic<bool>* interrupt = nullptr;  ///< when it becomes true: finish the step, save, stop
  Profile* profile = nullptr;                    ///< filled with the time that operations of training steps took
  bool check = false;                            ///< make the first step only, and write nothing; `run` may be empty
  Ranks* ranks = &one_process();                 ///< the processes that train together
};

/// What a run is about to do.
struct TrainPlan {
  Index parameters = 0;
  std::string example;  ///< what an example is called: "image" or "sequence"
  Index train_examples = 0, validation_examples = 0, test_examples = 0;
  Index steps_per_epoch = 0;
  Index epoch = 0, step = 0;  ///< where it begins: 0, 0 unless resumed
  Index operations = 0;       ///< of a training step, per example: multiplications and additions in products and sums
  double energy_pj = 0;       ///< of these, by the built-in table (cost/energy.h)
  std::string run;
  Index epochs_before = 0;  ///< that it was to have when it was begun or last resumed; 0 unless resumed
  std::string init;         ///< the file of the weights that it starts from; empty: none
  TakenWeights taken;       ///< out of that file
};

/// One update made.
struct StepReport {
  Index epoch = 0;      ///< counted from 1
  Index batch = 0;      ///< batches of the epoch done
  Index step = 0;       ///< updates in all
  double loss = 0;      ///< mean over the epoch so far
  double accuracy = 0;  ///< on the training images of the epoch so far
  double lr = 0;
  double images_per_s = 0;  ///< over the epoch so far
};

/// An epoch completed.
struct EpochReport {
  StepReport train;
  bool validated = false;                               ///< are there validation images?
  double validation_loss = 0, validation_accuracy = 0;  ///< the loss is negative where answers have none
  double seconds = 0;                                   ///< of training, without evaluation
  Index skipped = 0;                                    ///< steps that were left out (train.on_nonfinite)
  std::string remark;                                   ///< what the task has to say about it, if anything
};

/// Is told what happens while it happens. Progress bars and tests derive from it.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void begin(const TrainPlan&) {}
  virtual void step(const StepReport&) {}
  virtual void epoch(const EpochReport&) {}
  /// Training has ended after so many epochs, before its last one, because validation became no better
  /// (train.patience).
  virtual void out_of_patience(Index) {}
  /// The test set, with the weights of best.safetensors.
  virtual void test(const Evaluation&) {}
};

/// How training ended: after all epochs, at train.max_steps, by `interrupt`, or after a first step that was a check.
enum class Outcome { finished, stopped, interrupted, checked };

/// Trains as `experiment` says and fills the run directory. Bad input is an Error before anything is written; a loss
/// that is not finite throws Diverged. best.safetensors holds the weights with the best validation accuracy, or the
/// latest where no images are set aside. The test set is looked at once, at the end. A check reads the first batch of
/// each part of the data and takes that to train on through one step, which must leave finite numbers.
/// Several processes, which must all be given the same, do together what one would: process 0 reads and fills the run
/// directory and is the one whose observer is told; what interrupts one interrupts all, after the same step.
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer);

/// The same for a model and a task of one's own, in float or double; [model], [attention] and [data] are for the
/// record.
template <class T>
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
              Task<T>& task);

}  // namespace heed
