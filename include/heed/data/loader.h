// Batches of normalised, augmented images, prefetched in the background.
#pragma once

#include "heed/config/data.h"
#include "heed/config/dino.h"
#include "heed/data/dataset.h"
#include "heed/base/random.h"
#include "heed/base/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Positions, in a training set, of the images for training and of those for validation, each ascending.
struct Subsets {
  std::vector<Index> train, validation;
};

/// Divides `size` training images: config.validation of them, drawn at random by `seed`, are for validation, and the
/// first config.limit of the others (0: all) are for training. Throws Error if none remains for training.
Subsets split_validation(Index size, const DataConfig& config, std::uint64_t seed);

/// Returns the examples of a part, ascending: all `size` for the test part, otherwise those of split_validation().
std::vector<Index> examples_of(Index size, Part part, const DataConfig& config, std::uint64_t seed);

/// Returns the examples of a part, ascending, for data with one file per example. Uses the validation files that a run
/// recorded, named relative to config.path, even if they were renamed; draws new ones if none are recorded, or if the
/// number drawn by the run differs from config.validation. If the data are not the run's, no file is for validation.
std::vector<Index> examples_of_files(const std::vector<std::string>& files, Part part, const DataConfig& config,
                                     std::uint64_t seed);

/// Throws Error if `count` training examples, such as "images", of the data set `name` do not fill one batch.
void require_one_batch(const std::string& name, Index count, const char* examples, Index batch);

/// Splits of a data set, each opened at its first use, and their division into parts.
class ImageSets {
 public:
  /// Validation images are drawn by `seed`; `path_key` is passed to open_dataset().
  ImageSets(DataConfig data, Index seed, std::string path_key = "data.path");

  /// Returns the set that holds a part.
  const Dataset& set(Part part);

  /// Returns the positions of a part's images in set(part), ascending.
  std::vector<Index> images(Part part);

  DataFacts facts();

 private:
  bool own_validation(Part part);

  DataConfig data_;
  Index seed_;
  std::string path_key_;
  std::unique_ptr<Dataset> sets_[3];
};

/// Shuffles the items; all permutations are equally likely.
void shuffle(std::vector<Index>& items, const RandomStream& stream);

/// Returns 0, 1, ..., size - 1.
std::vector<Index> all_images(Index size);

/// Normalised images with their labels.
template <class T>
struct Batch {
  Index first = 0;          ///< position of the first image in the epoch
  Index size = 0;           ///< number of images; the tensors have room for a full batch
  Tensor<T> images;         ///< [B,C,H,W], the first `size` valid; with views, two views of each: [B,2,C,H,W]
  Tensor<T> crops;          ///< with views, the small views: [B,local_crops,C,local_size,local_size]
  Tensor<T> targets;        ///< [B,classes]: one-hot; mixup and cutmix divide the 1 between two classes
  std::vector<int> labels;  ///< [B] classes of the images before mixing
};

/// Order and augmentation of a loader's batches.
struct Loading {
  ImageSize input;  ///< input size of the model
  Index batch;
  Index seed;
  bool training;    ///< true: shuffled (if config.shuffle), augmented, whole batches only; false: all images in order
  int workers = 0;  ///< threads that decode and augment; 0: heed::threads()
  std::optional<DinoConfig> views{};  ///< if set, batches have views of the images
  bool ahead = true;                  ///< true: prefetched by a background thread; false: prepared in next()
};

/// Iterates over a subset of a data set in batches. Only one thread may use a loader; a background thread (and, for
/// images that are slow to prepare, oneTBB's threads) keeps two batches ready. A batch depends on the data, the
/// settings, the epoch and its index in the epoch, not on threads or earlier batches.
template <class T>
class Loader {
 public:
  /// `dataset` must outlive the loader. Throws Error if the model's input size differs from the images' and
  /// config.resize is "none", if values of `config` are out of range, or if the training images do not fill a batch.
  Loader(const Dataset& dataset, std::vector<Index> subset, const DataConfig& config, const Loading& loading);
  ~Loader();

  /// Returns the number of batches in an epoch.
  Index batches() const;

  /// Discards the rest of the current epoch. From the next start() on, prepares image i of a batch of `images` images
  /// only if wanted(i, images) is true for it or for the image it is mixed with; other images are unspecified. `wanted`
  /// is called by several threads at once.
  void make_only(std::function<bool(Index i, Index images)> wanted);

  /// Begins an epoch at its batch `first_batch` and discards the rest of the current epoch.
  void start(Index epoch, Index first_batch = 0);

  /// Returns the next batch, valid until the next call of next() or start(); nullptr after the last batch and before
  /// start(). Throws Error if an image cannot be read. If loading.ahead, allocates nothing.
  const Batch<T>* next();

 private:
  class Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace heed
