// Interface of a model for training, evaluation and analysis: its tensors, logits, penalty and attention layers. Model
// families derive from ModelBase and are listed in nn/families.h; other code does not depend on specific families.
#pragma once

#include "heed/cost/counted.h"
#include "heed/nn/attention_site.h"
#include "heed/tape/tape.h"

#include <span>

namespace heed {

/// Sequences of tokens; the first lengths[b] tokens of row b are valid, or all T tokens if `lengths` is empty.
struct Sequences {
  View<const int> tokens{};   ///< [B, T]
  View<const int> lengths{};  ///< [B], or empty
};

/// Inputs of a model: images, sequences or pairs of sequences. Unused inputs are views without axes. The memory belongs
/// to the caller and must outlive the pass.
template <class T>
struct ModelInput {
  View<const T> images{};  ///< [B, C, H, W], or two large views of each image, [B, 2, C, H, W]
  View<const T> crops{};   ///< in addition, small views of the same images: [B, L, C, h, w]
  Sequences sequences{};
  Sequences partners{};  ///< second sequences of pairs

  /// Returns the number of examples, B.
  Index count() const { return images.shape().rank() > 0 ? images.shape()[0] : sequences.tokens.shape()[0]; }

  /// Returns examples [first, first + count).
  ModelInput part(Index first, Index count) const {
    const auto of = [&](const auto& view) { return view.shape().rank() > 0 ? view.part(first, count) : view; };
    return {of(images),
            of(crops),
            {of(sequences.tokens), of(sequences.lengths)},
            {of(partners.tokens), of(partners.lengths)}};
  }
};

/// The arguments of run_logits(), the forward pass in the code of a model family. `visit`, if given, receives the
/// inputs of the attention layers. If `features` is not empty, the pass computes the features of the last
/// features.size() blocks instead of logits.
template <class T>
struct ModelPass {
  Tape<T>& tape;
  const ModelInput<T>& examples;
  const AttentionVisitor<T>* visit;
  std::span<Var<T>> features{};
};

/// Number of blocks with features, which are the last of the model, and the features' width. 0 blocks: no features.
struct FeatureSizes {
  Index blocks = 0, width = 0;
};

/// A model: its parameters, and logits and features of examples, on any tape.
class Model {
 public:
  virtual ~Model() = default;

  /// Returns the declarations of all tensors: trainable ones, prepared ones and buffers.
  const ParameterList& parameters() const { return list_; }

  /// Returns one example for logits() with shapes only, without data.
  virtual ModelInput<float> example() const = 0;

  /// Returns the noun for an example: "image" or "sequence".
  const char* example_name() const;

  /// Returns the channels, rows and columns of the model's images. Throws Error for other inputs.
  Shape image_shape() const;

  /// Returns the shape of an example's logits.
  virtual Shape outputs() const = 0;

  /// Returns an upper bound on the operations of a pass over one example, to reject models whose counts could overflow
  /// 64 bits.
  virtual double most_operations() const = 0;

  /// Returns true if the results of examples depend on each other in a training step with a batch of this size (batch
  /// norm). Throws Error if the model does not support such a batch.
  virtual bool examples_depend(Index) const { return false; }

  /// Computes logits [B, ...] of examples with the tensors of the tape's pass. `visit`, if given, receives each
  /// attention layer's inputs. Throws Error if the examples do not fit the model.
  template <class T>
  Var<T> logits(Tape<T>& tape, const ModelInput<T>& examples, const AttentionVisitor<T>* visit = nullptr) const {
    return std::get<Var<T>>(logits_of(ModelPass<T>{tape, examples, visit, {}}));
  }

  /// Returns the number of blocks with features, and the features' width.
  virtual FeatureSizes feature_sizes() const { return {}; }

  /// Computes `features`, the classifier's inputs for the outputs of the last `features.size()` blocks, one or more, in
  /// block order: the class token, or the mean of the tokens, after the model's final norm. Each is [B, D]. Throws
  /// Error if fewer blocks have features.
  template <class T>
  void features(Tape<T>& tape, const ModelInput<T>& examples, std::span<Var<T>> features) const {
    require_features(static_cast<Index>(features.size()));
    logits_of(ModelPass<T>{tape, examples, nullptr, features});
  }

  /// Throws Error unless `blocks` is at least 1 and the last `blocks` blocks have features.
  void require_features(Index blocks) const;

  /// Returns the model's penalty in the training loss, a scalar or none; to be added once per step.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return std::get<Var<T>>(penalty_of(&tape));
  }

 protected:
  /// Argument of penalty_of().
  template <class T>
  using TapePointer = Tape<T>*;

  ParameterList list_;

 private:
  virtual OfNumber<Var> logits_of(const OfNumber<ModelPass>& pass) const = 0;
  virtual OfNumber<Var> penalty_of(const OfNumber<TapePointer>& tape) const = 0;
};

/// Implementation of the virtual functions by templates of Derived, for all number types:
///
///   template <class T> Var<T> run_logits(const ModelPass<T>& pass) const;
///   template <class T> Var<T> run_penalty(Tape<T>& tape) const;              // optional
///
/// Define these in the family's source file, so that they are instantiated only once.
template <class Derived>
class ModelBase : public Model {
 public:
  template <class T>
  Var<T> run_penalty(Tape<T>&) const {
    return {};
  }

 private:
  OfNumber<Var> logits_of(const OfNumber<ModelPass>& pass) const final {
    return std::visit([&](const auto& p) -> OfNumber<Var> { return self().run_logits(p); }, pass);
  }
  OfNumber<Var> penalty_of(const OfNumber<TapePointer>& tape) const final {
    return std::visit([&](auto* t) -> OfNumber<Var> { return self().run_penalty(*t); }, tape);
  }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace heed
