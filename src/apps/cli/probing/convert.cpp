// heed convert: conversion of weights that have other programs' names.
#include "src/apps/cli/shared/commands.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/config/model_of_tensors.h"
#include "heed/io/file.h"
#include "heed/io/hugging_face.h"
#include "heed/io/upstream_weights.h"
#include "heed/nn/families.h"

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

/// Throws Error unless the tensors converted from `file` are the parameters of the experiment's model.
void require_parameters(const std::string& file, const Experiment& x, const std::map<std::string, Shape>& shapes) {
  const std::unique_ptr<Model> model = make_model(x);
  const ParameterList& list = model->parameters();
  for (const ParameterSpec& spec : list) {
    const auto found = shapes.find(spec.name);
    require(found != shapes.end(), "{}: has no tensor for '{}'", file, spec.name);
    require(found->second == spec.shape, "{}: '{}' would have shape {}; expected {}", file, spec.name, found->second,
            spec.shape);
  }
  for (const auto& [name, shape] : shapes)
    require(list.find(name) >= 0, "{}: {} is not a tensor of a model with {} blocks", file, in_quotes(name),
            x.model.depth);
}

/// Returns the tables [model] and [attention], after comments, for tensors converted from `file`, a Hugging Face model
/// of this kind.
std::string model_table(const std::string& file, const std::map<std::string, Shape>& shapes, const std::string& kind,
                        Index heads) {
  const ModelOfTensors found = model_of_tensors(file, shapes, heads);
  std::vector<std::string> sets = sets_of_tensors(found.model);
  sets.push_back(fmt::format("model.classes={}", found.model.classes));
  if (kind != "hf-dinov2") sets.push_back("model.norm_eps=1e-12");
  Experiment x = load_sets(sets);
  x.model.classifier = found.model.classifier;
  require_parameters(file, x, shapes);
  const std::string text = to_toml(x);
  std::string comments = fmt::format("# Images: --preset {}\n", kind == "hf-vit" ? "inception" : "imagenet");
  for (const std::string& assumed : found.assumed) comments += "# Not in the file: " + assumed + "\n";
  return comments + text.substr(0, text.find("\n[data]"));
}

/// Throws Error if a tensor's name belongs to another kind of model.
void require_kind(const std::string& file, const std::string& kind) {
  const SafetensorsFile weights(file);
  for (const std::string& name : weights.names()) {
    const bool dino = name.starts_with("dinov2") || name.find(".layer_scale1.") != name.npos;
    const bool vit = name.find(".layernorm_before.") != name.npos, deit = name.starts_with("deit.");
    require(kind == "hf-dinov2" || !dino, "{}: {} is a tensor of DINOv2; expected hf-dinov2", file, in_quotes(name));
    require(kind != "hf-dinov2" || !vit, "{}: {} is a tensor of ViT or DeiT; expected hf-vit or hf-deit", file,
            in_quotes(name));
    require(kind == "hf-deit" || !deit, "{}: {} is a tensor of DeiT; expected hf-deit", file, in_quotes(name));
  }
}

/// Writes a converted file and, beside it, the TOML file of its model: both or neither. Throws Error if a different
/// TOML file exists.
int convert_with_table(const std::string& kind, const std::string& in, const std::string& out, Index heads) {
  const std::string model = std::filesystem::path(out).replace_extension(".toml");
  require(model != out, "{}: expected a name that does not end in .toml, the extension of the model file", out);
  require_kind(in, kind);
  std::string table;
  bool created = false;
  std::vector<std::string> left_out;
  try {
    left_out = convert_hugging_face(in, out, [&](const std::map<std::string, Shape>& shapes) {
      table = model_table(in, shapes, kind, heads);
      created = !std::filesystem::exists(model);
      if (created) return write_file(model, table);
      require(read_file(model) == table,
              "{}: exists and differs from this model's table; move it, or choose another OUT", model);
    });
  } catch (...) {
    std::error_code ignored;
    if (created) std::filesystem::remove(model, ignored);
    throw;
  }
  if (!left_out.empty()) std::cout << fmt::format("# left out: {}\n", quoted_list(left_out));
  std::cout << fmt::format("# {}\n{}", printable(model), table);
  return ok;
}

int convert(const std::vector<std::string>& words, Index heads) {
  const bool hugging_face = words[0] == "hf-vit" || words[0] == "hf-deit" || words[0] == "hf-dinov2";
  require(words.size() == (hugging_face ? 3 : 2),
          "convert: expected IN OUT, or hf-vit, hf-deit or hf-dinov2 before them");
  if (hugging_face) return convert_with_table(words[0], words[1], words[2], heads);
  require(heads == 0, "convert: --heads requires hf-vit, hf-deit or hf-dinov2");
  const std::string prefix = convert_weights(words[0], words[1]);
  if (!prefix.empty()) std::cout << fmt::format("{}: prefix {} removed\n", printable(words[0]), in_quotes(prefix));
  return ok;
}

}  // namespace

void add_convert(Command program) {
  static std::vector<std::string> words;
  static Index heads = 0;
  Command command = program.command("convert", "Rename weights of other programs to heed's names");
  command.option("FILES", &words, "[hf-vit|hf-deit|hf-dinov2] IN OUT: safetensors to read and to write",
                 {.required = true});
  command.option("--heads", &heads, "hf-...: the number of heads; default: heads of 64 channels",
                 {.range = {{1, 1024}}});
  command.footer(
      "Weights of timm's XCiT and ViT, and of CvT by its authors, already have heed's names. Older files of XCiT "
      "(pos_embeder, cls_attn_blocks.*.attn.qkv) and SOFT's blocks (att.mha.*) are renamed, and split or joined where "
      "q, k and v are laid out differently. Tensors with other names are copied. Prefixes that wrappers add to all "
      "names (module., model., _orig_mod. and so on) are removed.\n\n"
      "hf-vit, hf-deit and hf-dinov2 read ViT, DeiT and DINOv2 (with or without registers) of Hugging Face's "
      "transformers. The model is printed, and written to OUT with the extension .toml.");
  command.action([] { return convert(words, heads); });
}

}  // namespace heed::cli
