#include "heed/config/model_of_tensors.h"
#include "heed/base/printable.h"
#include "heed/config/toml_text.h"
#include "heed/io/upstream_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heed {

namespace {

/// Shapes by name; errors name the file.
class Shapes {
 public:
  Shapes(const std::string& file, const std::map<std::string, Shape>& shapes) : file_(file), shapes_(shapes) {}

  bool has(const std::string& name) const { return shapes_.contains(name); }

  /// Returns the size of an axis. Throws Error if no tensor has this name and rank.
  Index size(const std::string& name, int rank, int axis) const {
    require(
        has(name), "{}: expected a Vision Transformer with timm's tensor names, but '{}' is missing{}", file_, name,
        has_hugging_face_names() ? "; for Hugging Face's names, use heed convert hf-vit, hf-deit or hf-dinov2" : "");
    const Shape& shape = shapes_.at(name);
    require(shape.rank() == rank && shape[axis] > 0, "{}: tensor '{}' has shape {}; expected {} axes", file_, name,
            shape, rank);
    return shape[axis];
  }

  /// Returns the size of an axis, 0 if there is no such tensor.
  Index size_if(const std::string& name, int rank, int axis) const { return has(name) ? size(name, rank, axis) : 0; }

 private:
  bool has_hugging_face_names() const {
    return std::any_of(shapes_.begin(), shapes_.end(),
                       [](const auto& tensor) { return is_hugging_face_name(tensor.first); });
  }

  const std::string& file_;
  const std::map<std::string, Shape>& shapes_;
};

/// Returns the side of a square grid of `patches` patches, 0 if `patches` is not a square number.
Index side_of(Index patches) {
  const auto side = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(std::max<Index>(patches, 0)))));
  return side * side == patches ? side : 0;
}

}  // namespace

ModelOfTensors model_of_tensors(const SafetensorsFile& file, Index heads) {
  std::map<std::string, Shape> shapes;
  for (const std::string& name : file.names()) shapes[name] = file.info(name).shape;
  return model_of_tensors(file.path(), shapes, heads);
}

ModelOfTensors model_of_tensors(const std::string& file, const std::map<std::string, Shape>& tensors, Index heads) {
  const Shapes shapes(file, tensors);
  require(!shapes.has("register_tokens"),
          "{}: the tensors have DINOv2's own names; `heed convert {} OUT` writes timm's", file, shell_word(file));
  ModelOfTensors result;
  ModelConfig& m = result.model;
  const std::string projection = "patch_embed.proj.weight";
  m.dim = shapes.size(projection, 4, 0);
  m.channels = shapes.size(projection, 4, 1);
  m.patch = {shapes.size(projection, 4, 2), shapes.size(projection, 4, 3)};
  while (shapes.has(fmt::format("blocks.{}.norm1.weight", m.depth))) ++m.depth;
  m.hidden = shapes.size("blocks.0.mlp.fc1.weight", 2, 0);
  m.qkv_bias = shapes.has("blocks.0.attn.qkv.bias");
  m.block_scale = shapes.has("blocks.0.ls1.gamma") ? 1e-5 : 0;
  m.qk_norm = shapes.has("blocks.0.attn.q_norm.weight");
  m.gate = shapes.has("blocks.0.attn.gate.weight");
  constexpr Index usual_width = 64;
  const Index width = m.qk_norm ? shapes.size("blocks.0.attn.q_norm.weight", 1, 0) : usual_width;
  m.heads = heads > 0 ? heads : m.dim / width;
  require(heads > 0 || m.dim % width == 0, "{}: {} channels per head do not divide the width of {}; give {}", file,
          width, m.dim, "the number of heads (--set model.heads=N, or convert --heads N)");
  if (!m.qk_norm && heads == 0)
    result.assumed.push_back(fmt::format("heads = {} ({} channels per head)", m.heads, width));

  m.class_token = shapes.has("cls_token");
  m.distilled = shapes.has("dist_token");
  m.registers = shapes.size_if("reg_token", 3, 1);
  m.pool_norm = shapes.has("fc_norm.weight") ? "after" : "before";
  m.pool = *m.class_token && m.pool_norm == "before" ? "cls" : "mean";
  require(!m.distilled || (m.pool == "cls" && m.registers == 0),
          "{}: has 'dist_token' {}; a model with model.distilled has pool = \"cls\" and no registers", file,
          m.registers > 0  ? "with 'reg_token'"
          : *m.class_token ? "with 'fc_norm.weight'"
                           : "without 'cls_token'");
  m.pre_norm = shapes.has("norm_pre.weight");
  if (m.pre_norm) {
    m.norm_eps = 1e-5;
    m.act = "quick_gelu";
    result.assumed.push_back("norm_eps = 1e-5 and act = \"quick_gelu\" (as in CLIP)");
  }
  m.classes = std::max<Index>(shapes.size_if("head.weight", 2, 0), 1);
  m.classifier = shapes.has("head.weight");
  if (!m.classifier) result.assumed.push_back("no classifier, only features");

  m.pos_embed = shapes.has("pos_embed");
  require(m.pos_embed, "{}: 'pos_embed', which determines the image size, is missing; give a model file", file);
  const Index rows = shapes.size("pos_embed", 3, 1), prefix = m.prefix_tokens();
  m.embed_prefix = side_of(rows - prefix) > 0;
  const Index side = m.embed_prefix ? side_of(rows - prefix) : side_of(rows);
  require(side > 0,
          "{}: 'pos_embed' has {} rows; expected a square number of patches, with or without {} more for the tokens "
          "before them; give a model file with model.image = [height, width]",
          file, rows, prefix);
  m.image = {side * m.patch.height, side * m.patch.width};
  return result;
}

namespace {

/// Calls f(key, value in a, value in b), with the values as texts, for the keys that tensors determine.
template <class F>
void for_fixed_keys(const ModelConfig& a, const ModelConfig& b, const F& f) {
  const auto sides = [](const Sides& s) {  // as an argument of --set: without a space
    std::string text = toml_text(s);
    std::erase(text, ' ');
    return text;
  };
  const auto key = [&](const char* name, const auto& x, const auto& y) {
    f(name, fmt::format("{}", x), fmt::format("{}", y));
  };
  key("dim", a.dim, b.dim);
  key("depth", a.depth, b.depth);
  key("hidden", a.hidden, b.hidden);
  key("channels", a.channels, b.channels);
  f("patch", sides(a.patch), sides(b.patch));
  key("pool", a.pool, b.pool);
  key("class_token", a.has_class_token(), b.has_class_token());
  key("registers", a.registers, b.registers);
  key("distilled", a.distilled, b.distilled);
  key("embed_prefix", a.embed_prefix || a.prefix_tokens() == 0, b.embed_prefix || b.prefix_tokens() == 0);
  key("pool_norm", a.pool_norm, b.pool_norm);
  key("qkv_bias", a.qkv_bias, b.qkv_bias);
  key("pre_norm", a.pre_norm, b.pre_norm);
  key("pos_embed", a.pos_embed, b.pos_embed);
  key("qk_norm", a.qk_norm, b.qk_norm);
  key("gate", a.gate, b.gate);
}

}  // namespace

Index heads_given(const std::vector<std::string>& sets) {
  constexpr std::string_view key = "model.heads=";
  Index heads = 0;
  for (const std::string& set : sets)
    if (set.starts_with(key)) std::from_chars(set.data() + key.size(), set.data() + set.size(), heads);
  return heads;
}

std::vector<std::string> sets_of_tensors(const ModelConfig& model) {
  std::vector<std::string> sets{"model.family=vit",
                                fmt::format("model.heads={}", model.heads),
                                fmt::format("model.layer_scale={}", model.block_scale),
                                fmt::format("model.norm_eps={}", model.norm_eps),
                                "model.act=" + model.act,
                                fmt::format("model.image=[{},{}]", model.image.height, model.image.width)};
  for_fixed_keys(model, model, [&](const char* key, const std::string& text, const std::string&) {
    sets.push_back(fmt::format("model.{}={}", key, text));
  });
  return sets;
}

std::string fitting_keys(const SafetensorsFile& file, const ModelConfig& model) try {
  if (family_called(model.family) != vit) return "";
  const ModelConfig other = model_of_tensors(file, model.heads).model;
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += fmt::format(" --set model.{}={}", key, value);
  };
  if (model.pool != other.pool) add("pool", other.pool);
  ModelConfig pooled = model;
  pooled.pool = other.pool;  // determines class_token if that is not set
  for_fixed_keys(pooled, other, [&](const char* key, const std::string& own, const std::string& found) {
    if (own != found) add(key, found);
  });
  if ((model.block_scale == 0) != (other.block_scale == 0)) add("layer_scale", fmt::format("{}", other.block_scale));
  return text.empty() ? "" : fmt::format(";{} fits the file", text);
} catch (const Error&) {
  return "";
}

}  // namespace heed
