// heed convert: conversion of weights with other programs' names.
#include "src/apps/cli/shared/commands.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/config/model_of_tensors.h"
#include "heed/io/file.h"
#include "heed/io/hugging_face.h"
#include "heed/io/upstream_weights.h"

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

/// Returns the table [model] of a file converted from Hugging Face's model `kind`.
std::string model_table(const std::string& file, const std::string& kind, Index heads) {
  const ModelOfTensors found = model_of_tensors(SafetensorsFile(file), heads);
  std::vector<std::string> sets = sets_of_tensors(found.model);
  sets.push_back(fmt::format("model.classes={}", found.model.classes));
  if (kind != "hf-dinov2") sets.push_back("model.norm_eps=1e-12");
  const Experiment x = load_sets(sets);
  const std::string text = to_toml(x);
  std::string comments;
  for (const std::string& assumed : found.assumed) comments += "# Not in the file: " + assumed + "\n";
  return comments + text.substr(0, text.find("\n[data]"));
}

int convert(const std::vector<std::string>& words, Index heads) {
  if (words.size() == 2) {
    require(heads == 0, "convert: --heads is for hf-vit, hf-deit and hf-dinov2");
    convert_weights(words[0], words[1]);
    return ok;
  }
  require(words.size() == 3 && (words[0] == "hf-vit" || words[0] == "hf-deit" || words[0] == "hf-dinov2"),
          "convert: expected IN OUT, or one of hf-vit, hf-deit, hf-dinov2 before them");
  const std::string &kind = words[0], &out = words[2];
  const std::vector<std::string> left_out = convert_hugging_face(words[1], out);
  const std::string table = model_table(out, kind, heads);
  const std::string model = std::filesystem::path(out).replace_extension(".toml");
  require(model != out, "{}: expected another ending than .toml, where the model is written", out);
  write_file(model, table);
  if (!left_out.empty()) std::cout << fmt::format("# left out: {}\n", quoted_list(left_out));
  std::cout << fmt::format("# {}\n{}", printable(model), table);
  return ok;
}

}  // namespace

void add_convert(Command program) {
  static std::vector<std::string> words;
  static Index heads = 0;
  Command command = program.command("convert", "Give weights of other programs the names that heed has");
  command.option("FILES", &words, "[hf-vit|hf-deit|hf-dinov2] IN OUT: safetensors to read and to write",
                 {.required = true});
  command.option("--heads", &heads, "hf-...: the number of heads; default: heads of 64 channels",
                 {.range = {{1, 1024}}});
  command.footer(
      "timm's XCiT and ViT and CvT's authors have heed's names already. Older files of XCiT (pos_embeder,\n"
      "cls_attn_blocks.*.attn.qkv) and SOFT's blocks (att.mha.*) are renamed, and cut or joined where q, k and v\n"
      "lie otherwise. Tensors with other names are copied. Prefixes that wrappers put before all names (module.,\n"
      "model., _orig_mod. and so on) are left out.\n\n"
      "hf-vit, hf-deit and hf-dinov2 read ViT, DeiT and DINOv2 (with registers, too) of Hugging Face's transformers.\n"
      "The model is printed, and written to OUT with the ending .toml.");
  command.action([] { return convert(words, heads); });
}

}  // namespace heed::cli
