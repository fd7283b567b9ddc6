// Labelled sets of images behind one interface, whatever the files look like.
#pragma once

#include "heed/data/images/image.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace heed {

/// The files of a data set.
enum class Split { train, test };

/// A part of a data set. Validation examples are taken from the files of `train` (loader.h), never from those of
/// `test`.
enum class Part { train, validation, test };

/// Returns the files that hold a part.
inline Split split_of(Part part) { return part == Part::test ? Split::test : Split::train; }

/// One split of a labelled image set. Reading is safe from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of images.
  virtual Index size() const = 0;

  /// Class of an image, an index into class_names().
  virtual int label(Index image) const = 0;

  /// Copies (or decodes) an image into `to`, reusing its memory. Throws Error if its file cannot be read.
  virtual void read(Index image, Image& to) const = 0;

  /// The size that all images share. Throws Error if they differ, naming the first two that do.
  virtual ImageSize image_size() const = 0;

  /// Returns true if read() only copies memory.
  virtual bool in_memory() const = 0;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  Dataset(std::string name, std::vector<std::string> class_names)
      : name_(std::move(name)), class_names_(std::move(class_names)) {}

 private:
  std::string name_;
  std::vector<std::string> class_names_;
};

/// Images of one size, held in memory.
class MemoryDataset : public Dataset {
 public:
  /// pixels [labels.size(), size.channels, size.height, size.width]. Throws Error if their number does not
  /// agree with `labels` and `size`, or a label is not an index into `class_names`.
  MemoryDataset(std::string name, std::vector<std::string> class_names, ImageSize size,
                std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

  Index size() const override { return static_cast<Index>(labels_.size()); }
  int label(Index image) const override { return labels_[static_cast<std::size_t>(image)]; }
  void read(Index image, Image& to) const override;
  ImageSize image_size() const override { return size_; }
  bool in_memory() const override { return true; }

 private:
  ImageSize size_;
  std::vector<std::uint8_t> pixels_, labels_;
};

/// Opens a data set by name:
/// - mnist, fashion-mnist: the four IDX files of MNIST, each plain or with .gz;
/// - cifar10, cifar100 (fine labels): the binary batches, in the directory or in the one their archive makes;
/// - folder: {train,test}/CLASS/*.{png,jpg,jpeg}; classes and images are numbered in the order of their names. Where
///   there is CLASS/ alone, every fifth image of a class is for testing, in a class of fewer than five the last.
/// `path` is the directory. If empty, the usual places are tried (not for folder): datasets/NAME, NAME beside the
/// fetch.sh that came with heed, $HEED_DATA/NAME, /usr/share/datasets/NAME. Throws Error that says what is wrong with
/// which file, or where it looked and how to get the data; `path_key` is what its reader sets `path` by.
std::unique_ptr<Dataset> open_dataset(const std::string& name, const std::string& path, Split split,
                                      const std::string& path_key = "data.path");

/// The directory that it opens. Throws Error if there is none.
std::filesystem::path dataset_directory(const std::string& name, const std::string& path, Split split,
                                        const std::string& path_key = "data.path");

/// Returns the class names of mnist or fashion-mnist.
std::vector<std::string> mnist_class_names(const std::string& name);

/// The names that it knows.
std::vector<std::string> dataset_names();

}  // namespace heed
