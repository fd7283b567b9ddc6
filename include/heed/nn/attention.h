// The attention layer: qkv projection, the mechanism, output projection.
#pragma once

#include "heed/nn/adder.h"
#include "heed/nn/attention_site.h"
#include "heed/nn/layers.h"
#include "heed/nn/prepared_attention.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/attention.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/tokens.h"

#include <memory>
#include <optional>

namespace heed {

/// The tokens whose outputs are wanted.
enum class Tokens {
  all,
  first,  ///< the class token: x [B, N, D] to [B, D]
};

/// Optional parts of the layer, beside the mechanism and its two projections.
struct AttentionLayerOptions {
  bool qk_norm = false;    ///< layer norm of the queries and keys of each head (Dehghani et al., arXiv:2302.05442)
  bool gate = false;       ///< out * act(x W + b) before the output projection (Hua et al., arXiv:2202.10447)
  bool gate_silu = false;  ///< act: silu, or nothing
  std::optional<AdderLinearOptions> adder{};  ///< qkv and proj are adder layers
};

/// out = proj(mechanism(qkv(x))) for x [B, N, D]. Tensors NAME.qkv.*, NAME.proj.* and, beside them, the
/// mechanism's own; NAME.q_norm.*, NAME.k_norm.* and NAME.gate.* where options ask for them. With adder layers also
/// NAME.q_ln.*, k_ln, v_ln (after qkv), out_ln (before the gate) and proj_ln.
class AttentionLayer {
 public:
  /// `shape` gives tokens (queries) and grid.
  AttentionLayer(ParameterList& list, const std::string& name, Index dim, Index heads,
                 std::unique_ptr<Mechanism> mechanism, const AttentionShape& shape,
                 const AttentionLayerOptions& options = {})
      : name_(name),
        gate_silu_(options.gate_silu),
        mechanism_(std::move(mechanism)),
        layout_(mechanism_->layout(dim, heads)),
        shape_(checked(*mechanism_, layout_.among(shape.queries, shape))),
        qkv_(list, name + ".qkv", dim, parts(name, layout_), options.adder),
        proj_(list, name + ".proj", layout_.heads * layout_.value_width, dim, options.adder) {
    for (const char* tensor : {".qkv.weight", ".qkv.bias"}) list.divide(name + tensor, projection_parts(layout_));
    if (options.adder) out_norm_.emplace(list, name + ".out_ln", layout_.heads * layout_.value_width);
    if (options.qk_norm) {
      require(mechanism_->traits().qk_norm,
              "[model] qk_norm = true is not defined for {}, which has no products of queries and keys",
              mechanism_->name());
      q_norm_.emplace(list, name + ".q_norm", layout_.query_width);
      k_norm_.emplace(list, name + ".k_norm", layout_.key_width);
    }
    if (options.gate) gate_.emplace(list, name + ".gate", dim, layout_.heads * layout_.value_width);
    for (ParameterSpec& spec : mechanism_->parameters(shape_)) {
      spec.name = name + "." + spec.name;
      own_.push_back(list.add(std::move(spec)));
    }
    if (mechanism_->memory(shape_).prepared > 0)
      prepared_ = add_prepared_attention(list, name, mechanism_, shape_, own_);
  }

  /// x [B, N, D], or norm(x) where a norm is given, to [B, N, D] or [B, D]; `residual`, of the same shape, is added if
  /// given. All that follows the mechanism goes token by token. `visit`, if given, sees what the mechanism is given.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}, Tokens tokens = Tokens::all, const LayerNormLayer* norm = nullptr,
                    const AttentionVisitor<T>* visit = nullptr) const {
    if (norm && !takes_shortcuts(x.tape())) {  // one norm then serves qkv and gate
      x = (*norm)(x);
      norm = nullptr;
    }
    Var<T> mixed = mix(x, norm, visit);
    if (tokens == Tokens::first) {
      mixed = select_token(mixed, 0);
      if (gate_) x = select_token(x, 0);
    }
    if (gate_) return proj_(gated(out_norm_ ? (*out_norm_)(mixed) : mixed, x, norm), residual);
    return out_norm_ ? proj_.after(*out_norm_, mixed, residual) : proj_(mixed, residual);
  }

  /// Numbers of state after so many tokens of a sequence that is decoded token by token.
  Index state_numbers(Index tokens) const { return mechanism_->state_size(shape_, tokens).state; }

  /// What the mechanism adds to the training loss, a scalar; none for most.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    if (!mechanism_->traits().penalty) return {};
    const typename Tape<T>::Scope scope(tape, name_);
    const auto own = own_tensors(tape);
    return heed::penalty<T>(*mechanism_, shape_, own);
  }

 private:
  /// The shape itself. Throws Error if the mechanism cannot work on it.
  static const AttentionShape& checked(const Mechanism& mechanism, const AttentionShape& shape) {
    mechanism.check(shape);
    return shape;
  }

  /// q, k and v in the output of qkv, as far as the mechanism takes them.
  static std::vector<ProjectionPart> parts(const std::string& name, const AttentionLayout& layout) {
    std::vector<ProjectionPart> parts;
    for (const RowPart& part : projection_parts(layout)) parts.push_back({name + "." + part.name + "_ln", part.rows});
    return parts;
  }

  /// q, k and v of x, or of norm(x), as the mechanism takes them.
  template <class T>
  Var<T> project(Var<T> x, const LayerNormLayer* norm) const {
    const Var<T> qkv = norm ? qkv_.after(*norm, x) : qkv_(x);
    if (!q_norm_) return qkv;
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return head_norm(qkv, layout_, {tape.parameter(q_norm_->weight()), tape.parameter(q_norm_->bias())},
                     {tape.parameter(k_norm_->weight()), tape.parameter(k_norm_->bias())}, LayerNormLayer::eps);
  }

  /// out * act(x W + b), or of norm(x).
  template <class T>
  Var<T> gated(Var<T> out, Var<T> x, const LayerNormLayer* norm) const {
    const Var<T> gate = norm ? gate_->after(*norm, x) : (*gate_)(x);
    const typename Tape<T>::Scope scope(x.tape(), name_);
    return mul(out, gate_silu_ ? silu(gate) : gate);
  }

  template <class T>
  Var<T> mix(Var<T> x, const LayerNormLayer* norm, const AttentionVisitor<T>* visit) const {
    Tape<T>& tape = x.tape();
    const Var<T> qkv = project(x, norm);
    const typename Tape<T>::Scope scope(tape, name_);
    const auto own = own_tensors(tape);
    if (tape.pass().decoding) return attention_step<T>(*mechanism_, qkv, layout_, shape_, own);
    const View<const T> noise = draw_noise(tape);
    const Var<T> prepared = prepared_tensor<T>(tape, own, noise);
    if (visit) (*visit)(site<T>(qkv, own, prepared));
    return attention<T>(*mechanism_, qkv, layout_, shape_, own, noise, prepared);
  }

  /// What the mechanism has prepared of its own tensors: for the step, or else here and now; nothing for most.
  template <class T>
  Var<T> prepared_tensor(Tape<T>& tape, std::span<const Var<T>> own, View<const T> noise) const {
    if (prepared_ < 0) return {};
    return tape.pass().prepared ? tape.parameter(prepared_) : prepare<T>(*mechanism_, shape_, own, noise);
  }

  /// What the mechanism is given where `qkv` [B, N, layout.total()] is.
  template <class T>
  AttentionSite<T> site(Var<T> qkv, std::span<const Var<T>> own, Var<T> prepared) const {
    AttentionSite<T> site{name_, *mechanism_, {}, {}};
    for (const Var<T>& tensor : own) site.own.push_back(tensor.value());
    const Segments* const segments = qkv.tape().pass().segments;
    const detail::AttentionShapes shapes(layout_, shape_, qkv.shape(), segments);
    const std::array<detail::HeadsPlace, 3> places = detail::packed_places(layout_, qkv.shape()[1], segments);
    const auto heads = [&](std::size_t i, Index image) { return places[i].template of<const T>(qkv.data(), image); };
    for (Index image = 0; image < shapes.images; ++image)
      site.inputs.push_back({.shape = shapes.of(image),
                             .q = heads(0, image),
                             .k = heads(1, image),
                             .v = heads(2, image),
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
    if (!tape.training() || shape.elements() == 0) return {};
    T* const noise = tape.memory(shape.elements());
    if (noise) draw_gumbel(tape.pass().random, name_, shape.elements(), noise);
    return {noise, shape};
  }

  std::string name_;
  bool gate_silu_;
  std::shared_ptr<const Mechanism> mechanism_;
  AttentionLayout layout_;
  AttentionShape shape_;
  Projection qkv_, proj_;
  std::optional<LayerNormLayer> out_norm_, q_norm_, k_norm_;
  std::optional<LinearLayer> gate_;
  std::vector<ParameterId> own_;
  ParameterId prepared_ = -1;
};

}  // namespace heed
