// SOFT's pyramid. Lu, Yao, Zhang, Zhu, Xu, Gao, Xu, Xiang, Zhang, "SOFT: Softmax-free Transformer with Linear
// Complexity", NeurIPS 2021, arXiv:2110.11945v2, Section 3.3 and Table 2, following the authors' code.
//
//   x = relu(bn(conv(x)))                   each stage: three times in the first, once in the others
//   x = [class token; x]                    last stage
//   x += positions
//   x = norm1(x + attention(x))             for each block; in the last stage x += attention(norm1(x)),
//   x = norm2(x + mlp(x))                   x += mlp(norm2(x))
//   logits = head(norm(x)[class token], or its mean over tokens)
//
// Tensors outside of attention have the authors' names; stages count from 1.
#include "convolution.h"
#include "host_families.h"
#include "mechanism_choice.h"
#include "staged_model.h"

#include <variant>

namespace heed {

namespace {

/// relu(bn(conv(x))) with windows of 3 x 3. Tensors NAME.N.* and NAME.(N + 1).*.
class ConvUnit {
 public:
  ConvUnit(ParameterList& list, const std::string& name, Index number, Index in, Index out, Index stride,
           Index bn_group)
      : conv_(list, fmt::format("{}.{}", name, number), ConvLayer::Kind::dense, in, out, Window{3, stride, 1}, true),
        bn_(list, fmt::format("{}.{}", name, number + 1), out, bn_group),
        relu_(fmt::format("{}.{}", name, number + 2), "relu") {}

  template <class T>
  Var<T> operator()(Var<T> x, Index side) const {
    return relu_(bn_(conv_(x, side)));
  }
  Index out(Index side) const { return conv_.out(side); }

 private:
  ConvLayer conv_;
  BatchNormLayer bn_;
  ActivationLayer relu_;
};

/// A post-norm block.
class PostNormBlock {
 public:
  template <class MakeAttention>
  PostNormBlock(ParameterList& list, const std::string& name, const BlockSizes& sizes,
                const MakeAttention& make_attention, const BlockOptions& options)
      : name_(name),
        chance_{options.dropout, options.drop_path, options.place},
        attention_(make_attention(list, name + ".attn")),
        norm1_(list, name + ".norm1", sizes.dim, sizes.eps),
        mlp_(list, name + ".mlp", sizes.dim, sizes.hidden, sizes.act),
        norm2_(list, name + ".norm2", sizes.dim, sizes.eps) {}

  template <class T>
  Var<T> operator()(Var<T> x, Tokens, const AttentionVisitor<T>* visit) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    if (!chance_.acts(x.tape())) {
      x = norm1_(attention_(x, x, Tokens::all, nullptr, visit));
      return norm2_(mlp_(nullptr, x, 0.0, chance_.place, x));
    }
    x = norm1_(add(x, chance_(attention_(x, Var<T>{}, Tokens::all, nullptr, visit), 0)));
    return norm2_(add(x, chance_(mlp_(nullptr, x, chance_.dropout, 4 * chance_.place + 1), 2)));
  }

  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return attention_.penalty(tape);
  }

 private:
  std::string name_;
  Chance chance_;
  AttentionLayer attention_;
  LayerNormLayer norm1_;
  FeedForward mlp_;
  LayerNormLayer norm2_;
};

/// A pre-norm or post-norm block.
class PyramidBlock {
 public:
  template <class... Arguments>
  PyramidBlock(bool last_stage, Arguments&&... arguments)
      : block_(last_stage ? Either(std::in_place_index<1>, arguments...)
                          : Either(std::in_place_index<0>, arguments...)) {}

  template <class T>
  Var<T> operator()(Var<T> x, Tokens tokens, const AttentionVisitor<T>* visit) const {
    return std::visit([&](const auto& block) { return block(x, tokens, visit); }, block_);
  }
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return std::visit([&](const auto& block) { return block.penalty(tape); }, block_);
  }

 private:
  using Either = std::variant<PostNormBlock, PreNormBlock<AttentionLayer>>;
  Either block_;
};

/// A stage's embedding, class token, positions and blocks.
class PyramidStage {
 public:
  /// Constructs stage `number`, counted from 1, for an input of `in` channels on a grid of `before` x `before`.
  PyramidStage(ParameterList& list, const Experiment& experiment, Index number, Index in, Index before) {
    const ModelConfig& c = experiment.model;
    const auto i = static_cast<std::size_t>(number - 1);
    const Index dim = c.stages.dim[i], stride = c.stages.stride[i];
    const bool last = number == c.stages.count();
    const std::string embed = fmt::format("patch_embed{}.proj", number);
    const auto add_unit = [&](Index width, Index by) {
      units_.emplace_back(list, embed, 3 * static_cast<Index>(units_.size()), in, width, by, c.bn_group);
      before = units_.back().out(before);
      in = width;
    };
    if (number == 1) add_unit(c.stem, stride > 1 ? 2 : 1), add_unit(c.stem, 1);
    add_unit(dim, number > 1 ? stride : stride == 4 ? 2 : 1);
    side_ = before;

    const bool cls = last && c.pool == "cls";
    const Index tokens = side_ * side_ + cls;
    position_name_ = fmt::format("pos_embed{}", number);
    if (cls) class_token_ = list.add({"cls_token", {1, 1, dim}, Initial::truncated_normal(0.02), false});
    if (c.pos_embed)
      position_ = list.add({.name = position_name_,
                            .shape = {1, tokens, dim},
                            .initial = Initial::truncated_normal(0.02),
                            .decay = false,
                            .positions = {cls, side_, side_}});
    dropout_ = experiment.train.dropout;
    place_ = static_cast<std::uint64_t>(0xe3bed + number - 1);
    in_stage(number, side_, [&] { add_blocks(list, experiment, number, cls); });
  }

  /// Maps x [B, before^2, C] to the stage's tokens.
  template <class T>
  Var<T> operator()(const ModelPass<T>& pass, Var<T> x, Index before, Tokens last) const {
    Tape<T>& tape = pass.tape;
    for (const ConvUnit& unit : units_) {
      x = unit(x, before);
      before = unit.out(before);
    }
    if (class_token_ >= 0 || position_ >= 0) {
      const typename Tape<T>::Scope scope(tape, position_name_);
      x = embed_tokens(x, class_token_ < 0 ? Var<T>{} : tape.parameter(class_token_),
                       position_ < 0 ? Var<T>{} : tape.parameter(position_));
    }
    x = dropout(x, dropout_, place_);
    return run_blocks(pass, blocks_, x, last);
  }

  Index side() const { return side_; }
  const auto& blocks() const { return blocks_; }

 private:
  void add_blocks(ParameterList& list, const Experiment& experiment, Index number, bool cls) {
    const ModelConfig& c = experiment.model;
    const StageSizes& s = c.stages;
    const auto i = static_cast<std::size_t>(number - 1);
    const bool last = number == s.count();
    const AttentionShape shape = grid_shape(side_, cls);
    const BlockSizes sizes{s.dim[i], s.hidden[i], item_of(s.act, number - 1), last ? 1e-6 : 1e-5};
    // The rate of stochastic depth grows linearly from 0 at the first block of the model.
    Index before = 0, all = 0;
    for (std::size_t t = 0; t < s.depth.size(); ++t) all += s.depth[t], before += t < i ? s.depth[t] : 0;
    for (Index b = 0; b < s.depth[i]; ++b) {
      const double rate = drop_path_at(experiment.train.drop_path, before + b, all);
      blocks_.emplace_back(
          last, list, fmt::format("block{}.{}", number, b), sizes,
          [&](ParameterList& to, const std::string& layer) {
            return AttentionLayer(to, layer, s.dim[i], s.heads[i], mechanism_of(experiment.attention, number - 1),
                                  shape, attention_options(c));
          },
          BlockOptions{experiment.train.dropout, rate, static_cast<std::uint64_t>(before + b)});
    }
  }

  Index side_ = 0;
  double dropout_ = 0;
  std::uint64_t place_ = 0;
  std::string position_name_;
  std::vector<ConvUnit> units_;
  ParameterId class_token_ = -1, position_ = -1;
  std::vector<PyramidBlock> blocks_;
};

class SoftPyramid : public StagedModel<SoftPyramid, PyramidStage> {
 public:
  explicit SoftPyramid(const Experiment& experiment) : StagedModel(experiment) {
    const StageSizes& s = config_.stages;
    check_options(experiment.attention, s.count(), 1);
    Index in = config_.channels, side = config_.image;
    for (Index number = 1; number <= s.count(); ++number) {
      stages_.emplace_back(list_, experiment, number, in, side);
      in = s.dim[static_cast<std::size_t>(number - 1)];
      side = stages_.back().side();
    }
    head_.emplace(list_, config_, in);
  }
};

}  // namespace

std::unique_ptr<Model> make_soft_pyramid(const Experiment& experiment) {
  return std::make_unique<SoftPyramid>(experiment);
}

}  // namespace heed
