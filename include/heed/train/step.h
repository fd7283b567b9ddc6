// Gradient of a batch. A batch is divided into microbatches of a few examples; a thread runs a microbatch through the
// whole model, so that its activations stay in that core's cache. Threads without a microbatch take part in the
// operations of other microbatches (base/parallel.h).
#pragma once

#include "heed/config/experiment.h"
#include "heed/train/non_finite.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tapes.h"
#include "heed/train/tasks/task.h"

#include <memory>
#include <vector>

namespace heed {

/// Lanes of a batch whose examples depend on each other (src/train/lanes_in_lockstep.h).
template <class T>
class LanesInLockstep;

/// Loss and accuracy of a batch.
struct BatchResult {
  double loss = 0;                ///< training loss, with the model's penalty
  double correct = 0, terms = 0;  ///< correct terms; all terms
};

/// Schedule of lanes. It does not change the bits of the gradient.
enum class LaneMemory {
  by_size,   ///< chosen by streams_lanes()
  per_lane,  ///< lanes in parallel, with one gradient each
  streamed,  ///< one lane at a time, on all threads, with sums_at_once() gradients
};

/// Computes gradients of the training loss over batches: the task's loss plus, once per batch, the model's penalty.
/// Gradients are summed by lanes (train/lanes.h): the bits depend on neither threads nor processes.
template <class T>
class BatchGradient {
 public:
  /// Allocates memory for batches of at most `batch` examples. Reads microbatch, recompute and dtype of `train`. The
  /// lanes of a batch are divided among the processes. If examples depend on each other (batch norm), each lane is a
  /// single microbatch, and all lanes run in lockstep. Throws Error if the CPU or the build lacks the required bfloat16
  /// products, if the build cannot run several lanes in lockstep, or if the processes cannot share such a batch.
  BatchGradient(const Model& model, Parameters<T>& parameters, Index batch, const TrainConfig& train,
                Ranks& ranks = one_process(), LaneMemory memory = LaneMemory::by_size);
  ~BatchGradient();

  /// Computes the gradients of the loss over a batch, and scales those of adder weights if the model requires it.
  /// `random` is the step's stream, for dropout and stochastic depth.
  BatchResult run(const TaskBatch<T>& batch, const RandomStream& random);

  Gradients<T>& gradients() { return sums_.front(); }

  /// Returns how often the lanes of the last run() waited for each other to sum statistics over the batch.
  Index sums_over_batch() const;

  /// Returns this process's slice of each batch.
  const BatchShare& share() const { return share_; }

  /// Reruns the last batch and describes its first non-finite tensor, result or gradient. Overwrites gradients().
  std::string first_non_finite();

  /// Passes the tensors of the first microbatch to `observer` in each later run(); null disables this.
  void observe(TensorObserver<T>* observer) { observer_ = observer; }

  /// Starts profiling operations by name, or by name and layer. Costs little more than two clock readings per
  /// operation.
  void start_profile(bool by_layer = false) { tapes_.start_profile(by_layer); }
  Profile profile() const { return tapes_.profile(); }

 private:
  /// The current step.
  struct Step {
    const TaskBatch<T>* batch = nullptr;
    RandomStream random{};
    Lanes lanes{};
  };

  /// A microbatch and the operands of its pass.
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
  /// Runs the lanes in lockstep; `found`, if given, has one element per lane.
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
  std::vector<Score> scores_;  ///< one per microbatch; its loss is the microbatch's summand in the batch's mean
};

}  // namespace heed
