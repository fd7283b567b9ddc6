#include "heed/io/safetensors.h"

#include "heed/base/suggest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace heed {
namespace {

// Limit of the format's reference implementation; a larger length indicates another kind of file.
constexpr std::uint64_t longest_header = 100'000'000;

// Exceeds the number of tensors in a run of the deepest model; a header of this size is read in one or two seconds.
constexpr std::size_t most_tensors = 250'000;

struct DTypeRow {
  DType dtype;
  const char* name;
  std::size_t size;
};
constexpr DTypeRow dtypes[] = {{DType::BOOL, "BOOL", 1}, {DType::U8, "U8", 1},   {DType::I8, "I8", 1},
                               {DType::I16, "I16", 2},   {DType::U16, "U16", 2}, {DType::I32, "I32", 4},
                               {DType::U32, "U32", 4},   {DType::I64, "I64", 8}, {DType::F16, "F16", 2},
                               {DType::BF16, "BF16", 2}, {DType::F32, "F32", 4}, {DType::F64, "F64", 8}};

const DTypeRow& row(DType dtype) {
  return *std::find_if(std::begin(dtypes), std::end(dtypes), [&](const DTypeRow& r) { return r.dtype == dtype; });
}

// ---- Header ----

// Parses the header's JSON and passes on each member separately, without a tree of all members. Throws Error for
// repeated keys within a member (the receiver checks the header's own keys), for members nested deeper than a tensor's,
// and for lists or objects of more than most_items items. Here and below, error texts are formatted only when needed:
// there may be most_tensors tensors.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// Receives a member; returns false if its name is repeated.
  using Receive = std::function<bool(const std::string& name, const nlohmann::json& value)>;

  HeaderReader(const std::string& path, Receive receive) : path_(path), receive_(std::move(receive)) {}

  void read(const std::string& text) {
    // The parser would treat a NUL as the end.
    require(text.find('\0') == std::string::npos, "{}: the header has a NUL at byte {}; expected JSON and spaces",
            path_, text.find('\0'));
    require(!text.empty() && text[0] == '{', "{}: the header does not begin with '{{'; this is not a safetensors file",
            path_);
    nlohmann::json::sax_parse(text, this);
  }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(std::int64_t value) override { return scalar(value); }
  bool number_unsigned(std::uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& value) override { return scalar(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON has no binary values

  bool start_object(std::size_t) override {
    return std::exchange(inside_, true) ? start(nlohmann::json::object()) : true;
  }
  bool start_array(std::size_t) override { return start(nlohmann::json::array()); }
  bool end_object() override { return open_.empty() ? true : end(); }
  bool end_array() override { return end(); }

  bool key(std::string& key) override {
    if (open_.empty()) {
      name_ = key;
      return true;
    }
    if (!open_.back()->emplace(key, nullptr).second) fail_twice(key);
    if (open_.back()->size() > most_items)
      fail("{}: the header's member {} has more than {} keys", path_, in_quotes(name_), most_items);
    key_ = key;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    if (const auto* fault = dynamic_cast<const nlohmann::json::parse_error*>(&error))
      fail("{}: the header is not valid JSON at byte {}", path_, fault->byte);
    fail("{}: the header has a number out of range", path_);
  }

 private:
  static constexpr std::size_t most_items = 10'000;

  [[noreturn]] void fail_twice(const std::string& key) const {
    fail("{}: the header has the key {} twice", path_, in_quotes(key));
  }

  bool receive() {
    if (!receive_(name_, member_)) fail_twice(name_);
    return true;
  }

  nlohmann::json* put(nlohmann::json value) {
    require(open_.size() <= 2, "{}: the header has values nested deeper than a tensor's shape", path_);
    if (open_.empty()) return &(member_ = std::move(value));
    nlohmann::json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    if (parent.size() >= most_items)
      fail("{}: the header's member {} has a list of more than {} items", path_, in_quotes(name_), most_items);
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool scalar(nlohmann::json value) {
    put(std::move(value));
    return open_.empty() ? receive() : true;
  }

  bool start(nlohmann::json value) {
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool end() {
    open_.pop_back();
    return open_.empty() ? receive() : true;
  }

  const std::string& path_;
  Receive receive_;
  bool inside_ = false;     // within the header's own object
  std::string name_, key_;  // the member's name, and the latest key within it
  nlohmann::json member_;
  std::vector<nlohmann::json*> open_;  // objects and lists within the member, innermost last
};

// Prefix of errors about one tensor: its file and name.
struct Where {
  const std::string& path;
  const std::string& name;
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) const {
    heed::fail("{}: tensor {}: {}", path, in_quotes(name), fmt::format(message, std::forward<Args>(args)...));
  }
  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> message, Args&&... args) const {
    if (!condition) fail(message, std::forward<Args>(args)...);
  }
};

DType parse_dtype(const Where& where, const nlohmann::json& value) {
  where.require(value.is_string(), "dtype must be a string, found {}", value.type_name());
  const auto& name = value.get_ref<const std::string&>();
  const auto found =
      std::find_if(std::begin(dtypes), std::end(dtypes), [&](const DTypeRow& r) { return r.name == name; });
  if (found == std::end(dtypes))
    where.fail(
        "dtype {} is not supported; expected F32, F64, F16, BF16, or an integer type of at most 64 bits except U64",
        in_quotes(name));
  return found->dtype;
}

// Parses a shape and sets `bytes` to the total size of its elements. Even if one size is 0, the product of the others
// must not overflow, because Shape multiplies them in order.
Shape parse_shape(const Where& where, const nlohmann::json& value, std::size_t number, std::uint64_t& bytes) {
  where.require(value.is_array(), "shape must be a list, found {}", value.type_name());
  where.require(value.size() <= std::size_t(Shape::max_rank), "shape has {} axes; at most {} are supported",
                value.size(), Shape::max_rank);
  Index sizes[Shape::max_rank];
  std::uint64_t room = std::numeric_limits<Index>::max() / number, elements = 1;
  int rank = 0;
  for (const nlohmann::json& item : value) {
    if (!item.is_number_unsigned())
      where.fail("size {} of axis {} is not a non-negative integer", in_quotes(item.dump()), rank);
    const auto size = item.get<std::uint64_t>();
    if (size > room) where.fail("shape {} has more elements than any file can hold", value.dump());
    if (size > 0) room /= size;
    elements *= size;
    sizes[rank++] = static_cast<Index>(size);
  }
  bytes = elements * number;
  return {sizes, rank};
}

struct Extent {
  std::uint64_t begin, end;
  std::string name;
};

Extent parse_extent(const Where& where, const nlohmann::json& value) {
  const bool pair =
      value.is_array() && value.size() == 2 && value[0].is_number_unsigned() && value[1].is_number_unsigned();
  where.require(pair, "data_offsets must be two non-negative integers");
  return {value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>(), where.name};
}

// Parses one tensor of the header. The offset in TensorInfo is relative to the beginning of the file, those in Extent
// to the beginning of the data.
std::pair<TensorInfo, Extent> parse_tensor(const Where& where, const nlohmann::json& value, std::uint64_t data,
                                           std::uint64_t length) {
  where.require(value.is_object(), "expected an object, found {}", value.type_name());
  for (const auto& [key, unused] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets") where.fail("unknown key {}", in_quotes(key));
  for (const char* key : {"dtype", "shape", "data_offsets"}) where.require(value.contains(key), "'{}' is missing", key);

  TensorInfo info{parse_dtype(where, value["dtype"]), {}, 0};
  std::uint64_t bytes = 0;
  info.shape = parse_shape(where, value["shape"], size_of(info.dtype), bytes);
  const Extent extent = parse_extent(where, value["data_offsets"]);
  where.require(extent.begin <= extent.end && extent.end <= length,
                "data_offsets [{}, {}] exceed the {} bytes of data in the file", extent.begin, extent.end, length);
  if (extent.end - extent.begin != bytes)
    where.fail("data_offsets [{}, {}] span {} bytes; {} {} takes {}", extent.begin, extent.end,
               extent.end - extent.begin, to_string(info.dtype), to_string(info.shape), bytes);
  info.offset = data + extent.begin;
  return {info, extent};
}

std::map<std::string, std::string> parse_metadata(const std::string& path, const nlohmann::json& value) {
  require(value.is_object(), "{}: __metadata__ must be an object, found {}", path, value.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    require(text.is_string(), "{}: __metadata__ {} must be a string, found {}", path, in_quotes(key), text.type_name());
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

}  // namespace

const char* to_string(DType dtype) { return row(dtype).name; }
std::size_t size_of(DType dtype) { return row(dtype).size; }

namespace {

/// Throws Error if `bytes`, the beginning of the file, identify another format.
void require_no_other_format(const std::string& path, std::string_view bytes) {
  struct Format {
    std::string_view start;
    const char *name, *remedy;
  };
  constexpr const char* script = "convert it with experiments/scripts/pth-to-safetensors IN OUT";
  constexpr const char* save = "in Python, save a dictionary of tensors with safetensors.torch.save_file";
  constexpr const char* pickle = "a pickle, as written by old versions of torch.save";
  constexpr const char* page = "a web page";
  constexpr const char* download = "download the file itself";
  if (bytes.starts_with("PK\3\4") && bytes.find(".npy") != bytes.npos)
    fail("{}: is a NumPy archive, not a safetensors file; {}", path,
         "in Python, safetensors.numpy.save_file(dict(numpy.load(IN)), OUT) converts it");
  for (const Format& format : std::initializer_list<Format>{
           {"PK\3\4", "a zip archive, as written by torch.save", script},
           {"\x80\2", pickle, script},
           {"\x80\3", pickle, script},
           {"\x80\4", pickle, script},
           {"\x80\5", pickle, script},
           {"\x89HDF", "an HDF5 file, as written by Keras", save},
           {"GGUF", "a GGUF file", save},
           {"\x93NUMPY", "a NumPy array", save},
           {"\x1f\x8b", "a gzip file", "decompress it with gunzip"},
           {"{", "a JSON file, such as an index of several files", "in Python, save all tensors in one file"},
           {"version ", "a Git LFS pointer", "git lfs pull replaces it by the weights"},
           {"<!DOCTYP", page, download},
           {"<!doctyp", page, download},
           {"<html", page, download}})
    if (bytes.starts_with(format.start))
      fail("{}: is {}, not a safetensors file; {}", path, format.name, format.remedy);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  std::uint64_t length = 0;
  require(file_.size() >= sizeof length, "{}: the file has {} bytes; a safetensors file has at least 8", path,
          file_.size());
  file_.read(0, &length, sizeof length);
  std::string start(std::min<std::uint64_t>(file_.size(), 256), '\0');
  file_.read(0, start.data(), start.size());
  // The length of a header may have the first bytes of another format, such as 896, or 0x380, those of a pickle.
  if (start.size() == sizeof length || start[sizeof length] != '{') require_no_other_format(path, start);
  require(length <= longest_header,
          "{}: the header claims {} bytes; at most {} are allowed, so this is not a safetensors file", path, length,
          longest_header);
  require(length <= file_.size() - sizeof length,
          "{}: the header claims {} bytes, but only {} follow; the file is truncated", path, length,
          file_.size() - sizeof length);
  std::string text(length, '\0');
  file_.read(sizeof length, text.data(), text.size());
  const std::uint64_t data = sizeof length + length, data_length = file_.size() - data;

  std::vector<Extent> extents;
  bool has_metadata = false;
  HeaderReader(path, [&](const std::string& name, const nlohmann::json& value) {
    if (name == "__metadata__") {
      metadata_ = parse_metadata(path, value);
      return !std::exchange(has_metadata, true);
    }
    const auto [info, extent] = parse_tensor({path, name}, value, data, data_length);
    extents.push_back(extent);
    require(extents.size() <= most_tensors, "{}: the header has more than {} tensors", path, most_tensors);
    return tensors_.emplace(name, info).second;
  }).read(text);

  // An empty tensor has the same offset as its successor; names make the order unique.
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t covered = 0;
  for (const Extent& extent : extents) {
    Where{path, extent.name}.require(extent.begin == covered,
                                     "begins at byte {} of the data; expected {}, the end of the preceding tensor",
                                     extent.begin, covered);
    covered = extent.end;
    names_.push_back(extent.name);
  }
  require(covered == data_length, "{}: the tensors end at byte {} of the data; the file has {} more bytes", path,
          covered, data_length - covered);
}

}  // namespace heed
