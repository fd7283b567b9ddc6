// CvT. Wu, Xiao, Codella, Liu, Dai, Yuan, Zhang, "CvT: Introducing convolutions to vision transformers", ICCV 2021,
// arXiv:2103.15808, Section 3; a host family of SimA's experiments (arXiv:2206.08898).
//
//   x = norm(conv(x))                        each stage: overlapping windows become tokens
//   x = [class token; x]                     last stage
//   x += attention(norm1(x))                 for each block; q, k and v by depth-wise convolutions, k and v on a
//   x += mlp(norm2(x))                       coarser grid than q if kv_stride > 1
//   logits = head(norm(x)[class token], or its mean over tokens)
//
// Tensors have the authors' names; stages count from 0.
#include "convolution.h"
#include "host_families.h"
#include "mechanism_choice.h"
#include "staged_model.h"

namespace heed {

namespace {

constexpr double eps = 1e-5;  // for the layer norms in blocks and embeddings

/// Projection to q, k or v: a depth-wise convolution of the grid with batch norm, then a linear layer. The class token
/// skips the convolution. Tensors NAME.conv_proj_X.conv.weight, NAME.conv_proj_X.bn.*, NAME.proj_X.*.
class ConvProjection {
 public:
  ConvProjection(ParameterList& list, const std::string& name, char part, Index dim, Index width, Index stride,
                 Index bn_group)
      : conv_(list, fmt::format("{}.conv_proj_{}.conv", name, part), ConvLayer::Kind::depthwise, dim, dim,
              Window{3, stride, 1}, false),
        bn_(list, fmt::format("{}.conv_proj_{}.bn", name, part), dim, bn_group),
        linear_(list, fmt::format("{}.proj_{}", name, part), dim, width) {}

  /// Maps patches [B, side^2, D], and class_token [B, D] if given, to tokens [B, N, width].
  template <class T>
  Var<T> operator()(Var<T> patches, Var<T> class_token, Index side) const {
    const Var<T> tokens = bn_(conv_(patches, side));
    return linear_(class_token ? join_tokens(class_token, tokens) : tokens);
  }

 private:
  ConvLayer conv_;
  BatchNormLayer bn_;
  LinearLayer linear_;
};

/// Layer norm of the queries or keys of each head.
class HeadNormLayer {
 public:
  HeadNormLayer(ParameterList& list, const std::string& name, Index heads, Index width)
      : name_(name), layout_{heads, width, 0, 0}, norm_(list, name, width) {}

  template <class T>
  Var<T> operator()(Var<T> x) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return head_norm(x, layout_, {tape.parameter(norm_.weight()), tape.parameter(norm_.bias())});
  }

 private:
  std::string name_;
  AttentionLayout layout_;
  LayerNormLayer norm_;
};

/// Sizes of a stage.
struct CvtStageSizes {
  Index number, dim, heads, side, kv_stride;
  bool class_token;

  /// Returns the side of the grid of keys and values.
  Index kv_side() const { return (side - 1) / kv_stride + 1; }
  AttentionShape shape() const {
    AttentionShape shape = grid_shape(side, class_token);
    shape.keys = kv_side() * kv_side() + class_token;
    return shape;
  }
};

/// out = proj(mechanism(q, k, v)), with a ConvProjection for each of q, k and v that the mechanism uses. Tensors of
/// these projections, NAME.proj.* and those of the mechanism; with qk_norm also NAME.q_norm.* and NAME.k_norm.*, with
/// gate also NAME.gate.*.
class ConvAttention {
 public:
  ConvAttention(ParameterList& list, const std::string& name, const ModelConfig& config, const CvtStageSizes& sizes,
                std::unique_ptr<Mechanism> mechanism)
      : name_(name),
        sizes_(sizes),
        gate_silu_(config.gate_act == "silu"),
        mechanism_(name, checked(std::move(mechanism), sizes), sizes.dim, sizes.heads, sizes.shape()) {
    const AttentionLayout& layout = mechanism_.layout();
    const auto part = [&](std::optional<ConvProjection>& to, char letter, Index width, Index stride) {
      if (width > 0) to.emplace(list, name, letter, sizes.dim, width, stride, config.bn_group);
    };
    part(q_, 'q', layout.heads * layout.query_width, 1);
    part(k_, 'k', layout.key_heads * layout.key_width, sizes.kv_stride);
    part(v_, 'v', layout.key_heads * layout.value_width, sizes.kv_stride);
    const Index width = layout.heads * layout.value_width;
    proj_.emplace(list, name + ".proj", width, sizes.dim);
    if (config.qk_norm) {
      require_qk_norm(mechanism_.mechanism());
      q_norm_.emplace(list, name + ".q_norm", layout.heads, layout.query_width);
      k_norm_.emplace(list, name + ".k_norm", layout.key_heads, layout.key_width);
    }
    if (config.gate) gate_.emplace(list, name + ".gate", sizes.dim, width);
    if (config.qk_scale == "width") q_scale_ = 1 / std::sqrt(static_cast<double>(layout.heads));
    mechanism_.declare(list);
  }

  /// Computes the layer; arguments as for AttentionLayer.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual, Tokens tokens, const LayerNormLayer* norm,
                    const AttentionVisitor<T>* visit) const {
    if (norm) x = (*norm)(x);
    Var<T> mixed = mechanism_(operands(x), visit);
    if (tokens == Tokens::first) {
      mixed = select_token(mixed, 0);
      if (gate_) x = select_token(x, 0);
    }
    if (!gate_) return (*proj_)(mixed, residual);
    const Var<T> gate = (*gate_)(x);
    const typename Tape<T>::Scope scope(x.tape(), name_);
    return (*proj_)(mul(mixed, gate_silu_ ? silu(gate) : gate), residual);
  }

  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return mechanism_.penalty(tape);
  }

 private:
  /// Returns the mechanism. Throws Error if kv_stride > 1 and the mechanism requires as many keys as queries.
  static std::unique_ptr<Mechanism> checked(std::unique_ptr<Mechanism> mechanism, const CvtStageSizes& sizes) {
    const AttentionShape shape = sizes.shape();
    require(sizes.kv_stride == 1 || mechanism->traits().cross,
            "kv_stride = {} gives N = {} queries and M = {} keys; {} with these options requires equal numbers",
            sizes.kv_stride, shape.queries, shape.keys, mechanism->name());
    return mechanism;
  }

  template <class T>
  AttentionOperands<T> operands(Var<T> x) const {
    const bool cls = sizes_.class_token;
    const Var<T> patches = cls ? skip_tokens(x, 1) : x, class_token = cls ? select_token(x, 0) : Var<T>{};
    const auto part = [&](const std::optional<ConvProjection>& projection) {
      return projection ? (*projection)(patches, class_token, sizes_.side) : Var<T>{};
    };
    Var<T> q = part(q_), k = part(k_), v = part(v_);
    if (q_norm_) q = (*q_norm_)(q), k = (*k_norm_)(k);
    if (q && q_scale_ != 1) {
      const typename Tape<T>::Scope scope(x.tape(), name_);
      q = scale(q, q_scale_);
    }
    return operands_apart(q, k, v, mechanism_.layout());
  }

  std::string name_;
  CvtStageSizes sizes_;
  bool gate_silu_;
  double q_scale_ = 1;
  MechanismLayer mechanism_;
  std::optional<ConvProjection> q_, k_, v_;
  std::optional<LinearLayer> proj_, gate_;
  std::optional<HeadNormLayer> q_norm_, k_norm_;
};

/// An embedding and the blocks after it.
class CvtStage {
 public:
  CvtStage(ParameterList& list, const Experiment& experiment, CvtStageSizes sizes, Index in, Window window)
      : sizes_(sizes) {
    const ModelConfig& config = experiment.model;
    const StageSizes& s = config.stages;
    const auto i = static_cast<std::size_t>(sizes.number);
    const std::string name = fmt::format("stage{}", sizes.number);
    embed_.emplace(list, name + ".patch_embed.proj", ConvLayer::Kind::dense, in, sizes.dim, window, true);
    norm_.emplace(list, name + ".patch_embed.norm", sizes.dim, eps);
    class_name_ = name + ".cls_token";
    if (sizes.class_token)
      class_token_ = list.add({class_name_, {1, 1, sizes.dim}, Initial::truncated_normal(0.02), false});
    const bool last = sizes.number + 1 == s.count();
    const BlockSizes of_block{sizes.dim, s.hidden[i], item_of(s.act, sizes.number), eps};
    Index place = 0;
    for (std::size_t before = 0; before < i; ++before) place += s.depth[before];
    for (Index b = 0; b < s.depth[i]; ++b) {
      const double rate = last ? drop_path_at(experiment.train.drop_path, b, s.depth[i]) : 0;
      blocks_.emplace_back(
          list, fmt::format("{}.blocks.{}", name, b), of_block,
          [&](ParameterList& to, const std::string& layer) {
            return ConvAttention(to, layer, config, sizes, mechanism_of(experiment.attention, sizes.number));
          },
          BlockOptions{experiment.train.dropout, rate, static_cast<std::uint64_t>(place + b)});
    }
  }

  /// Maps x [B, before^2, C] to the stage's tokens.
  template <class T>
  Var<T> operator()(const ModelPass<T>& pass, Var<T> x, Index before, Tokens last) const {
    Tape<T>& tape = pass.tape;
    x = (*norm_)((*embed_)(x, before));
    if (class_token_ >= 0) {
      const typename Tape<T>::Scope scope(tape, class_name_);
      x = embed_tokens(x, tape.parameter(class_token_), {});
    }
    return run_blocks(pass, blocks_, x, last);
  }

  Index side() const { return sizes_.side; }
  const auto& blocks() const { return blocks_; }

 private:
  CvtStageSizes sizes_;
  std::string class_name_;
  std::optional<ConvLayer> embed_;
  std::optional<LayerNormLayer> norm_;
  ParameterId class_token_ = -1;
  std::vector<PreNormBlock<ConvAttention>> blocks_;
};

class Cvt : public StagedModel<Cvt, CvtStage> {
 public:
  explicit Cvt(const Experiment& experiment) : StagedModel(experiment) {
    const StageSizes& s = config_.stages;
    check_options(experiment.attention, s.count());
    Index in = config_.channels, side = config_.image;
    for (Index number = 0; number < s.count(); ++number) {
      const auto i = static_cast<std::size_t>(number);
      const Window window{s.patch[i], s.stride[i], s.padding[i]};
      side = window.on(side, side).out_height(window.kernel);
      const bool class_token = config_.pool == "cls" && number + 1 == s.count();
      const CvtStageSizes sizes{number, s.dim[i], s.heads[i], side, item_of(s.kv_stride, number), class_token};
      in_stage(number, side, [&] { stages_.emplace_back(list_, experiment, sizes, in, window); });
      in = sizes.dim;
    }
    head_.emplace(list_, config_, in, eps);
  }
};

}  // namespace

std::unique_ptr<Model> make_cvt(const Experiment& experiment) { return std::make_unique<Cvt>(experiment); }

}  // namespace heed
