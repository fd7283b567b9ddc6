#include "heed/io/upstream_weights.h"

#include "weight_converter.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace heed {

namespace {

constexpr Renaming soft_names[] = {
    {".att.mha.W_q.", ".attn.qkv.", 0, 2},
    {".att.mha.W_v.", ".attn.qkv.", 1, 2},
    {".att.mha.attn.Qlandmark_op.", ".attn.landmark."},
    {".att.mha.attn.Qnorm_act.0.", ".attn.landmark_norm."},
    {".att.mha.attn.conv.", ".attn.vconv."},
    {".att.mha.ff.", ".attn.proj."},
    {".att.norm1.", ".norm1."},
    {".att.norm2.", ".norm2."},
    {".att.ff1.", ".mlp.fc1."},
    {".att.ff2.", ".mlp.fc2."},
    {".attn.q.", ".attn.qkv.", 0, 2},
    {".attn.kv.", ".attn.qkv.", 1, 2},
};

/// Returns true for a tensor of SOFT's blocks, blockT.J.*.
bool in_soft_block(const std::string& name) {
  return name.starts_with("block") && name.size() > 5 && std::isdigit(static_cast<unsigned char>(name[5]));
}

/// Returns `name` with the first `theirs` replaced by `ours`; empty if `name` does not contain `theirs`.
std::string replaced(const std::string& name, std::string_view theirs, std::string_view ours) {
  const std::size_t at = name.find(theirs);
  return at == std::string::npos ? "" : std::string(name).replace(at, theirs.size(), ours);
}

template <class T>
void add(WeightConverter<T>& converter, const std::string& name) {
  constexpr const char *their_positions = "pos_embeder.", *tracked = ".num_batches_tracked";
  if (name.ends_with(tracked) || name == "mask_token") return;
  if (name == "register_tokens") return converter.add_rows("reg_token", 0, 1, name);
  if (name.starts_with(their_positions))
    return converter.add_rows(replaced(name, their_positions, "pos_embed."), 0, 1, name);
  if (name.starts_with("cls_attn_blocks."))
    if (!replaced(name, ".attn.qkv.", "").empty())
      return converter.cut(name, {replaced(name, ".attn.qkv.", ".attn.q."), replaced(name, ".attn.qkv.", ".attn.k."),
                                  replaced(name, ".attn.qkv.", ".attn.v.")});
  for (const Renaming& r : soft_names) {
    const std::string ours = in_soft_block(name) ? replaced(name, r.theirs, r.ours) : "";
    if (!ours.empty()) return converter.add_rows(ours, r.place, r.of, name);
  }
  converter.add_rows(name, 0, 1, name);
}

template <class T>
void convert_file(const SafetensorsFile& file, const std::string& out) {
  WeightConverter<T> converter(file);
  for (const std::string& name : file.names()) add(converter, name);
  if (file.contains("register_tokens")) converter.fold_class_position();
  converter.write(out);
}

constexpr const char* wrappers[] = {"module.",  "model.",   "_orig_mod.", "backbone.", "net.",
                                    "encoder.", "student.", "teacher.",   "visual.",   "state_dict."};

/// Returns true for the tensors of a classifier beside a wrapped backbone.
bool is_classifier(const std::string& name) {
  return name.starts_with("head.") || name.starts_with("head_dist.") || name.starts_with("fc.") ||
         name.starts_with("classifier.");
}

/// Returns the wrappers' prefixes with which at least one name begins.
std::vector<std::string> wrappers_of(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const char* wrapper : wrappers)
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(wrapper); }))
      found.emplace_back(wrapper);
  return found;
}

/// Returns true if there are prefixes and every name except a classifier's begins with one of them.
bool cover(const std::vector<std::string>& prefixes, const std::vector<std::string>& names) {
  return !prefixes.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_classifier(name) || std::any_of(prefixes.begin(), prefixes.end(),
                                              [&](const std::string& prefix) { return name.starts_with(prefix); });
  });
}

/// Returns the wrapper's prefix that all names except a classifier's share; empty if there is none.
std::string wrapper_of(const std::vector<std::string>& names) {
  const std::vector<std::string> found = wrappers_of(names);
  return found.size() == 1 && cover(found, names) ? found.front() : "";
}

/// Returns the texts before 'pos_embed' in the names of a file that has no tensor 'pos_embed' itself.
std::vector<std::string> unknown_prefixes(const SafetensorsFile& file) {
  constexpr std::string_view positions = "pos_embed";
  std::vector<std::string> prefixes;
  for (const std::string& name : file.names())
    if (name.ends_with(fmt::format(".{}", positions)))
      prefixes.push_back(name.substr(0, name.size() - positions.size()));
  return file.contains(std::string(positions)) ? std::vector<std::string>() : prefixes;
}

std::vector<std::string> classifier_names(const SafetensorsFile& file) {
  std::vector<std::string> names;
  std::copy_if(file.names().begin(), file.names().end(), std::back_inserter(names), is_classifier);
  return names;
}

}  // namespace

std::string wrapper_prefix(const SafetensorsFile& file) {
  std::string prefix;
  std::vector<std::string> names = file.names();
  for (std::string next; next = wrapper_of(names), !next.empty(); prefix += next)
    for (std::string& name : names)
      if (name.starts_with(next)) name.erase(0, next.size());
  return prefix;
}

std::string weights_file(const std::string& source) {
  const std::size_t colon = source.rfind(':');
  const bool chosen = colon != std::string::npos && colon > 0 && !std::filesystem::exists(source) &&
                      std::filesystem::exists(source.substr(0, colon));
  return chosen ? source.substr(0, colon) : source;
}

OpenedWeights open_weights(const std::string& source) {
  OpenedWeights opened{SafetensorsFile(weights_file(source)), ""};
  SafetensorsFile& file = opened.file;
  const auto take = [&](const std::string& prefix, const std::vector<std::string>& others) {
    file.take_prefix(prefix, others);
    opened.prefix += prefix;
  };
  if (file.path() != source) {
    std::string prefix = source.substr(file.path().size() + 1);
    if (!prefix.ends_with('.')) prefix += '.';
    const std::vector<std::string> names = file.names();
    require(std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); }),
            "{}: no tensor name begins with {}", file.path(), in_quotes(prefix));
    take(prefix, {});
  }
  for (std::string prefix; prefix = wrapper_of(file.names()), !prefix.empty();) take(prefix, classifier_names(file));
  std::vector<std::string> networks = wrappers_of(file.names());
  if (networks.size() < 2 || !cover(networks, file.names())) networks = unknown_prefixes(file);
  require(networks.empty(), "{}: contains {}, {}; {}:{} selects {}", file.path(),
          networks.size() > 1 ? "several networks" : "a network with a prefix", quoted_list(networks), file.path(),
          networks.empty() ? "" : opened.prefix + networks.front().substr(0, networks.front().size() - 1),
          networks.size() > 1 ? "one of them" : "it");
  return opened;
}

bool is_hugging_face_name(const std::string& name) {
  return name.find("embeddings.patch_embeddings.projection.") != name.npos;
}

std::string convert_weights(const std::string& in, const std::string& out) {
  require(!same_file(weights_file(in), out), "{}: output and input are the same file; give another output", out);
  const OpenedWeights opened = open_weights(in);
  const SafetensorsFile& file = opened.file;
  file.check();
  bool doubles = false;
  for (const std::string& name : file.names()) {
    require(!is_hugging_face_name(name),
            "{}: has names of Hugging Face's transformers; expected hf-vit, hf-deit or hf-dinov2 before IN", in);
    doubles |= file.info(name).dtype == DType::F64;
  }
  doubles ? convert_file<double>(file, out) : convert_file<float>(file, out);
  return opened.prefix;
}

}  // namespace heed
