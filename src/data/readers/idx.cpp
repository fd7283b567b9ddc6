// IDX, the format of MNIST: a big-endian magic number (two zero bytes, the element type, the number of axes), one
// 32-bit size per axis, then the elements.
#include "src/data/images/bytes.h"
#include "files.h"
#include "gzip.h"
#include "readers.h"
#include "tree.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"

#include <array>
#include <map>
#include <optional>
#include <sstream>

namespace heed::data {

namespace {

/// Type of the elements and its size in bytes.
struct ElementType {
  std::uint32_t code;
  Index bytes;
};
constexpr ElementType unsigned_byte{0x08, 1}, big_endian_int{0x0c, 4};

struct Idx {
  std::vector<Index> sizes;
  std::vector<std::uint8_t> elements;
};

Idx read_idx(const Directory& path, int axes, ElementType type = unsigned_byte) {
  const std::string name = path.string();
  UnpackedFile file(name);
  const auto word = [&](const char* what) {
    std::array<std::uint8_t, 4> b{};
    require(file.read(b.data(), 4) == 4, "{}: the file ends before its {}", name, what);
    return static_cast<std::uint32_t>(number_at(b, 0, 4, false));
  };
  const std::uint32_t magic = word("magic number"), expected = type.code << 8 | static_cast<std::uint32_t>(axes);
  require(magic == expected, "{}: expected magic number {:#010x} ({}, {} axes), found {:#010x}", name, expected,
          type.bytes == 1 ? "bytes" : "integers", axes, magic);

  // Refuses a header that declares more than the file can hold, before any allocation.
  Idx idx;
  const Index capacity = file.capacity();
  Index count = type.bytes;
  for (int axis = 0; axis < axes; ++axis) {
    const Index size = word("header's end");
    require(size > 0, "{}: axis {} has size 0", name, axis);
    require(size <= capacity / count, "{}: axis {} has size {}, but the file has at most {} bytes", name, axis, size,
            capacity);
    require(size <= read_limit() / count, "{}: axis {} has size {}; the tensor exceeds {} bytes; {}", name, axis, size,
            read_limit(), raising_read_limit);
    count *= size;
    idx.sizes.push_back(size);
  }
  // The size of a .gz says little about its content, so memory grows with the inflated data.
  constexpr Index step = 1 << 24;
  for (Index done = 0; done < count;) {
    const Index wanted = std::min(step, count - done);
    idx.elements.resize(done + wanted);
    const Index got = file.read(idx.elements.data() + done, wanted);
    require(got == wanted, "{}: expected {} bytes after the header, found {}", name, count, done + got);
    done += got;
  }
  std::uint8_t surplus;
  require(file.read(&surplus, 1) == 0, "{}: expected {} bytes after the header, found more", name, count);
  return idx;
}

/// Names of a file of MNIST or a variant: {prefix}{split}-{what}-{type}, such as train-images-idx3-ubyte; some copies
/// have a dot before the type.
struct Names {
  Split split;
  const char *what, *type;
  std::vector<std::string> splits() const {
    return split == Split::train ? std::vector<std::string>{"train"} : std::vector<std::string>{"t10k", "test"};
  }

  /// Returns the prefix of a file's name, such as "emnist-letters-"; none if the name does not match.
  std::optional<std::string> prefix_in(std::string name) const {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    for (const std::string& of_split : splits())
      for (const char* const dot : {"-", "."}) {
        const std::string end = of_split + "-" + what + dot + type;
        if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
      }
    return std::nullopt;
  }
};

constexpr const char *images_type = "idx3-ubyte", *labels_type = "idx1-ubyte", *wide_labels_type = "idx2-int";

using FilesByPrefix = std::map<std::string, Directory>;

/// Returns one file with these names for each prefix, from the first directory that has any: the given one, or a
/// subdirectory of it in which torchvision or EMNIST's archive places them. Of several files with
/// one prefix, returns the first by name, of plain files if there are any, otherwise of .gz files.
FilesByPrefix find_all(const std::string& set, const Directory& directory, const Names& names) {
  FilesByPrefix found;
  const auto order = [](const Directory& file) { return std::pair(file.extension() == ".gz", file); };
  const Directory torchvision = directory / (set == "mnist" ? "MNIST" : "FashionMNIST") / "raw";
  for (const Directory& place : {directory, directory / "raw", directory / "gzip", torchvision}) {
    if (!found.empty() || !std::filesystem::is_directory(place)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(place)) {
      const std::string name = entry.path().filename().string();
      const std::optional<std::string> prefix = names.prefix_in(name);
      if (!prefix || is_hidden(name) || entry.is_directory()) continue;
      const auto other = found.find(*prefix);
      if (other == found.end() || order(entry.path()) < order(other->second)) found[*prefix] = entry.path();
    }
  }
  return found;
}

/// Location of a set's files: a directory and, if it holds several sets, the prefix of one set's file names.
struct Place {
  Directory directory;
  std::string prefix;  ///< empty: the prefix of the only set
  explicit Place(const Directory& path)
      : directory(std::filesystem::is_directory(path) ? path
                  : path.has_parent_path()            ? path.parent_path()
                                                      : "."),
        prefix(directory == path ? "" : path.filename().string() + "-") {}

  /// Returns `prefix` if it is not empty, if a file has no prefix, or if there are no files; otherwise the prefix of
  /// the only set among the files. Throws Error if there are several sets.
  std::string choose(const FilesByPrefix& found) const {
    if (!prefix.empty() || found.empty() || found.contains("")) return prefix;
    require(found.size() == 1, "{}: contains several sets; choose one, for example data.path={}", directory.string(),
            (directory / found.begin()->first.substr(0, found.begin()->first.size() - 1)).string());
    return found.begin()->first;
  }
};

/// Reads the classes of EMNIST from a file of lines "LABEL CODE [CODE]". The name of a class consists of the characters
/// with these codes. Labels must be consecutive.
std::map<int, std::string> mapping_of(const Directory& path) {
  const std::vector<std::uint8_t> bytes = read_file(path, read_limit());
  std::map<int, std::string> names;
  for (const std::string& line : split_lines(text_of(bytes, path.string()))) {
    std::istringstream fields(line);
    int label = -1;
    std::string name;
    fields >> label;
    for (int code = 0; fields >> code;) name += static_cast<char>(code);
    const bool next = label == (names.empty() ? label : names.rbegin()->first + 1);
    require(label >= 0 && next && !name.empty(), "{}: line {}; expected the next label and its character codes",
            path.string(), in_quotes(line));
    names[label] = name;
  }
  require(!names.empty(), "{}: is empty", path.string());
  return names;
}

/// Exchanges rows and columns, which are swapped in EMNIST's files.
void transpose(Idx& images) {
  const Index rows = images.sizes[1], columns = images.sizes[2];
  std::vector<std::uint8_t> image(rows * columns);
  for (Index i = 0; i < images.sizes[0]; ++i) {
    std::uint8_t* const at = images.elements.data() + i * rows * columns;
    std::copy_n(at, rows * columns, image.begin());
    for (Index y = 0; y < columns; ++y)
      for (Index x = 0; x < rows; ++x) at[y * rows + x] = image[x * columns + y];
  }
  std::swap(images.sizes[1], images.sizes[2]);
}

}  // namespace

bool has_idx(const std::string& set, const Directory& directory, Split split) {
  const Place place(directory);
  const FilesByPrefix found = find_all(set, place.directory, {split, "images", images_type});
  return place.prefix.empty() ? !found.empty() : found.contains(place.prefix);
}

std::unique_ptr<Dataset> open_idx(const Directory& directory, Split split, const DataConfig& data) {
  const Place place(directory);
  const Names image_names{split, "images", images_type};
  const std::string prefix = place.choose(find_all(data.name, place.directory, image_names));
  const auto find = [&](const Names& names) {
    const FilesByPrefix found = find_all(data.name, place.directory, names);
    return found.contains(prefix) ? found.at(prefix) : Directory();
  };
  const auto find_required = [&](const Names& names) {
    const Directory path = find(names);
    require(!path.empty(), "{}: {}{}-{}-{} is missing, plain or with .gz", place.directory.string(), prefix,
            names.splits()[0], names.what, names.type);
    return path;
  };
  const Directory images_path = find_required(image_names), wide = find({split, "labels", wide_labels_type});
  const Directory labels_path = wide.empty() ? find_required({split, "labels", labels_type}) : wide;
  Idx images = read_idx(images_path, 3);
  const Idx labels = wide.empty() ? read_idx(labels_path, 1) : read_idx(labels_path, 2, big_endian_int);
  require(labels.sizes[0] == images.sizes[0], "{}: expected {} labels, one per image of {}, found {}",
          labels_path.string(), images.sizes[0], images_path.filename().string(), labels.sizes[0]);
  std::vector<std::string> classes = mnist_class_names(data.name);
  int first = 0;  // lowest label
  if (prefix.starts_with("emnist-")) {
    transpose(images);
    const std::map<int, std::string> names = mapping_of(images_path.parent_path() / (prefix + "mapping.txt"));
    classes.clear();
    first = names.begin()->first;
    for (const auto& [label, name] : names) classes.push_back(name);
  }
  // A label is a byte or, in QMNIST, the first 32-bit integer of a row.
  const std::size_t row = labels.elements.size() / static_cast<std::size_t>(labels.sizes[0]);
  std::vector<std::uint8_t> positions;
  for (std::size_t at = 0; at < labels.elements.size(); at += row) {
    const auto label = static_cast<std::int32_t>(number_at(labels.elements, at, wide.empty() ? 1 : 4, false));
    require(label >= first && label < first + static_cast<int>(classes.size()), "{}: label {} is {}; expected {} to {}",
            labels_path.string(), positions.size(), label, first, first + static_cast<int>(classes.size()) - 1);
    positions.push_back(static_cast<std::uint8_t>(label - first));
  }
  return std::make_unique<MemoryDataset>(data.name, classes, ImageSize{1, images.sizes[1], images.sizes[2]},
                                         std::move(images.elements), std::move(positions),
                                         std::vector<std::string>{images_path.string(), labels_path.string()});
}

}  // namespace heed::data
