// CIFAR's binary batches: records of one label byte (CIFAR-100: two, the coarse and the fine label) and the planes of a
// 32x32 RGB image.
#include "files.h"
#include "readers.h"
#include "heed/base/printable.h"

namespace heed::data {

namespace {

constexpr ImageSize size{3, 32, 32};

int class_count(const std::string& set) { return set == "cifar100" ? 100 : 10; }

std::vector<std::string> batches(int classes, Split split) {
  if (classes == 100) return {split == Split::train ? "train.bin" : "test.bin"};
  if (split == Split::test) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
}

/// Returns the directory of the batches: the given one, or the one that the published archive unpacks to.
Directory locate(int classes, const Directory& directory, Split split) {
  const Directory unpacked = directory / (classes == 100 ? "cifar-100-binary" : "cifar-10-batches-bin");
  return std::filesystem::exists(unpacked / batches(classes, split)[0]) ? unpacked : directory;
}

std::vector<std::string> class_names(int classes) {
  if (classes == 10) return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return {"apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
          "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
          "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
          "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
          "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
          "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
          "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
          "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
          "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
          "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
          "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
          "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
          "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
          "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
          "woman",      "worm"};
}

/// Throws Error if the directory holds CIFAR in a different format.
void require_no_other_archive(int classes, const Directory& directory) {
  const std::string number = classes == 100 ? "100" : "10",
                    fetch = "`datasets/fetch.sh cifar" + number + "` downloads it";
  for (const std::string& python :
       {std::string(classes == 100 ? "cifar-100-python" : "cifar-10-batches-py"),
        std::string(classes == 100 ? "train" : "data_batch_1"), "cifar-" + number + "-python.tar.gz"})
    require(!std::filesystem::exists(directory / python),
            "{}: CIFAR-{}'s Python version; expected the binary version, {}", (directory / python).string(), number,
            fetch);
  const Directory packed = directory / ("cifar-" + number + "-binary.tar.gz");
  require(!std::filesystem::exists(packed), "{}: the archive is not unpacked; run `tar -xzf {} -C {}`", packed.string(),
          shell_word(packed.string()), shell_word(directory.string()));
}

}  // namespace

bool has_cifar(const std::string& set, const Directory& directory, Split split) {
  const int classes = class_count(set);
  return std::filesystem::exists(locate(classes, directory, split) / batches(classes, split)[0]);
}

std::unique_ptr<Dataset> open_cifar(const Directory& directory, Split split, const DataConfig& data) {
  const int classes = class_count(data.name);
  const Directory place = locate(classes, directory, split);
  if (!has_cifar(data.name, directory, split)) require_no_other_archive(classes, directory);
  const Index label_bytes = classes == 100 ? 2 : 1, record = label_bytes + size.elements();
  std::vector<std::uint8_t> pixels, labels;
  std::vector<std::string> files;
  for (const std::string& batch : batches(classes, split)) {
    const std::string path = (place / batch).string();
    files.push_back(path);
    const std::vector<std::uint8_t> bytes = read_file(path, read_limit() - static_cast<Index>(pixels.size()));
    const Index length = static_cast<Index>(bytes.size()), count = length / record;
    require(count > 0 && length % record == 0,
            "{}: expected records of {} bytes, found {} bytes: {} records and {} bytes", path, record, length, count,
            length % record);
    for (Index i = 0; i < count; ++i) {
      const std::uint8_t* at = bytes.data() + i * record;
      const std::uint8_t label = at[label_bytes - 1];
      require(label < classes, "{}: label {} is {}; expected 0 to {}", path, i, label, classes - 1);
      labels.push_back(label);
      pixels.insert(pixels.end(), at + label_bytes, at + record);
    }
  }
  return std::make_unique<MemoryDataset>(data.name, class_names(classes), size, std::move(pixels), std::move(labels),
                                         std::move(files));
}

}  // namespace heed::data
