// Stand-ins for files of Hugging Face's transformers.
#pragma once

#include "heed/base/random.h"
#include "heed/io/safetensors.h"
#include "heed/nn/vit.h"

#include <map>
#include <string>

namespace heed::test {

inline ModelConfig published_vit() {
  ModelConfig m;
  m.image = 8, m.channels = 3, m.patch = 4, m.dim = 64, m.depth = 2, m.heads = 1, m.hidden = 10, m.classes = 3;
  return m;
}

/// A file of timm's tensors under Hugging Face's names; qkv layers are split.
class TheirFile {
 public:
  explicit TheirFile(const Parameters<float>& ours, bool dinov2) : ours_(ours), dinov2_(dinov2) {
    for (ParameterId id = 0; id < ours.list().size(); ++id) add(id);
  }

  void add(const std::string& name, const Shape& shape, float value) {
    Tensor<float>& tensor = tensors_[name] = Tensor<float>(shape);
    std::fill(tensor.begin(), tensor.end(), value);
  }

  /// Replaces the first `what` in each name by `by`.
  void rename(const std::string& what, const std::string& by) {
    std::map<std::string, Tensor<float>> renamed;
    for (const auto& [name, tensor] : tensors_) renamed[replaced(name, what, by)] = tensor;
    tensors_ = std::move(renamed);
  }

  Tensor<float>& operator[](const std::string& name) { return tensors_.at(name); }

  void write(const std::string& path) const {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : tensors_) writer.add(name, tensor.view());
    writer.write(path);
  }

 private:
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
  }

  void add(ParameterId id) {
    const std::string& name = ours_.list()[id].name;
    const View<const float> values = ours_[id];
    if (const std::size_t at = name.find("attn.qkv."); at != std::string::npos) {
      const char* const parts[] = {"query", "key", "value"};
      const Index rows = values.shape()[0] / 3;
      for (Index i = 0; i < 3; ++i)
        put(replaced(theirs(name), "attn.qkv", std::string("attention.attention.") + parts[i]),
            values.part(i * rows, rows));
      return;
    }
    put(theirs(name), values);
  }

  void put(const std::string& name, View<const float> values) {
    Tensor<float>& tensor = tensors_[name] = Tensor<float>(values.shape());
    std::copy(values.begin(), values.end(), tensor.begin());
  }

  std::string theirs(std::string name) const {
    const std::pair<const char*, const char*> names[] = {
        {"blocks.", "encoder.layer."},           {"patch_embed.proj", "patch_embeddings.projection"},
        {"attn.proj", "attention.output.dense"}, {"ls1.gamma", "layer_scale1.lambda1"},
        {"ls2.gamma", "layer_scale2.lambda1"},   {"pos_embed", "position_embeddings"},
        {"dist_token", "distillation_token"},    {"reg_token", "register_tokens"}};
    for (const auto& [ours, other] : names) name = replaced(name, ours, other);
    if (!dinov2_) {
      name = replaced(replaced(name, "norm1", "layernorm_before"), "norm2", "layernorm_after");
      name = replaced(replaced(name, "mlp.fc1", "intermediate.dense"), "mlp.fc2", "output.dense");
    }
    if (name.starts_with("norm.")) name = "layer" + name;
    if (name.starts_with("head_dist.")) return replaced(name, "head_dist", "distillation_classifier");
    if (name.starts_with("head.")) return replaced(name, "head", "classifier");
    const bool embedding = name.find("token") != name.npos || name.find("embeddings") != name.npos;
    return (dinov2_ ? "dinov2." : "vit.") + std::string(embedding ? "embeddings." : "") + name;
  }

  const Parameters<float>& ours_;
  bool dinov2_;
  std::map<std::string, Tensor<float>> tensors_;
};

/// Adds noise to all parameters except prepared ones, including norms and biases, so that no two tensors are equal.
inline void add_noise(Parameters<float>& parameters) {
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const ParameterSpec& spec = parameters.list()[id];
    const View<float> values = parameters[id];
    const RandomStream random = RandomStream(5).derive(spec.name);
    if (spec.prepared) continue;
    for (Index i = 0; i < values.size(); ++i) values[i] += static_cast<float>(0.01 * random.normal(i));
  }
}

/// Returns random parameters of a Vision Transformer.
inline Parameters<float> drawn(const ModelConfig& model) {
  Parameters<float> parameters(VisionTransformer(model, {}).parameters());
  parameters.initialise(4);
  add_noise(parameters);
  return parameters;
}

}  // namespace heed::test
