// A tree of image files: {train,test}/CLASS/FILE, or CLASS/FILE alone.
#include "files.h"
#include "readers.h"
#include "heed/base/parallel.h"

#include <algorithm>

namespace heed::data {

namespace {

/// A tree is decoded at opening if its pixels fit into so many bytes; a larger one is decoded as it is read.
constexpr Index memory_limit = Index{1} << 30;

/// Names of the visible entries for which `wanted` holds, sorted.
template <class Predicate>
std::vector<std::string> entries(const Directory& directory, Predicate wanted) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (name[0] != '.' && wanted(entry.path())) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> class_directories(const Directory& split) {
  std::vector<std::string> names = entries(split, [](const Directory& p) { return std::filesystem::is_directory(p); });
  require(!names.empty(), "{}: there are no class directories", split.string());
  return names;
}

/// Throws Error unless two splits have the same classes: labels are numbers, counted in the order of names.
void require_same_classes(const std::vector<std::string>& a, const Directory& where_a,
                          const std::vector<std::string>& b, const Directory& where_b) {
  for (const std::string& name : b)
    require(std::binary_search(a.begin(), a.end(), name), "{}: class '{}' of {} is missing", where_a.string(), name,
            where_b.string());
}

/// The images of a class that are read.
enum class Share {
  all,
  train,  ///< images that are not for testing
  test,   ///< every fifth in the order of their names, and the last of fewer than five
};

/// Removes the names that do not belong to the share. Throws Error where it cannot be divided.
void keep_share(const Directory& directory, Share share, std::vector<std::string>& names) {
  constexpr std::size_t every = 5;
  if (share == Share::all) return;
  require(names.size() > 1, "{}: this class has one image; expected two or more, to train with and to test with",
          directory.string());
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool for_test = i % every == every - 1 || (names.size() < every && i == names.size() - 1);
    if (for_test == (share == Share::test)) kept.push_back(names[i]);
  }
  names = std::move(kept);
}

class Folder : public Dataset {
 public:
  Folder(const Directory& split, std::vector<std::string> classes, Share share)
      : Dataset("folder", std::move(classes)) {
    for (std::size_t label = 0; label < class_names().size(); ++label) {
      const Directory directory = split / class_names()[label];
      std::vector<std::string> names =
          entries(directory, [](const Directory& p) { return has_image_name(p.string()); });
      require(!names.empty(), "{}: this class has no images (.png, .jpg, .jpeg)", directory.string());
      keep_share(directory, share, names);
      for (const std::string& name : names) paths_.push_back((directory / name).string());
      labels_.resize(paths_.size(), static_cast<int>(label));
    }
    sizes_.resize(paths_.size());
    for_each_image(threads(), size(), [&](Index i) { sizes_[position(i)] = image_file_size(paths_[position(i)]); });
    offsets_.resize(paths_.size() + 1);
    for (std::size_t i = 0; i < paths_.size(); ++i) offsets_[i + 1] = offsets_[i] + sizes_[i].elements();
    if (offsets_.back() <= memory_limit) decode_all();
  }

  Index size() const override { return static_cast<Index>(paths_.size()); }
  int label(Index image) const override { return labels_[position(image)]; }
  bool in_memory() const override { return !pixels_.empty(); }

  void read(Index image, Image& to) const override {
    HEED_ASSERT(image >= 0 && image < size());
    if (in_memory()) {
      to.size = sizes_[position(image)];
      to.pixels.assign(pixels_.data() + offsets_[position(image)], pixels_.data() + offsets_[position(image) + 1]);
    } else {
      to = load_image(paths_[position(image)]);
    }
  }

  ImageSize image_size() const override {
    const auto other = std::find_if(sizes_.begin(), sizes_.end(), [&](const ImageSize& s) { return s != sizes_[0]; });
    if (other != sizes_.end())
      fail("{} is {} (channels, height, width), {} is {}; set data.resize=true to use images of mixed size", paths_[0],
           to_string(sizes_[0]), paths_[static_cast<std::size_t>(other - sizes_.begin())], to_string(*other));
    return sizes_[0];
  }

 private:
  static std::size_t position(Index image) { return static_cast<std::size_t>(image); }

  void decode_all() {
    pixels_.resize(static_cast<std::size_t>(offsets_.back()));
    for_each_image(threads(), size(), [&](Index i) {
      const Image image = load_image(paths_[position(i)]);
      require(image.size == sizes_[position(i)], "{}: the file changed while it was read", paths_[position(i)]);
      std::copy(image.pixels.begin(), image.pixels.end(), pixels_.begin() + offsets_[position(i)]);
    });
  }

  std::vector<std::string> paths_;
  std::vector<int> labels_;
  std::vector<ImageSize> sizes_;
  std::vector<Index> offsets_;        // of image i in pixels_
  std::vector<std::uint8_t> pixels_;  // empty if images are decoded as they are read
};

}  // namespace

std::unique_ptr<Dataset> open_folder(const Directory& directory, Split split) {
  const Directory wanted = directory / (split == Split::train ? "train" : "test");
  const Directory other = directory / (split == Split::train ? "test" : "train");
  if (!std::filesystem::is_directory(wanted) && !std::filesystem::is_directory(other))
    return std::make_unique<Folder>(directory, class_directories(directory),
                                    split == Split::train ? Share::train : Share::test);
  require(std::filesystem::is_directory(wanted),
          "{}: there is no such directory; a folder data set has train/ and test/, or class directories alone",
          wanted.string());
  std::vector<std::string> classes = class_directories(wanted);
  if (std::filesystem::is_directory(other)) {
    const std::vector<std::string> others = class_directories(other);
    require_same_classes(classes, wanted, others, other);
    require_same_classes(others, other, classes, wanted);
  }
  return std::make_unique<Folder>(wanted, std::move(classes), Share::all);
}

}  // namespace heed::data
