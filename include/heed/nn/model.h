// A model as training, evaluation and analysis know it: its tensors, the logits of examples, what it adds to the loss,
// its attention layers at work. A family of models derives from ModelBase and stands in the list of families
// (nn/families.h); nobody else knows it by name.
#pragma once

#include "heed/cost/counted.h"
#include "heed/nn/attention_site.h"
#include "heed/tape/tape.h"

#include <span>

namespace heed {

/// Sequences of tokens, of which the first lengths[b] of row b count; without lengths, all.
struct Sequences {
  View<const int> tokens{};   ///< [B, T]
  View<const int> lengths{};  ///< [B], or left out
};

/// Examples as a model takes them: images, or sequences, or pairs of sequences. Inputs that a model does not take are
/// views without axes. The memory belongs to the caller and must outlive the pass.
template <class T>
struct ModelInput {
  View<const T> images{};  ///< [B, C, h, w], or two large views of each, [B, 2, C, h, w]
  View<const T> crops{};   ///< beside those, small views of the same images: [B, L, C, h, w]
  Sequences sequences{};
  Sequences partners{};  ///< second sequences of pairs

  /// Number of examples, B.
  Index count() const { return images.shape().rank() > 0 ? images.shape()[0] : sequences.tokens.shape()[0]; }

  /// Examples [first, first + count).
  ModelInput part(Index first, Index count) const {
    const auto of = [&](const auto& view) { return view.shape().rank() > 0 ? view.part(first, count) : view; };
    return {of(images),
            of(crops),
            {of(sequences.tokens), of(sequences.lengths)},
            {of(partners.tokens), of(partners.lengths)}};
  }
};

/// One pass of a model, as its family sees it. `visit`, if given, sees the attention layers. Where `features` is not
/// empty they are wanted, of as many last blocks, instead of logits.
template <class T>
struct ModelPass {
  Tape<T>& tape;
  const ModelInput<T>& examples;
  const AttentionVisitor<T>* visit;
  std::span<Var<T>> features{};
};

/// The number of last blocks that have features, and the features' width. 0 blocks: none have.
struct FeatureSizes {
  Index blocks = 0, width = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  /// Its trainable tensors and buffers.
  const ParameterList& parameters() const { return list_; }

  /// One example as logits() takes it, with shapes alone and no numbers.
  virtual ModelInput<float> example() const = 0;

  /// Returns the name of an example: "image" or "sequence".
  const char* example_name() const;

  /// Channels, rows and columns of the images that it takes; throws Error if it takes none.
  Shape image_shape() const;

  /// The shape of an example's logits.
  virtual Shape outputs() const = 0;

  /// No fewer operations than a pass over one example takes, for refusing models that 64 bits cannot count.
  virtual double most_operations() const = 0;

  /// Returns true if the results of examples depend on each other in a training step of `batch` (batch norm). Throws
  /// Error if the model takes no such batch.
  virtual bool examples_depend(Index) const { return false; }

  /// Logits [B, ...] of examples, with the tensors of the tape's pass. `visit`, if given, sees each attention layer
  /// with what it is given. Throws Error if the examples are not what the model takes.
  template <class T>
  Var<T> logits(Tape<T>& tape, const ModelInput<T>& examples, const AttentionVisitor<T>* visit = nullptr) const {
    return std::get<Var<T>>(logits_of(ModelPass<T>{tape, examples, visit, {}}));
  }

  /// Returns the number and width of the model's features.
  virtual FeatureSizes feature_sizes() const { return {}; }

  /// Returns the features that a classifier reads of the outputs of the last `features.size()` blocks, one or more,
  /// from the earlier to the last: the class token, or the mean of the tokens, after the model's final norm. Each is
  /// [B, D]. Throws Error if the model has them of fewer blocks.
  template <class T>
  void features(Tape<T>& tape, const ModelInput<T>& examples, std::span<Var<T>> features) const {
    require_features(static_cast<Index>(features.size()));
    logits_of(ModelPass<T>{tape, examples, nullptr, features});
  }

  /// Throws Error unless the model has features of so many blocks.
  void require_features(Index blocks) const;

  /// Returns the model's penalty on the training loss, once per step: a scalar, or none.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return std::get<Var<T>>(penalty_of(&tape));
  }

 protected:
  template <class T>
  using TapePointer = Tape<T>*;

  ParameterList list_;

 private:
  virtual OfNumber<Var> logits_of(const OfNumber<ModelPass>& pass) const = 0;
  virtual OfNumber<Var> penalty_of(const OfNumber<TapePointer>& tape) const = 0;
};

/// Serves the virtual functions from templates of Derived, for all number types:
///
///   template <class T> Var<T> run_logits(const ModelPass<T>& pass) const;
///   template <class T> Var<T> run_penalty(Tape<T>& tape) const;              // where there is one
///
/// They are best defined in the family's source file, so that no user makes them again.
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
