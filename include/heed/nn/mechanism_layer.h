// A mechanism within a layer, with its parameters and prepared tensor.
#pragma once

#include "heed/nn/attention_site.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/ops/prepared_attention.h"

#include <memory>

namespace heed {

/// A mechanism in the layer NAME. declare() adds its parameters, NAME.*.
class MechanismLayer {
 public:
  /// `shape` gives the numbers of queries and keys, and the grid or the sequence; the layout gives the other sizes.
  /// Throws Error if the mechanism does not support the resulting shape.
  MechanismLayer(std::string name, std::unique_ptr<Mechanism> mechanism, Index dim, Index heads, AttentionShape shape)
      : name_(std::move(name)), mechanism_(std::move(mechanism)), layout_(mechanism_->layout(dim, heads)) {
    shape_ = layout_.among(shape.queries, shape.keys, shape);
    mechanism_->check(shape_);
  }

  /// Declares the mechanism's parameters and prepared tensor. `as_images` names a parameter [heads] to declare as
  /// [heads, 1, 1]; empty for none.
  void declare(ParameterList& list, const std::string& as_images = {}) {
    for (ParameterSpec& spec : mechanism_->parameters(shape_)) {
      if (spec.name == as_images) spec.shape = {spec.shape[0], 1, 1};
      spec.name = name_ + "." + spec.name;
      parameters_.push_back(list.add(std::move(spec)));
    }
    if (mechanism_->memory(shape_).prepared == 0) return;
    prepared_ = std::make_shared<PreparedAttention>(list, name_, mechanism_, shape_, parameters_);
    list.prepare_by(prepared_);
  }

  const Mechanism& mechanism() const { return *mechanism_; }
  const AttentionLayout& layout() const { return layout_; }

  /// Returns out [B, N, heads * value width]. `visit`, if given, is called with the mechanism's inputs.
  template <class T>
  Var<T> operator()(const AttentionOperands<T>& of, const AttentionVisitor<T>* visit = nullptr) const {
    Tape<T>& tape = of.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    const auto parameters = parameters_on(tape);
    if (tape.pass().examples.decoding) return attention_step<T>(*mechanism_, of, layout_, shape_, parameters);
    const Var<T> prepared = prepared_ ? prepared_->template on<T>(tape, parameters) : Var<T>{};
    if (visit) (*visit)(site<T>(of, parameters, prepared));
    return attention<T>(*mechanism_, of, layout_, shape_, parameters, {}, prepared);
  }

  /// Returns the state size after `tokens` tokens of incremental decoding.
  AttentionStateSize state_size(Index tokens) const {
    const DecodingCapability* const decoding = mechanism_->decoding();
    return decoding ? decoding->state_size(shape_, tokens) : AttentionStateSize{};
  }

  /// Returns the mechanism's penalty in the training loss, a scalar; none for most mechanisms.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    if (!mechanism_->penalty_term()) return {};
    const typename Tape<T>::Scope scope(tape, name_);
    const auto parameters = parameters_on(tape);
    return heed::penalty<T>(*mechanism_, shape_, parameters);
  }

 private:
  template <class T>
  AttentionSite<T> site(const AttentionOperands<T>& of, std::span<const Var<T>> parameters, Var<T> prepared) const {
    AttentionSite<T> site{name_, *mechanism_, {}, {}};
    for (const Var<T>& tensor : parameters) site.parameters.push_back(tensor.value());
    const AttentionShape common = of.first_shape(layout_, shape_);
    for (Index image = 0; image < of.images(); ++image)
      site.inputs.push_back({.shape = of.shape(layout_, common, image),
                             .q = of.heads(0, image),
                             .k = of.heads(1, image),
                             .v = of.heads(2, image),
                             .parameters = site.parameters,
                             .prepared = {prepared ? prepared.data() : nullptr}});
    return site;
  }

  template <class T>
  std::span<Var<T>> parameters_on(Tape<T>& tape) const {
    const auto parameters = tape.template list<Var<T>>(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters[i] = tape.parameter(parameters_[i]);
    return parameters;
  }

  std::string name_;
  std::shared_ptr<const Mechanism> mechanism_;
  AttentionLayout layout_;
  AttentionShape shape_;
  std::vector<ParameterId> parameters_;
  std::shared_ptr<const PreparedAttention> prepared_;  ///< null if nothing is prepared
};

}  // namespace heed
