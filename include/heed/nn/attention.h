// Attention layer: qkv projection, mechanism, output projection.
#pragma once

#include "heed/nn/adder.h"
#include "heed/nn/layers.h"
#include "heed/nn/mechanism_layer.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/tokens.h"

#include <memory>
#include <optional>

namespace heed {

/// Tokens whose outputs are computed.
enum class Tokens {
  all,
  first,  ///< the class token: x [B, N, D] to [B, D]
};

/// Options of the layer besides the mechanism and the two projections.
struct AttentionLayerOptions {
  bool qk_norm = false;    ///< layer norm of the queries and keys of each head (Dehghani et al., arXiv:2302.05442)
  bool gate = false;       ///< out * act(x W + b) before the output projection (Hua et al., arXiv:2202.10447)
  bool gate_silu = false;  ///< act is silu; otherwise the identity
  bool qkv_bias = true;    ///< the qkv projection has a bias
  std::optional<AdderLinearOptions> adder{};  ///< qkv and proj are adder layers
  std::string as_images{};                    ///< name of the mechanism parameter [heads] to declare as [heads, 1, 1]
};

/// Throws Error if the mechanism has no queries and keys to normalise.
inline void require_qk_norm(const Mechanism& mechanism) {
  require(mechanism.traits().qk_norm,
          "[model] qk_norm = true is not defined for {}, which has no queries and keys to normalise", mechanism.name());
}

/// out = proj(mechanism(qkv(x))) for x [B, N, D]. Tensors NAME.qkv.*, NAME.proj.* and those of the mechanism; with
/// qk_norm also NAME.q_norm.* and NAME.k_norm.*; with gate also NAME.gate.*; with adder layers also NAME.q_ln.*, k_ln,
/// v_ln (after qkv), out_ln (before the gate) and proj_ln.
class AttentionLayer {
 public:
  /// `shape` gives the numbers of queries and keys, which are equal, and the grid or the sequence.
  AttentionLayer(ParameterList& list, const std::string& name, Index dim, Index heads,
                 std::unique_ptr<Mechanism> mechanism, const AttentionShape& shape,
                 const AttentionLayerOptions& options = {})
      : name_(name),
        gate_silu_(options.gate_silu),
        mechanism_(name, std::move(mechanism), dim, heads, shape),
        layout_(mechanism_.layout()),
        qkv_(list, name + ".qkv", dim, parts(name, layout_), options.adder, options.qkv_bias),
        proj_(list, name + ".proj", layout_.heads * layout_.value_width, dim, options.adder) {
    list.divide(name + ".qkv.weight", projection_parts(layout_));
    if (options.qkv_bias) list.divide(name + ".qkv.bias", projection_parts(layout_));
    if (options.adder) out_norm_.emplace(list, name + ".out_ln", layout_.heads * layout_.value_width);
    if (options.qk_norm) {
      require_qk_norm(mechanism_.mechanism());
      q_norm_.emplace(list, name + ".q_norm", layout_.query_width);
      k_norm_.emplace(list, name + ".k_norm", layout_.key_width);
    }
    if (options.gate) gate_.emplace(list, name + ".gate", dim, layout_.heads * layout_.value_width);
    mechanism_.declare(list, options.as_images);
  }

  /// Maps x [B, N, D], or norm(x) if `norm` is given, to [B, N, D] or [B, D]; adds `residual`, of the same shape, if
  /// given. All operations after the mechanism are token by token. `visit`, if given, receives the mechanism's inputs.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}, Tokens tokens = Tokens::all, const LayerNormLayer* norm = nullptr,
                    const AttentionVisitor<T>* visit = nullptr) const {
    if (norm && !takes_shortcuts(x.tape())) {  // computes the norm once, for both qkv and gate
      x = (*norm)(x);
      norm = nullptr;
    }
    Var<T> mixed = mechanism_(packed_operands(project(x, norm), layout_), visit);
    if (tokens == Tokens::first) {
      mixed = select_token(mixed, 0);
      if (gate_) x = select_token(x, 0);
    }
    if (gate_) return proj_(gated(out_norm_ ? (*out_norm_)(mixed) : mixed, x, norm), residual);
    return out_norm_ ? proj_.after(*out_norm_, mixed, residual) : proj_(mixed, residual);
  }

  /// Returns the state size after `tokens` tokens of incremental decoding.
  AttentionStateSize state_size(Index tokens) const { return mechanism_.state_size(tokens); }

  /// Returns the mechanism's penalty in the training loss, a scalar; none for most mechanisms.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return mechanism_.penalty(tape);
  }

 private:
  /// Returns the parts of qkv's output that the mechanism uses: q, k and v.
  static std::vector<ProjectionPart> parts(const std::string& name, const AttentionLayout& layout) {
    std::vector<ProjectionPart> parts;
    for (const RowPart& part : projection_parts(layout)) parts.push_back({name + "." + part.name + "_ln", part.rows});
    return parts;
  }

  /// Computes q, k and v of x, or of norm(x), in the mechanism's layout.
  template <class T>
  Var<T> project(Var<T> x, const LayerNormLayer* norm) const {
    const Var<T> qkv = norm ? qkv_.after(*norm, x) : qkv_(x);
    if (!q_norm_) return qkv;
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return head_norm(qkv, layout_, {tape.parameter(q_norm_->weight()), tape.parameter(q_norm_->bias())},
                     {tape.parameter(k_norm_->weight()), tape.parameter(k_norm_->bias())}, LayerNormLayer::usual_eps);
  }

  /// Returns out * act(x W + b), with norm(x) instead of x if `norm` is given.
  template <class T>
  Var<T> gated(Var<T> out, Var<T> x, const LayerNormLayer* norm) const {
    const Var<T> gate = norm ? gate_->after(*norm, x) : (*gate_)(x);
    const typename Tape<T>::Scope scope(x.tape(), name_);
    return mul(out, gate_silu_ ? silu(gate) : gate);
  }

  std::string name_;
  bool gate_silu_;
  MechanismLayer mechanism_;
  AttentionLayout layout_;
  Projection qkv_, proj_;
  std::optional<LayerNormLayer> out_norm_, q_norm_, k_norm_;
  std::optional<LinearLayer> gate_;
};

}  // namespace heed
