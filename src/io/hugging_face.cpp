#include "heed/io/hugging_face.h"

#include "weight_converter.h"

#include <algorithm>

namespace heed {

namespace {

/// Names within a block; the first match counts.
constexpr Renaming in_blocks[] = {
    {"attention.attention.query.", "attn.qkv.", 0, 3},
    {"attention.attention.key.", "attn.qkv.", 1, 3},
    {"attention.attention.value.", "attn.qkv.", 2, 3},
    {"attention.output.dense.", "attn.proj."},
    {"attention.q_proj.", "attn.qkv.", 0, 3},  // q_proj to o_proj: ViT and DeiT since transformers 5
    {"attention.k_proj.", "attn.qkv.", 1, 3},
    {"attention.v_proj.", "attn.qkv.", 2, 3},
    {"attention.o_proj.", "attn.proj."},
    {"layernorm_before.", "norm1."},
    {"layernorm_after.", "norm2."},
    {"intermediate.dense.", "mlp.fc1."},
    {"output.dense.", "mlp.fc2."},
    {"layer_scale1.lambda1", "ls1.gamma"},
    {"layer_scale2.lambda1", "ls2.gamma"},
    {"norm1.", "norm1."},
    {"norm2.", "norm2."},
    {"mlp.fc1.", "mlp.fc1."},
    {"mlp.fc2.", "mlp.fc2."},
};

constexpr Renaming outside[] = {
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.distillation_token", "dist_token"},
    {"embeddings.register_tokens", "reg_token"},
    {"embeddings.position_embeddings", "pos_embed"},
    {"embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"layernorm.", "norm."},
    {"classifier.", "head."},
    {"cls_classifier.", "head."},
    {"distillation_classifier.", "head_dist."},
};

/// Returns the renaming whose `theirs` is the beginning of `name`; null if there is none.
template <std::size_t count>
const Renaming* renaming_of(const Renaming (&list)[count], std::string_view name) {
  for (const Renaming& renaming : list)
    if (name.starts_with(renaming.theirs)) return &renaming;
  return nullptr;
}

/// Returns `name` without the prefix of the model's class.
std::string_view without_class(std::string_view name) {
  for (const std::string_view prefix : {"vit.", "deit.", "dinov2.", "dinov2_with_registers."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

template <class T>
class Conversion {
 public:
  explicit Conversion(const SafetensorsFile& file) : file_(file), converter_(file), wide_classifier_(reads_both()) {}

  /// Converts the file and returns the names of the omitted tensors.
  std::vector<std::string> run(const std::string& out, const BeforeWriting& before) {
    for (const std::string& name : file_.names()) add(name);
    // With a distillation token, the position of the class token remains in the position embedding.
    if (!has("embeddings.distillation_token")) converter_.fold_class_position();
    converter_.write(out, before);
    return left_out_;
  }

 private:
  void add(const std::string& name) {
    const std::string_view own = without_class(name);
    const std::string_view block = own.starts_with("layers.") ? "layers." : "encoder.layer.";
    if (own == "embeddings.mask_token" || own.starts_with("pooler.") ||
        (own.starts_with("classifier.") && wide_classifier_))
      return left_out_.push_back(name);
    std::string before;
    std::string_view rest = own;
    const Renaming* renaming = nullptr;
    if (!own.starts_with(block)) {
      renaming = renaming_of(outside, own);
    } else if (const std::size_t dot = own.find('.', block.size()); dot != own.npos) {
      before = fmt::format("blocks.{}.", own.substr(block.size(), dot - block.size()));
      rest = own.substr(dot + 1);
      renaming = renaming_of(in_blocks, rest);
    }
    require(renaming != nullptr, "{}: tensor '{}' is not one of Hugging Face's ViT, DeiT or DINOv2", file_.path(),
            name);
    std::string ours = before + renaming->ours + std::string(rest.substr(std::string_view(renaming->theirs).size()));
    // If the model has a classifier, but none for the distillation token, this token is a register.
    if (ours == "dist_token" && has("classifier.weight") && !has("distillation_classifier.weight")) ours = "reg_token";
    converter_.add_rows(ours, renaming->place, renaming->of, name);
  }

  bool has(std::string_view own) const {
    return std::any_of(file_.names().begin(), file_.names().end(),
                       [&](const std::string& name) { return without_class(name) == own; });
  }

  /// Returns true if the classifier reads the class token and the mean of the patches, 2 D values, as DINOv2's does.
  bool reads_both() const {
    Index width = 0, read = 0;
    for (const std::string& name : file_.names()) {
      const Shape& shape = file_.info(name).shape;
      if (without_class(name) == "layernorm.weight" && shape.rank() == 1) width = shape[0];
      if (without_class(name) == "classifier.weight" && shape.rank() == 2) read = shape[1];
    }
    return width > 0 && read == 2 * width;
  }

  const SafetensorsFile& file_;
  WeightConverter<T> converter_;
  std::vector<std::string> left_out_;
  bool wide_classifier_;
};

}  // namespace

std::vector<std::string> convert_hugging_face(const std::string& in, const std::string& out,
                                              const BeforeWriting& before) {
  require(!same_file(in, out), "{}: output and input are the same file; give another output", out);
  const SafetensorsFile file(in);
  file.check();
  bool doubles = false;
  for (const std::string& name : file.names()) doubles |= file.info(name).dtype == DType::F64;
  return doubles ? Conversion<double>(file).run(out, before) : Conversion<float>(file).run(out, before);
}

}  // namespace heed
