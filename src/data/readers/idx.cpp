// IDX, the format of MNIST: a big-endian magic number (two zero bytes, the element type, the number of axes), one
// 32-bit size per axis, then the elements.
#include "files.h"
#include "gzip.h"
#include "readers.h"

#include <array>

namespace heed::data {

namespace {

constexpr int unsigned_byte = 0x08;

struct Idx {
  std::vector<Index> sizes;
  std::vector<std::uint8_t> elements;
};

Idx read_idx(const Directory& path, int axes) {
  const std::string name = path.string();
  UnpackedFile file(name);
  const auto word = [&](const char* what) {
    std::array<std::uint8_t, 4> b{};
    require(file.read(b.data(), 4) == 4, "{}: the file ends before its {}", name, what);
    return static_cast<std::uint32_t>(b[0]) << 24 | static_cast<std::uint32_t>(b[1]) << 16 |
           static_cast<std::uint32_t>(b[2]) << 8 | b[3];
  };
  const std::uint32_t magic = word("magic number"), expected = unsigned_byte << 8 | static_cast<std::uint32_t>(axes);
  require(magic == expected, "{}: expected magic number {:#010x} (bytes, {} axes), found {:#010x}", name, expected,
          axes, magic);

  // A header that announces more than the file can hold is refused before anything is allocated for it.
  Idx idx;
  const Index capacity = file.capacity();
  Index count = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const Index size = word("header's end");
    require(size > 0, "{}: axis {} has size 0", name, axis);
    require(size <= capacity / count, "{}: axis {} has size {}, but the file holds at most {} bytes", name, axis, size,
            capacity);
    require(size <= read_limit() / count, "{}: axis {} has size {}, which makes more than {} bytes; {}", name, axis,
            size, read_limit(), raising_read_limit);
    count *= size;
    idx.sizes.push_back(size);
  }
  // The length of a .gz says little, so memory grows with the inflated data.
  constexpr Index step = 1 << 24;
  for (Index done = 0; done < count;) {
    const Index wanted = std::min(step, count - done);
    idx.elements.resize(static_cast<std::size_t>(done + wanted));
    const Index got = file.read(idx.elements.data() + done, wanted);
    require(got == wanted, "{}: expected {} bytes after the header, found {}", name, count, done + got);
    done += got;
  }
  std::uint8_t surplus;
  require(file.read(&surplus, 1) == 0, "{}: expected {} bytes after the header, found more", name, count);
  return idx;
}

/// The file or its .gz; an empty path if neither is there.
Directory plain_or_gz(const Directory& path) {
  if (std::filesystem::exists(path)) return path;
  const Directory packed = path.string() + ".gz";
  return std::filesystem::exists(packed) ? packed : Directory();
}

Directory find(const Directory& directory, Split split, const char* what) {
  return plain_or_gz(directory / (std::string(split == Split::train ? "train" : "t10k") + what));
}

constexpr const char *images_file = "-images-idx3-ubyte", *labels_file = "-labels-idx1-ubyte";

}  // namespace

bool has_idx(const Directory& directory, Split split) { return !find(directory, split, images_file).empty(); }

std::unique_ptr<Dataset> open_idx(const std::string& name, const Directory& directory, Split split) {
  const auto locate = [&](const char* what) {
    const Directory path = find(directory, split, what);
    require(!path.empty(), "{}: there is no {}{} here, plain or with .gz", directory.string(),
            split == Split::train ? "train" : "t10k", what);
    return path;
  };
  const Directory images_path = locate(images_file), labels_path = locate(labels_file);
  Idx images = read_idx(images_path, 3);
  Idx labels = read_idx(labels_path, 1);
  require(labels.sizes[0] == images.sizes[0], "{}: expected {} labels, as many as images in {}, found {}",
          labels_path.string(), images.sizes[0], images_path.filename().string(), labels.sizes[0]);
  const std::vector<std::string> classes = mnist_class_names(name);
  for (std::size_t i = 0; i < labels.elements.size(); ++i)
    require(labels.elements[i] < classes.size(), "{}: label {} is {}; expected 0 to {}", labels_path.string(), i,
            labels.elements[i], classes.size() - 1);
  return std::make_unique<MemoryDataset>(name, classes, ImageSize{1, images.sizes[1], images.sizes[2]},
                                         std::move(images.elements), std::move(labels.elements));
}

}  // namespace heed::data
