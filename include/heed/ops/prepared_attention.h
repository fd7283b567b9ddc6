// The prepared tensor of an attention mechanism (attention/capabilities/preparation.h): computed once per step for all
// microbatches, or recorded on the tape.
#pragma once

#include "heed/attention/capabilities/preparation.h"
#include "heed/tape/preparation.h"
#include "heed/tape/tape.h"

#include <memory>
#include <span>

namespace heed {

/// Records the preparation of a mechanism and returns the prepared tensor [memory(shape).prepared], an operand of
/// attention(). Requires memory(shape).prepared > 0. The mechanism and the noise must outlive the pass.
template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               ViewFor<T> noise = {});

/// The prepared tensor of layer NAME, called NAME.prepared in the model's parameter list.
class PreparedAttention final : public Preparation {
 public:
  /// Adds the tensor to the list. `parameters` are the mechanism's.
  PreparedAttention(ParameterList& list, const std::string& layer, std::shared_ptr<const Mechanism> mechanism,
                    const AttentionShape& shape, std::vector<ParameterId> parameters);

  /// Returns the tensor on the tape: the one prepared once per step if there is one, otherwise the result of a recorded
  /// preparation.
  template <class T>
  Var<T> on(Tape<T>& tape, std::span<const Var<T>> parameters) const;

  void forward(const OfNumber<PreparationPass>& pass) const override;
  void backward(const OfNumber<PreparationPass>& pass) const override;

 private:
  template <class T>
  void draw_noise(const RandomStream& step, Index count, T* noise) const;
  template <class T, class F>
  void with_arguments(const PreparationPass<T>& pass, const F& f) const;

  std::string layer_;
  std::shared_ptr<const Mechanism> mechanism_;
  AttentionShape shape_;
  std::vector<ParameterId> parameters_;
  ParameterId prepared_;
};

}  // namespace heed
