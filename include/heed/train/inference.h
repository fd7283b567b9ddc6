// Forward passes of a model.
#pragma once

#include "heed/nn/model.h"
#include "heed/tape/packed_weights.h"
#include "heed/train/lanes.h"
#include "heed/train/tapes.h"

namespace heed {

/// Statistics for batch norm: the running ones, or those of each pass's images, which then update the running ones.
enum class Statistics { running, of_pass };

/// Forward passes of a model over microbatches, on all threads. With running statistics a tape holds the outputs of all
/// blocks, but the activations of one block at a time.
template <class T>
class Inference {
 public:
  Inference(const Model& model, Parameters<T>& parameters, Index microbatch,
            Statistics statistics = Statistics::running);

  /// Repacks the weights and recomputes the prepared tensors. Must be called after each change of the weights.
  void renew();

  /// Calls f(tape, microbatch) for each microbatch of the examples, with a cleared tape, on all threads.
  template <class F>
  void for_microbatches(ExampleRange examples, const F& f) const {
    const Lanes division{examples.count, microbatch_};
    parallel_for(division.microbatches(), [&](Index i) {
      const ExampleRange microbatch = division.microbatch_at(i);
      f(begin(tapes_.index(i, division.microbatches())),
        ExampleRange{examples.first + microbatch.first, microbatch.count});
    });
  }

  /// Starts profiling operations by name, or by name and layer.
  void start_profile(bool by_layer = false) { tapes_.start_profile(by_layer); }
  Profile profile() const { return tapes_.profile(); }

  /// Computes the logits of examples, in order.
  void run(const ModelInput<T>& examples, T* logits) const;

 private:
  Tape<T>& begin(Index tape) const;

  const Model& model_;
  Parameters<T>& parameters_;
  PackedWeights<T> packed_;
  Index microbatch_;
  Statistics statistics_;
  Tapes<T> tapes_;
};

}  // namespace heed
