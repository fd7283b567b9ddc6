// Labelled image sets with one interface for all file formats.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Splits of a data set's files. Most sets have no validation files.
enum class Split { train, validation, test };

/// A part of a data set's examples. If the set has no validation files, validation examples are drawn from its `train`
/// files (loader.h), never from `test`.
enum class Part { train, validation, test };

/// Returns the split whose files hold a part in a data set without validation files.
inline Split split_of(Part part) { return part == Part::test ? Split::test : Split::train; }

/// One split of a labelled image set. Reading is safe from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Returns the number of images.
  virtual Index size() const = 0;

  /// Returns the class of an image, an index into class_names().
  virtual int label(Index image) const = 0;

  /// Copies or decodes an image into `to`, reusing its memory. Throws Error if its file cannot be read.
  virtual void read(Index image, Image& to) const = 0;

  /// Returns the size that all images share. If sizes differ, throws Error naming the first two images that differ.
  virtual ImageSize image_size() const = 0;

  /// Returns true if read() only copies memory.
  virtual bool in_memory() const = 0;

  /// Returns the paths of the files that the set was read from. If has_file_per_image(), file i is image i.
  const std::vector<std::string>& files() const { return files_; }
  virtual bool has_file_per_image() const { return false; }

  const std::string& name() const { return name_; }
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  Dataset(std::string name, std::vector<std::string> class_names, std::vector<std::string> files)
      : name_(std::move(name)), class_names_(std::move(class_names)), files_(std::move(files)) {}

  std::string name_;
  std::vector<std::string> class_names_, files_;
};

/// Description of a task's data, saved in the record of a run.
struct DataFacts {
  std::vector<std::string> classes{};     ///< names, in label order
  std::optional<int> background{};        ///< common_background() of the test images (images/background.h)
  std::vector<std::string> files{};       ///< paths of the files that were read
  std::vector<std::string> validation{};  ///< files of the validation examples, if each example is a file
  std::vector<std::string> test{};        ///< files of the test examples
  bool sets_aside = true;                 ///< validation examples are set aside from the training examples
};

/// Images of one size, held in memory.
class MemoryDataset : public Dataset {
 public:
  /// Takes pixels [labels.size(), size.channels, size.height, size.width]. Throws Error if the number of pixels does
  /// not match `labels` and `size`, or if a label is not an index into `class_names`.
  MemoryDataset(std::string name, std::vector<std::string> class_names, ImageSize size,
                std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels,
                std::vector<std::string> files = {});

  Index size() const override { return static_cast<Index>(labels_.size()); }
  int label(Index image) const override { return labels_[static_cast<std::size_t>(image)]; }
  void read(Index image, Image& to) const override;
  ImageSize image_size() const override { return size_; }
  bool in_memory() const override { return true; }

 private:
  ImageSize size_;
  std::vector<std::uint8_t> pixels_, labels_;
};

/// Opens the data set `data.name`:
/// - mnist, fashion-mnist: IDX files named as in MNIST or one of its variants, each plain or gzipped (.gz);
/// - cifar10, cifar100 (fine labels): binary batches, in the directory or in a subdirectory named as in their archive;
/// - folder: {train,val,test}/CLASS/ or CLASS/ alone, with images in the formats of image.h; classes and images are
///   sorted by name. Without test/, the test images are every fifth image of a class, or the last one of a class with
///   fewer than five.
/// `data.path` is the directory or, if it holds several IDX sets, the directory and the prefix of one set's file names.
/// If `data.path` is empty, which is an error for folder, these directories are tried: datasets/NAME, NAME beside the
/// fetch.sh that came with heed, $HEED_DATA/NAME, /usr/share/datasets/NAME. If `data.recorded.classes` is set, labels
/// are indices into it. Throws Error naming the bad file, or the places searched and how to get the data; the message
/// names `path_key`, the option that sets the path, unless it is empty.
std::unique_ptr<Dataset> open_dataset(const DataConfig& data, Split split, const std::string& path_key = "data.path");
std::unique_ptr<Dataset> open_dataset(const std::string& name, const std::string& path, Split split,
                                      const std::string& path_key = "data.path");

/// Returns true if the data set is a folder with a directory for this split.
bool has_directory(const DataConfig& data, Split split);

/// Returns the image files below a directory, sorted. Warns about other files, which are skipped.
std::vector<std::string> image_files(const std::string& directory);

/// Returns the directory that open_dataset() reads. Throws Error if there is none.
std::filesystem::path dataset_directory(const std::string& name, const std::string& path, Split split,
                                        const std::string& path_key = "data.path");

/// Returns the class names of "mnist" or "fashion-mnist".
std::vector<std::string> mnist_class_names(const std::string& name);

/// Returns the names that open_dataset() accepts.
std::vector<std::string> dataset_names();

}  // namespace heed
