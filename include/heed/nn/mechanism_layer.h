// A mechanism as a part of a layer: with the tensors that are its own, its noise, and what it prepares.
#pragma once

#include "heed/nn/attention_site.h"
#include "heed/nn/prepared_attention.h"
#include "heed/ops/attention.h"

#include <memory>

namespace heed {

/// A mechanism in the layer NAME. declare() adds its own tensors, NAME.* .
class MechanismLayer {
 public:
  /// `shape` gives queries, keys, grid and class token. Throws Error if the mechanism cannot work on it.
  MechanismLayer(std::string name, std::unique_ptr<Mechanism> mechanism, Index dim, Index heads, AttentionShape shape)
      : name_(std::move(name)), mechanism_(std::move(mechanism)), layout_(mechanism_->layout(dim, heads)) {
    shape_ = layout_.among(shape.queries, shape.keys, shape);
    mechanism_->check(shape_);
  }

  /// `as_images`: the name of a tensor [heads] that the layer has as [heads, 1, 1]; empty for none.
  void declare(ParameterList& list, const std::string& as_images = {}) {
    for (ParameterSpec& spec : mechanism_->parameters(shape_)) {
      if (spec.name == as_images) spec.shape = {spec.shape[0], 1, 1};
      spec.name = name_ + "." + spec.name;
      own_.push_back(list.add(std::move(spec)));
    }
    if (mechanism_->memory(shape_).prepared > 0)
      prepared_ = add_prepared_attention(list, name_, mechanism_, shape_, own_);
  }

  const Mechanism& mechanism() const { return *mechanism_; }
  const AttentionLayout& layout() const { return layout_; }

  /// out [B, N, heads * value width]. `visit`, if given, sees what the mechanism is given.
  template <class T>
  Var<T> operator()(const AttentionOperands<T>& of, const AttentionVisitor<T>* visit = nullptr) const {
    Tape<T>& tape = of.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    const auto own = own_tensors(tape);
    if (tape.pass().decoding) return attention_step<T>(*mechanism_, of, layout_, shape_, own);
    const View<const T> noise = draw_noise(tape);
    const Var<T> prepared = prepared_tensor<T>(tape, own, noise);
    if (visit) (*visit)(site<T>(of, own, prepared));
    return attention<T>(*mechanism_, of, layout_, shape_, own, noise, prepared);
  }

  /// The size of its state after so many tokens of a sequence that is decoded token by token.
  AttentionStateSize state_size(Index tokens) const { return mechanism_->state_size(shape_, tokens); }

  /// What the mechanism adds to the training loss, a scalar; none for most.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    if (!mechanism_->traits().penalty) return {};
    const typename Tape<T>::Scope scope(tape, name_);
    const auto own = own_tensors(tape);
    return heed::penalty<T>(*mechanism_, shape_, own);
  }

 private:
  /// What the mechanism has prepared of its own tensors: for the step, or else here and now; nothing for most.
  template <class T>
  Var<T> prepared_tensor(Tape<T>& tape, std::span<const Var<T>> own, View<const T> noise) const {
    if (prepared_ < 0) return {};
    return tape.pass().prepared ? tape.parameter(prepared_) : prepare<T>(*mechanism_, shape_, own, noise);
  }

  template <class T>
  AttentionSite<T> site(const AttentionOperands<T>& of, std::span<const Var<T>> own, Var<T> prepared) const {
    AttentionSite<T> site{name_, *mechanism_, {}, {}};
    for (const Var<T>& tensor : own) site.own.push_back(tensor.value());
    const AttentionShape common = of.first_shape(layout_, shape_);
    for (Index image = 0; image < of.images(); ++image)
      site.inputs.push_back({.shape = of.shape(layout_, common, image),
                             .q = of.heads(0, image),
                             .k = of.heads(1, image),
                             .v = of.heads(2, image),
                             .parameters = site.own,
                             .prepared = {prepared ? prepared.data() : nullptr}});
    return site;
  }

  template <class T>
  std::span<Var<T>> own_tensors(Tape<T>& tape) const {
    const auto own = tape.template list<Var<T>>(own_.size());
    for (std::size_t i = 0; i < own_.size(); ++i) own[i] = tape.parameter(own_[i]);
    return own;
  }

  /// Standard Gumbel noise, -log(-log(u)), of the shape the mechanism wants; the same for all pieces of a step.
  template <class T>
  View<const T> draw_noise(Tape<T>& tape) const {
    const Shape shape = mechanism_->noise(shape_);
    if (!tape.draws() || shape.elements() == 0) return {};
    T* const noise = tape.memory(shape.elements());
    if (noise) draw_gumbel(tape.pass().random, name_, shape.elements(), noise);
    return {noise, shape};
  }

  std::string name_;
  std::shared_ptr<const Mechanism> mechanism_;
  AttentionLayout layout_;
  AttentionShape shape_;
  std::vector<ParameterId> own_;
  ParameterId prepared_ = -1;
};

}  // namespace heed
