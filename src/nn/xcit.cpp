// XCiT. El-Nouby, Touvron, Caron, Bojanowski, Douze, Joulin, Laptev, Neverova, Synnaeve, Verbeek, Jegou, "XCiT:
// Cross-covariance image transformers", NeurIPS 2021, arXiv:2106.09681; a host family of SimA's experiments
// (arXiv:2206.08898).
//
//   x = stem(image) + E W                     convolutions of stride 2; Fourier code E of the position
//   x += gamma1 attention(norm1(x))           for each block
//   x += gamma3 lpi(norm3(x))                 local patch interaction
//   x += gamma2 mlp(norm2(x))
//   x = [class token; x]
//   class attention, cls_depth times          Touvron et al., "Going deeper with image transformers", arXiv:2103.17239
//   logits = head(norm(x)[class token])
//
// Tensors have timm's names. Class attention keeps timm's order of steps, which existing weights depend on.
#include "convolution.h"
#include "host_families.h"
#include "mechanism_choice.h"
#include "run_blocks.h"
#include "heed/base/math.h"
#include "heed/nn/block.h"
#include "heed/nn/image_head.h"
#include "heed/nn/image_model.h"
#include "heed/ops/scale_channels.h"

#include <numbers>

namespace heed {

namespace {

/// log2(patch) convolutions of stride 2 that double the width up to dim, with batch norm and, in between, activations.
class Stem {
 public:
  Stem(ParameterList& list, const ModelConfig& config) {
    Index units = 0, in = config.channels;
    while ((config.patch >> units) > 1) ++units;
    for (Index i = 0; i < units; ++i) {
      const std::string name = fmt::format("patch_embed.proj.{}", 2 * i);
      const Index out = config.dim >> (units - 1 - i);
      convolutions_.emplace_back(list, name + ".0", ConvLayer::Kind::dense, in, out, Window{3, 2, 1}, false);
      norms_.emplace_back(list, name + ".1", out, config.bn_group);
      acts_.emplace_back(fmt::format("patch_embed.proj.{}", 2 * i + 1), config.act);
      in = out;
    }
  }

  /// Maps x [B, side^2, channels] to [B, (side / patch)^2, dim].
  template <class T>
  Var<T> operator()(Var<T> x, Index side) const {
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      x = norms_[i](convolutions_[i](x, side));
      side = convolutions_[i].out(side);
      if (i + 1 < norms_.size()) x = acts_[i](x);
    }
    return x;
  }

 private:
  std::vector<ConvLayer> convolutions_;
  std::vector<BatchNormLayer> norms_;
  std::vector<ActivationLayer> acts_;
};

/// Projection of sines and cosines of the position. E [side^2, 64]: with r = 2 pi i / (side + 1e-6) of row i = 1..side
/// and f_j = 10000^(2 floor(j / 2) / 32), channel j < 32 is sin(r / f_j) for even j and cos(r / f_j) for odd; the other
/// channels encode the column in the same way.
class FourierPositions {
 public:
  FourierPositions(ParameterList& list, Index side, Index dim)
      : side_(side),
        projection_(list, "pos_embed.token_projection", ConvLayer::Kind::dense, 2 * half, dim, Window{1, 1, 0}, true) {
    for (Index i = 0; i < side; ++i)
      for (Index j = 0; j < half; ++j) {
        const double r = 2 * std::numbers::pi * static_cast<double>(i + 1) / (static_cast<double>(side) + 1e-6);
        const double angle = r / math::pow(10000.0, static_cast<double>(j / 2 * 2) / static_cast<double>(half));
        code_.push_back(j % 2 == 0 ? math::sin(angle) : math::cos(angle));
      }
  }

  /// Returns E W + b, [1, side^2, dim].
  template <class T>
  Var<T> operator()(Tape<T>& tape) const {
    const Index places = side_ * side_;
    T* const code = tape.memory(places * 2 * half);
    for (Index place = 0; code && place < places; ++place) {
      const double *const row = code_.data() + place / side_ * half, *const column =
                                                                         code_.data() + place % side_ * half;
      T* const here = code + place * 2 * half;
      for (Index j = 0; j < half; ++j) {
        here[j] = T(row[j]);
        here[half + j] = T(column[j]);
      }
    }
    return projection_(tape.constant({code, Shape{1, places, 2 * half}}), side_);
  }

 private:
  static constexpr Index half = 32;
  Index side_;
  std::vector<double> code_;  ///< [side, 32], by index of a row or a column
  ConvLayer projection_;
};

/// Local patch interaction: two depth-wise convolutions of the grid, which mix neighbouring patches. arXiv:2106.09681,
/// Section 3.3.
class LocalPatchInteraction {
 public:
  LocalPatchInteraction(ParameterList& list, const std::string& name, const ModelConfig& config)
      : conv1_(list, name + ".conv1", ConvLayer::Kind::depthwise, config.dim, config.dim, Window{}, true),
        act_(name + ".act", config.act),
        bn_(list, name + ".bn", config.dim, config.bn_group),
        conv2_(list, name + ".conv2", ConvLayer::Kind::depthwise, config.dim, config.dim, Window{}, true) {}

  template <class T>
  Var<T> operator()(Var<T> x, Index side) const {
    return conv2_(bn_(act_(conv1_(x, side))), side);
  }

 private:
  ConvLayer conv1_;
  ActivationLayer act_;
  BatchNormLayer bn_;
  ConvLayer conv2_;
};

class XcitBlock {
 public:
  XcitBlock(ParameterList& list, const std::string& name, const ModelConfig& config,
            std::unique_ptr<Mechanism> mechanism, const AttentionShape& shape, const Chance& chance)
      : name_(name),
        side_(shape.grid_height),
        chance_(chance),
        norm1_(list, name + ".norm1", config.dim),
        attention_(list, name + ".attn", config.dim, config.heads, std::move(mechanism), shape, options(config)) {
    if (config.lpi) norm3_.emplace(list, name + ".norm3", config.dim);
    if (config.lpi) lpi_.emplace(list, name + ".local_mp", config);
    norm2_.emplace(list, name + ".norm2", config.dim);
    mlp_.emplace(list, name + ".mlp", config.dim, config.hidden, config.act);
    gamma1_ = add_layer_scale(list, name + ".gamma1", config.dim, config.layer_scale);
    if (config.lpi) gamma3_ = add_layer_scale(list, name + ".gamma3", config.dim, config.layer_scale);
    gamma2_ = add_layer_scale(list, name + ".gamma2", config.dim, config.layer_scale);
  }

  /// Maps x [B, N, D] to the same shape; ignores the selection of tokens.
  template <class T>
  Var<T> operator()(Var<T> x, Tokens, const AttentionVisitor<T>* visit) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    x = residual(x, attention_(x, {}, Tokens::all, &norm1_, visit), gamma1_, 0);
    if (lpi_) x = residual(x, (*lpi_)((*norm3_)(x), side_), gamma3_, 3);
    return residual(x, (*mlp_)(&*norm2_, x, chance_.dropout, 4 * chance_.place + 1), gamma2_, 2);
  }

  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return attention_.penalty(tape);
  }

 private:
  /// Returns the options of the attention layer. In files, XCA's temperatures have timm's shape, [H, 1, 1].
  static AttentionLayerOptions options(const ModelConfig& config) {
    AttentionLayerOptions options = attention_options(config);
    options.as_images = "temperature";
    return options;
  }

  /// Returns x + gamma branch, with dropout and stochastic depth of the branch.
  template <class T>
  Var<T> residual(Var<T> x, Var<T> branch, ParameterId gamma, std::uint64_t which) const {
    return chance_.scaled(x, branch, x.tape().parameter(gamma), which);
  }

  std::string name_;
  Index side_;
  Chance chance_;
  LayerNormLayer norm1_;
  AttentionLayer attention_;
  std::optional<LayerNormLayer> norm3_, norm2_;
  std::optional<LocalPatchInteraction> lpi_;
  std::optional<FeedForward> mlp_;
  ParameterId gamma1_, gamma2_, gamma3_ = -1;
};

/// Class attention, in which the class token attends to all tokens:
///
///   y = norm1(x);  x += gamma1 [ca(y); y_1..y_N];  x = norm2(x), or with tokens_norm = false x_0 = norm2(x_0)
///   x_0 += gamma2 mlp(x_0);  x_n += x_n for n > 0
///
/// ca is the output projection of softmax attention of token 0 or, with cls_attention = "sima", of token 0's row of
/// qn kn^T v, where each channel of q and of k is divided by its l1 norm over all tokens, at least 1e-6.
class ClassAttentionBlock {
 public:
  ClassAttentionBlock(ParameterList& list, const std::string& name, const ModelConfig& config,
                      const AttentionShape& shape, const Chance& chance)
      : name_(name),
        sima_(config.cls_attention == "sima"),
        tokens_norm_(config.tokens_norm),
        chance_(chance),
        norm1_(list, name + ".norm1", config.dim),
        q_(list, name + ".attn.q", config.dim, config.dim),
        k_(list, name + ".attn.k", config.dim, config.dim),
        v_(list, name + ".attn.v", config.dim, config.dim),
        proj_(list, name + ".attn.proj", config.dim, config.dim),
        mechanism_(name + ".attn",
                   make_mechanism(config.cls_attention, sima_ ? OptionValues{{"norm", "none"}} : OptionValues{}),
                   config.dim, config.heads, of_class_token(shape)),
        norm2_(list, name + ".norm2", config.dim),
        mlp_(list, name + ".mlp", config.dim, config.hidden, config.act),
        gamma1_(add_layer_scale(list, name + ".gamma1", config.dim, config.layer_scale)),
        gamma2_(add_layer_scale(list, name + ".gamma2", config.dim, config.layer_scale)) {}

  /// Maps x [B, N + 1, D] to the same shape, or to [B, D] if only the class token is needed. Ignores the attention
  /// visitor, since the only query is the class token.
  template <class T>
  Var<T> operator()(Var<T> x, Tokens tokens, const AttentionVisitor<T>*) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    const Var<T> gamma1 = tape.parameter(gamma1_), gamma2 = tape.parameter(gamma2_);
    const Var<T> y = norm1_(x), attended = dropout(attend(y), chance_.dropout, 4 * chance_.place);
    const auto class_token = [&](Var<T> x0) {
      const Var<T> branch = mlp_(nullptr, x0, chance_.dropout, 4 * chance_.place + 1);
      return scale_channels(dropout(branch, chance_.dropout, 4 * chance_.place + 2), gamma2, x0);
    };
    if (tokens == Tokens::first) return class_token(norm2_(scale_channels(attended, gamma1, select_token(x, 0))));
    x = scale_channels(join_tokens(attended, skip_tokens(y, 1)), gamma1, x);
    if (tokens_norm_) x = norm2_(x);
    // Evaluated sequentially: compilers evaluate arguments in different orders, which would reorder the operations.
    const Var<T> x0 = select_token(x, 0), others = scale(skip_tokens(x, 1), 2);
    return join_tokens(class_token(tokens_norm_ ? x0 : norm2_(x0)), others);
  }

 private:
  static AttentionShape of_class_token(AttentionShape shape) {
    shape.class_token = true;
    shape.keys = shape.queries + 1;
    shape.queries = 1;
    return shape;
  }

  /// Returns ca(y), [B, D].
  template <class T>
  Var<T> attend(Var<T> y) const {
    constexpr double least = 1e-6;
    const Var<T> q = sima_ ? select_token(l1_normalize_tokens(q_(y), least), 0) : q_(select_token(y, 0));
    const Var<T> k = sima_ ? l1_normalize_tokens(k_(y), least) : k_(y);
    return proj_(select_token(mechanism_(operands_apart(q, k, v_(y), mechanism_.layout())), 0));
  }

  std::string name_;
  bool sima_, tokens_norm_;
  Chance chance_;
  LayerNormLayer norm1_;
  LinearLayer q_, k_, v_, proj_;
  MechanismLayer mechanism_;
  LayerNormLayer norm2_;
  FeedForward mlp_;
  ParameterId gamma1_, gamma2_;
};

class Xcit : public BatchNormModel<Xcit> {
 public:
  explicit Xcit(const Experiment& experiment) : BatchNormModel(experiment), dropout_(experiment.train.dropout) {
    check_options(experiment.attention);
    const ModelConfig& c = config_;
    const Index side = c.image / c.patch;
    const AttentionShape shape = grid_shape(side, false);
    class_token_ = list_.add({"cls_token", {1, 1, c.dim}, Initial::truncated_normal(0.02), false});
    stem_.emplace(list_, c);
    if (c.pos_embed) positions_.emplace(list_, side, c.dim);
    Chance chance{experiment.train.dropout, experiment.train.drop_path};
    for (Index i = 0; i < c.depth; ++i, ++chance.place)
      blocks_.emplace_back(list_, fmt::format("blocks.{}", i), c, mechanism_of(experiment.attention, i), shape, chance);
    for (Index i = 0; i < c.cls_depth; ++i, ++chance.place)
      class_blocks_.emplace_back(list_, fmt::format("cls_attn_blocks.{}", i), c, shape, chance);
    head_.emplace(list_, c, c.dim);
  }

  /// Returns the number of class attention blocks, since other blocks do not process the class token, and the width.
  FeatureSizes feature_sizes() const override { return {config_.cls_depth, config_.dim}; }

  /// Returns `margin` times the sum of products of the sizes, far above the operations of any mechanism.
  double most_operations() const override {
    const ModelConfig& c = config_;
    const double side = static_cast<double>(c.image / c.patch), tokens = side * side + 1;
    const double dim = static_cast<double>(c.dim), blocks = static_cast<double>(c.depth + c.cls_depth + 1);
    constexpr double margin = 1000;
    return margin * blocks * tokens * dim * (dim + static_cast<double>(c.hidden + c.channels + c.classes) + tokens);
  }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const {
    Tape<T>& tape = pass.tape;
    Var<T> x = (*stem_)(this->pixels_of(pass), config_.image);
    const Var<T> positions = positions_ ? (*positions_)(tape) : Var<T>{};
    {
      const typename Tape<T>::Scope scope(tape, position_name_);
      x = dropout(embed_tokens(x, {}, positions), dropout_, 0xe3bed);
    }
    x = run_blocks(pass, blocks_, x);
    {
      const typename Tape<T>::Scope scope(tape, class_name_);
      x = embed_tokens(x, tape.parameter(class_token_), {});
    }
    return run_to_end(pass, class_blocks_, x, *head_);
  }

  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const {
    return sum_of_penalties(tape, blocks_);
  }

 private:
  double dropout_;
  std::string position_name_ = "pos_embed", class_name_ = "cls_token";
  ParameterId class_token_;
  std::optional<Stem> stem_;
  std::optional<FourierPositions> positions_;
  std::vector<XcitBlock> blocks_;
  std::vector<ClassAttentionBlock> class_blocks_;
  std::optional<ImageHead> head_;
};

}  // namespace

std::unique_ptr<Model> make_xcit(const Experiment& experiment) { return std::make_unique<Xcit>(experiment); }

}  // namespace heed
