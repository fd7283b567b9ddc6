#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/config/installed.h"
#include "heed/data/dataset.h"

#include "src/data/readers/readers.h"
#include "src/data/readers/tree.h"

#include <algorithm>
#include <cstdlib>

namespace heed {

std::vector<std::string> mnist_class_names(const std::string& name) {
  if (name == "fashion-mnist")
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

MemoryDataset::MemoryDataset(std::string name, std::vector<std::string> class_names, ImageSize size,
                             std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels,
                             std::vector<std::string> files)
    : Dataset(std::move(name), std::move(class_names), std::move(files)),
      size_(size),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  const std::size_t expected = labels_.size() * static_cast<std::size_t>(size_.elements());
  require(pixels_.size() == expected, "{}: {} labels and images of {} need {} bytes, found {}", this->name(),
          labels_.size(), to_string(size_), expected, pixels_.size());
  for (const std::uint8_t label : labels_)
    require(label < this->class_names().size(), "{}: label {}; expected less than {}, the number of classes",
            this->name(), label, this->class_names().size());
}

void MemoryDataset::read(Index image, Image& to) const {
  HEED_ASSERT(image >= 0 && image < size());
  const std::uint8_t* from = pixels_.data() + image * size_.elements();
  to.size = size_;
  to.pixels.assign(from, from + size_.elements());
}

namespace {

/// A kind of data set that open_dataset() can open.
struct Format {
  std::string name;
  bool (*has)(const std::string& name, const data::Directory&, Split);
  std::unique_ptr<Dataset> (*open)(const data::Directory&, Split, const DataConfig&);
};

const std::vector<Format>& formats() {
  static const std::vector<Format> list = {{"mnist", data::has_idx, data::open_idx},
                                           {"fashion-mnist", data::has_idx, data::open_idx},
                                           {"cifar10", data::has_cifar, data::open_cifar},
                                           {"cifar100", data::has_cifar, data::open_cifar},
                                           {"folder", nullptr, data::open_folder}};
  return list;
}

const Format& format_called(const std::string& name) {
  const auto format = std::find_if(formats().begin(), formats().end(), [&](const Format& f) { return f.name == name; });
  require(format != formats().end(), "unknown image data set {}{}", in_quotes(name), suggestion(name, dataset_names()));
  return *format;
}

/// Returns the first default directory that has the data. If none has it, throws Error with instructions to get it.
data::Directory find_usual(const Format& format, Split split, const std::string& path_key) {
  // fetch.sh downloads to its own directory unless another is given. If heed is installed, writing there requires root,
  // so the suggested command gives another directory.
  const data::Directory here("datasets"), script = find_installed(here / "fetch.sh");
  const bool installed = script.parent_path() != here;
  std::vector<data::Directory> places = {here / format.name};
  if (installed) places.push_back(script.parent_path() / format.name);
  if (const char* own = std::getenv("HEED_DATA"); own != nullptr && *own != 0)
    places.push_back(data::Directory(own) / format.name);
  places.push_back(data::Directory("/usr/share/datasets") / format.name);
  std::string looked;
  for (const data::Directory& place : places) {
    if (format.has(format.name, place, split)) return place;
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  std::error_code error;
  const std::string download = !std::filesystem::exists(script, error)
                                   ? ""
                                   : fmt::format("run `{} {}{}` to download it, or ", shell_word(script.string()),
                                                 format.name, installed ? " datasets/" + format.name : "");
  const std::string option = path_key == "--path" ? "--path DIRECTORY" : "--set " + path_key + "=DIRECTORY";
  fail("{}: not found in {}; {}{}", format.name, looked, download,
       path_key.empty() ? "set HEED_DATA to the directory that contains it" : "name its directory: " + option);
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return names;
}

std::unique_ptr<Dataset> open_dataset(const DataConfig& data, Split split, const std::string& path_key) {
  const Format& format = format_called(data.name);
  try {
    const std::filesystem::path directory = dataset_directory(data.name, data.path, split, path_key);
    std::unique_ptr<Dataset> set = format.open(directory, split, data);
    const std::vector<std::string>& known = data.recorded.classes;
    if (!known.empty() && set->class_names() != known) {
      data::labels_among(known, set->class_names(), directory);
      fail("{}: has {} of the model's {} classes; expected all, in the same order", directory.string(),
           set->class_names().size(), known.size());
    }
    return set;
  } catch (const std::filesystem::filesystem_error& error) {
    fail("{}: {}", error.path1().string(), error.code().message());
  }
}

std::unique_ptr<Dataset> open_dataset(const std::string& name, const std::string& path, Split split,
                                      const std::string& path_key) {
  DataConfig data;
  data.name = name;
  data.path = path;
  return open_dataset(data, split, path_key);
}

bool has_directory(const DataConfig& data, Split split) {
  std::error_code error;
  return data.name == "folder" && std::filesystem::is_directory(data.path, error) && data::has_part(data.path, split);
}

std::vector<std::string> image_files(const std::string& directory) {
  try {
    std::vector<std::string> files = data::files_below(directory, data::image_kind());
    for (std::string& file : files) file = (std::filesystem::path(directory) / file).string();
    return files;
  } catch (const std::filesystem::filesystem_error& error) {
    fail("{}: cannot be read: {}", error.path1().string(), error.code().message());
  }
}

std::filesystem::path dataset_directory(const std::string& name, const std::string& path, Split split,
                                        const std::string& path_key) {
  const Format& format = format_called(name);
  require(!path.empty() || format.has != nullptr, "{} needs {}, the directory of train/ and test/, or of the classes",
          name, path_key);
  const data::Directory directory = path.empty() ? find_usual(format, split, path_key) : data::Directory(path);
  std::error_code error;
  // A directory may hold several sets of MNIST's family; the path then ends with the file-name prefix of one set.
  const bool is_prefix = name.ends_with("mnist") && data::has_idx(name, directory, split);
  require(is_prefix || std::filesystem::is_directory(directory, error), "{}: {} ({}{})", directory.string(),
          std::filesystem::exists(directory, error) ? "a file; expected a directory" : "the directory does not exist",
          path_key.empty() ? "the recorded one of " : path_key + " of ", name);
  return directory;
}

}  // namespace heed
