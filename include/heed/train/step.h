// The gradient of a batch, and the results of a model on one: the batch is cut into pieces of a few images, each
// of which one thread takes through the whole model while its activations stay in that core's cache.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/vit.h"

#include <memory>
#include <vector>

namespace heed {

/// What a model makes of a batch.
struct BatchResult {
  double loss = 0;    ///< mean cross entropy, and what the mechanisms add to it
  Index correct = 0;  ///< images whose largest logit is that of their label
};

/// Computes gradients of the training loss over batches: mean cross entropy, and once what the mechanisms add to it.
///
/// Pieces are dealt out to lanes, a number fixed by the model's size and the batch alone. A lane adds up the
/// gradients of its pieces in order, then lanes are added up in order, so the result does not depend on threads.
/// A model too large to have a gradient per lane has a single lane, and threads share each operation instead.
template <class T>
class BatchGradient {
 public:
  /// For at most `batch` images at a time; of `train` it takes piece, recompute, dtype and label_smoothing. Throws
  /// Error where this build has no products in bfloat16 and they are asked for.
  BatchGradient(const VisionTransformer& model, Parameters<T>& parameters, Index batch, const TrainConfig& train);

  /// Gradients of the loss over `images` [B, C, H, W] with `targets` [B, classes] and `labels` [B]; those of adder
  /// weights are scaled adaptively where the model says so.
  /// `random` is the step's, for dropout and stochastic depth.
  BatchResult run(View<const T> images, View<const T> targets, const int* labels, const RandomStream& random);

  Gradients<T>& gradients() { return lanes_.front(); }

  /// From now on, collects the time that operations take, which costs little more than a reading of the clock for each.
  void start_profile() { profiles_.resize(tapes_.size()); }
  Profile profile() const;

 private:
  struct Piece {
    double loss = 0;
    Index correct = 0;
  };
  void run_piece(Index piece, Gradients<T>& lane, View<const T> images, View<const T> targets, const int* labels,
                 const RandomStream& random);
  void add_lanes(Index used);
  void even_out_tapes();

  const VisionTransformer& model_;
  Parameters<T>& parameters_;
  PackedWeights<T> packed_;
  Index piece_;
  double smoothing_;
  bool recompute_;
  Products products_;
  std::vector<Gradients<T>> lanes_;
  std::vector<std::unique_ptr<Tape<T>>> tapes_;  ///< one per thread
  std::vector<Profile> profiles_;                ///< likewise, or none
  std::vector<Piece> pieces_;
};

/// Logits of images, `piece` at a time, with weights that do not change while it lives.
template <class T>
class Inference {
 public:
  Inference(const VisionTransformer& model, Parameters<T>& parameters, Index piece);

  /// images [B, C, H, W] to logits [B, classes].
  void run(View<const T> images, T* logits);

 private:
  const VisionTransformer& model_;
  Parameters<T>& parameters_;
  PackedWeights<T> packed_;
  Index piece_;
  std::vector<std::unique_ptr<Tape<T>>> tapes_;
};

/// Position of the first largest of n numbers.
template <class T>
Index largest_of(const T* values, Index n) {
  return std::max_element(values, values + n) - values;
}

}  // namespace heed
