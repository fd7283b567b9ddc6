// The gradient of a batch. The batch is divided into microbatches of a few examples; a thread takes a microbatch
// through the whole model while its activations stay in that core's cache. Threads without a microbatch help with the
// operations of the others' (base/parallel.h).
#pragma once

#include "heed/config/experiment.h"
#include "heed/train/non_finite.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tapes.h"
#include "heed/train/tasks/task.h"

#include <memory>
#include <vector>

namespace heed {

template <class T>
class LanesInLockstep;

/// Loss and accuracy of a batch.
struct BatchResult {
  double loss = 0;                ///< training loss, with the model's penalty
  double correct = 0, terms = 0;  ///< correct terms, and all terms
};

/// Schedule of lanes. The bits of the gradient are the same.
enum class LaneMemory {
  by_size,   ///< chosen by streams_lanes()
  per_lane,  ///< lanes side by side, and a gradient for each
  streamed,  ///< one lane at a time, on all threads, and log2(lanes) + 1 gradients
};

/// Computes gradients of the training loss over batches: the task's loss, and once per batch the model's penalty.
/// Gradients are summed by lanes (train/lanes.h): the bits depend on neither threads nor processes.
template <class T>
class BatchGradient {
 public:
  /// Prepares for batches of at most `batch` examples. Uses microbatch, recompute and dtype of `train`. Processes share
  /// a batch by its lanes. If its examples depend on each other (batch norm), each lane is a single microbatch, and all
  /// lanes run in lockstep. Throws Error if this build lacks bfloat16 products or stacks for lockstep that are needed,
  /// and if this number of processes cannot share such a batch.
  BatchGradient(const Model& model, Parameters<T>& parameters, Index batch, const TrainConfig& train,
                Ranks& ranks = one_process(), LaneMemory memory = LaneMemory::by_size);
  ~BatchGradient();

  /// Computes the gradients of the loss over a batch. Scales those of adder weights if the model asks for it. `random`
  /// is the step's, for dropout and stochastic depth.
  BatchResult run(const TaskBatch<T>& batch, const RandomStream& random);

  Gradients<T>& gradients() { return sums_.front(); }

  /// Returns how often the lanes of the last run() waited for each other to sum statistics over the batch.
  Index sums_over_batch() const;

  /// Returns this process's share of each batch.
  const BatchShare& share() const { return share_; }

  /// Runs the last batch once more and describes its first tensor, result or gradient that is not finite. Overwrites
  /// gradients().
  std::string first_non_finite();

  /// Shows the tensors of the batch's first microbatch to `observer` in each run() that follows; null shows none.
  void observe(TensorObserver<T>* observer) { observer_ = observer; }

  /// Starts to collect the time of operations, by name, or by name and layer. Costs little more than two clock readings
  /// per operation.
  void start_profile(bool by_layer = false) { tapes_.start_profile(by_layer); }
  Profile profile() const { return tapes_.profile(); }

 private:
  /// The current step.
  struct Step {
    const TaskBatch<T>* batch = nullptr;
    RandomStream random{};
    Lanes lanes{};
  };

  /// A microbatch, and the operands of its pass.
  struct MicrobatchPass {
    Index index;
    Gradients<T>* gradients;
    WholeBatch<T>* batch = nullptr;
    NonFinite<T>* non_finite = nullptr;
    Index tape = 0;
  };

  void sum_per_lane(LaneRange lanes);
  void sum_streamed(LaneRange lanes);
  void run_lane(Index lane, Gradients<T>& gradients, Index tape = 0, NonFinite<T>* non_finite = nullptr);
  /// Runs all lanes side by side; `found`, if given, has an element for each.
  void run_in_lockstep(LaneRange lanes, std::vector<NonFinite<T>>* found = nullptr);
  void run_microbatch(const MicrobatchPass& microbatch);
  NonFinite<T> first_in_lanes(LaneRange lanes);
  NonFinite<T> first_in_lockstep(LaneRange lanes);

  const Model& model_;
  Parameters<T>& parameters_;
  Ranks& ranks_;
  PackedWeights<T> packed_;
  BatchShare share_;
  bool recompute_, streams_;
  Products products_;
  std::vector<Gradients<T>> sums_;  ///< sums over lanes and subtrees; the first becomes the sum over all lanes
  std::unique_ptr<LanesInLockstep<T>> lockstep_;  ///< null unless examples depend on each other
  Tapes<T> tapes_;
  TensorObserver<T>* observer_ = nullptr;
  Step step_;
  std::vector<Score> scores_;  ///< by microbatch; the loss is its summand of the batch's mean
};

}  // namespace heed
