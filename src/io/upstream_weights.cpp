#include "heed/io/upstream_weights.h"

#include "heed/io/safetensors.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

namespace heed {

namespace {

/// A part of a name in SOFT's code and in heed, and which rows it has of a tensor that two are joined to.
struct Renaming {
  const char *theirs, *ours;
  int place = 0, of = 1;
};

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

/// Returns true for a tensor of a block of SOFT's, blockT.J.*.
bool in_soft_block(const std::string& name) {
  return name.starts_with("block") && name.size() > 5 && std::isdigit(static_cast<unsigned char>(name[5]));
}

/// `name` with the first `theirs` in it replaced; empty if there is none.
std::string replaced(const std::string& name, std::string_view theirs, std::string_view ours) {
  const std::size_t at = name.find(theirs);
  return at == std::string::npos ? "" : std::string(name).replace(at, theirs.size(), ours);
}

/// Rows of a tensor on their way to a tensor of heed's: its rows of place `place` of `of`.
template <class T>
struct Rows {
  std::string name, theirs;
  int place, of;
  Tensor<T> values;
};

template <class T>
class Converter {
 public:
  explicit Converter(const SafetensorsFile& file) : file_(file), wrapper_(wrapper_prefix(file)) {}

  void add(const std::string& full_name) {
    constexpr const char *their_positions = "pos_embeder.", *tracked = ".num_batches_tracked";
    const std::string name = full_name.substr(wrapper_.size());
    if (name.ends_with(tracked)) return;
    if (name.starts_with(their_positions)) return add_rows(replaced(name, their_positions, "pos_embed."), 0, 1, name);
    if (name.starts_with("cls_attn_blocks."))
      if (!replaced(name, ".attn.qkv.", "").empty()) return cut(name);
    for (const Renaming& r : soft_names) {
      const std::string ours = in_soft_block(name) ? replaced(name, r.theirs, r.ours) : "";
      if (!ours.empty()) return add_rows(ours, r.place, r.of, name);
    }
    add_rows(name, 0, 1, name);
  }

  void write(const std::string& path) {
    SafetensorsWriter writer;
    for (const Rows<T>& rows : parts_)
      if (rows.place == 0) writer.add(rows.name, std::as_const(joined(rows)).view());
    for (const Rows<T>& rows : parts_)
      require(rows.place == 0 || find(rows.name, 0),
              "{}: '{}' has the later rows of '{}'; the tensor with the first ones is missing", file_.path(),
              rows.theirs, rows.name);
    writer.write(path);
  }

 private:
  void add_rows(const std::string& ours, int place, int of, const std::string& theirs) {
    push({ours, theirs, place, of, file_.read<T>(wrapper_ + theirs)});
  }

  void push(Rows<T> rows) {
    const Rows<T>* const same = find(rows.name, rows.place);
    require(!same, "{}: '{}' and '{}' are both '{}' here", file_.path(), same ? same->theirs : "", rows.theirs,
            rows.name);
    const Rows<T>& kept = parts_.emplace_back(std::move(rows));
    known_[{kept.name, kept.place}] = &kept;
  }

  /// The tensor's rows are thirds of q, k and v.
  void cut(const std::string& name) {
    const Tensor<T> all = file_.read<T>(wrapper_ + name);
    const Index rows = all.shape().rank() > 0 ? all.shape()[0] : 0;
    require(rows > 0 && rows % 3 == 0, "{}: tensor '{}' has shape {}; its rows are not those of q, k and v",
            file_.path(), name, all.shape());
    const char* const ours[] = {".attn.q.", ".attn.k.", ".attn.v."};
    for (Index i = 0; i < 3; ++i) {
      const View<const T> third = all.view().part(i * rows / 3, rows / 3);
      Tensor<T> values(third.shape());
      std::copy(third.begin(), third.end(), values.begin());
      push({replaced(name, ".attn.qkv.", ours[i]), name, 0, 1, std::move(values)});
    }
  }

  const Rows<T>* find(const std::string& name, int place) const {
    const auto found = known_.find({name, place});
    return found != known_.end() ? found->second : nullptr;
  }

  /// A tensor of heed's, which begins with these rows.
  const Tensor<T>& joined(const Rows<T>& first) {
    if (first.of == 1) return first.values;
    const Rows<T>* const second = find(first.name, 1);
    require(second != nullptr, "{}: '{}' has the first rows of '{}'; the tensor with the later ones is missing",
            file_.path(), first.theirs, first.name);
    const Shape &a = first.values.shape(), &b = second->values.shape();
    require(a.rank() == b.rank() && a.rank() <= 2 && a.rank() >= 1 && (a.rank() == 1 || a[1] == b[1]),
            "{}: '{}' is to be joined of shapes {} and {}; they do not fit", file_.path(), first.name, a, b);
    const Index rows = a[0] + b[0];
    Tensor<T>& all = joined_.emplace_back(a.rank() == 1 ? Shape{rows} : Shape{rows, a[1]});
    std::copy(second->values.begin(), second->values.end(),
              std::copy(first.values.begin(), first.values.end(), all.begin()));
    return all;
  }

  const SafetensorsFile& file_;
  std::string wrapper_;
  std::deque<Rows<T>> parts_;
  std::map<std::pair<std::string, int>, const Rows<T>*> known_;
  std::deque<Tensor<T>> joined_;
};

template <class T>
void convert_file(const SafetensorsFile& file, const std::string& out) {
  Converter<T> converter(file);
  for (const std::string& name : file.names()) converter.add(name);
  converter.write(out);
}

}  // namespace

std::string wrapper_prefix(const SafetensorsFile& file) {
  const std::vector<std::string> names = file.names();
  std::string prefix;
  const auto all_begin_with = [&](const std::string& text) {
    const auto begins = [&](const std::string& name) { return name.starts_with(text); };
    return !names.empty() && std::all_of(names.begin(), names.end(), begins);
  };
  for (bool longer = true; longer;) {
    longer = false;
    for (const char* wrapper : {"module.", "model.", "_orig_mod.", "backbone.", "net.", "encoder.", "state_dict."})
      if (all_begin_with(prefix + wrapper)) prefix += wrapper, longer = true;
  }
  return prefix;
}

void convert_weights(const std::string& in, const std::string& out) {
  std::error_code none;
  require(!std::filesystem::equivalent(in, out, none), "{}: is what is read, and cannot be what is written", out);
  const SafetensorsFile file(in);
  file.check();
  bool doubles = false;
  for (const std::string& name : file.names()) doubles |= file.info(name).dtype == DType::F64;
  doubles ? convert_file<double>(file, out) : convert_file<float>(file, out);
}

}  // namespace heed
