// The gradient of a batch, and the results of a model on one: the batch is cut into pieces of a few examples, each
// of which one thread takes through the whole model while its activations stay in that core's cache.
#pragma once

#include "heed/base/parallel.h"
#include "heed/config/experiment.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tasks/task.h"

#include <memory>
#include <vector>

namespace heed {

template <class T>
class LanesInLockstep;

/// A tape for each thread, or for each of the parts that are computed side by side.
template <class T>
class Tapes {
 public:
  explicit Tapes(Index count = threads());

  /// One of them, cleared for a pass: that of the calling thread unless another is named.
  Tape<T>& begin(const Pass<T>& pass, Index number = worker()) const {
    Tape<T>& tape = *tapes_[static_cast<std::size_t>(number)];
    tape.clear(pass);
    return tape;
  }

  /// Chance decides which threads have taken a piece so far, and of what size. A tape that has not seen a whole piece
  /// yet is given the memory for one here, so that no later step has to ask for any. (Memory that is never written
  /// costs nothing.)
  void even_out(bool with_inner);

  Index count() const { return static_cast<Index>(tapes_.size()); }

 private:
  std::vector<std::unique_ptr<Tape<T>>> tapes_;
};

/// What a model makes of a batch.
struct BatchResult {
  double loss = 0;                ///< the training loss, with what the model adds to it
  double correct = 0, terms = 0;  ///< terms answered right, of so many
};

/// The profiles of all threads together.
inline Profile sum_of(const std::vector<Profile>& profiles) {
  if (profiles.empty()) return Profile();
  Profile sum = profiles.front();
  for (std::size_t i = 1; i < profiles.size(); ++i) sum += profiles[i];
  return sum;
}

/// What becomes of the gradients of lanes until all are added up. The bits of the sum are the same.
enum class LaneMemory {
  by_size,   ///< as lanes_are_streamed() says
  kept,      ///< each thread takes lanes through the model; there is a gradient for each lane
  streamed,  ///< one lane after the other, each on all threads; at most log2(lanes) + 1 gradients wait for others
};

/// Computes gradients of the training loss over batches: what the task says, and once what the model adds to it.
///
/// Gradients are added up by lanes (train/lanes.h), so the result depends neither on threads nor on processes.
template <class T>
class BatchGradient {
 public:
  /// For at most `batch` examples at a time; of `train` it takes piece, recompute and dtype. Processes share a batch by
  /// its lanes. Where all its examples depend on each other (batch norm), those of each lane go through the model in
  /// one piece, and all lanes in lockstep.
  /// Throws Error where this build has no products in bfloat16 and they are asked for, where it has no stacks for lanes
  /// in lockstep, and for a number of processes that cannot share such a batch.
  BatchGradient(const Model& model, Parameters<T>& parameters, Index batch, const TrainConfig& train,
                Ranks& ranks = one_process(), LaneMemory memory = LaneMemory::by_size);
  ~BatchGradient();

  /// Gradients of the loss over a batch; those of adder weights are scaled adaptively where the model says so.
  /// `random` is the step's, for dropout and stochastic depth.
  BatchResult run(const TaskBatch<T>& batch, const RandomStream& random);

  Gradients<T>& gradients() { return sums_.front(); }

  /// How often the lanes of the last run() waited for each other to add up something over the batch.
  Index sums_over_batch() const;

  /// What this process looks at of each batch.
  const BatchShare& share() const { return share_; }

  /// Where the batch of the last run() first makes a number that is not finite: a tensor, a result or a gradient. Takes
  /// it through the model once more, and leaves nothing of use in gradients().
  std::string first_non_finite();

  /// From now on, collects the time that operations take, by name or by name and layer, which costs little more than a
  /// reading of the clock for each.
  void start_profile(bool by_layer = false) {
    profiles_.assign(static_cast<std::size_t>(tapes_.count()), Profile(by_layer));
  }
  Profile profile() const { return sum_of(profiles_); }

 private:
  /// The step that is being made.
  struct Step {
    const TaskBatch<T>* batch = nullptr;
    RandomStream random{};
    Lanes lanes{};
  };

  /// A piece of the batch that is taken through the model, and what the pass needs to know besides.
  struct PiecePass {
    Index piece;
    Gradients<T>* gradients;
    WholeBatch<T>* whole = nullptr;
    NonFinite* non_finite = nullptr;
    Index place = worker();  ///< number of the tape and the profile
  };

  void sum_kept(LaneRange lanes);
  void sum_streamed(LaneRange lanes);
  void run_lane(Index lane, Gradients<T>& gradients, NonFinite* non_finite = nullptr);
  /// All lanes at once; `found`, if given, is shown what they make, one of it for each.
  void run_in_lockstep(LaneRange lanes, std::vector<NonFinite>* found = nullptr);
  void run_piece(const PiecePass& given);
  NonFinite first_by_lanes(LaneRange lanes);
  NonFinite first_in_lockstep(LaneRange lanes);

  const Model& model_;
  Parameters<T>& parameters_;
  Ranks& ranks_;
  PackedWeights<T> packed_;
  BatchShare share_;
  bool recompute_, streams_;
  Products products_;
  std::vector<Gradients<T>> sums_;  ///< of lanes, and of subtrees of them; in the end the first is the sum over all
  std::unique_ptr<LanesInLockstep<T>> lockstep_;  ///< where examples depend on each other
  Tapes<T> tapes_;
  std::vector<Profile> profiles_;  ///< one per tape, or none
  Step step_;
  std::vector<Score> scores_;  ///< of pieces; the loss is what they add to the mean
};

/// Which statistics batch norm takes: the running ones, or those of the images of a pass, by which it moves the others.
enum class Statistics { running, of_pass };

/// Passes of a model forward.
template <class T>
class Inference {
 public:
  Inference(const Model& model, Parameters<T>& parameters, Index piece, Statistics statistics = Statistics::running);

  /// To be called where the weights have changed.
  void renew();

  /// Calls f(tape, piece) for each piece of the examples, with a tape ready for a pass of the model, on all threads.
  template <class F>
  void for_pieces(Piece examples, const F& f) const {
    const Lanes cut{examples.count, piece_};
    parallel_for(cut.pieces(), [&](Index i) {
      const Piece piece = cut.piece_at(i);
      f(begin(), Piece{examples.first + piece.first, piece.count});
    });
  }

  /// From now on, collects the time that operations take, as BatchGradient does.
  void start_profile(bool by_layer = false) {
    profiles_.assign(static_cast<std::size_t>(tapes_.count()), Profile(by_layer));
  }
  Profile profile() const { return sum_of(profiles_); }

  /// Logits of examples, in their order.
  void run(const ModelInput<T>& examples, T* logits) const;

 private:
  Tape<T>& begin() const;

  const Model& model_;
  Parameters<T>& parameters_;
  PackedWeights<T> packed_;
  Index piece_;
  Statistics statistics_;
  Tapes<T> tapes_;
  mutable std::vector<Profile> profiles_;  ///< one per tape, or none
};

}  // namespace heed
