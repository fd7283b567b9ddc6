// Batches of normalised, augmented images, made ahead in the background.
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
#include <vector>

namespace heed {

/// The images of a training set, divided into those to train on and those to choose a model by; each ascending.
struct Subsets {
  std::vector<Index> train, validation;
};

/// Divides `size` training images: config.validation of them, drawn by `seed`, are set aside, and the first
/// config.limit of the others (0: all) are trained on. Throws Error if none would be left to train on.
Subsets split_validation(Index size, const DataConfig& config, std::uint64_t seed);

/// Returns the examples of a part, ascending: all `size` of the test files, or those that split_validation() gives it.
std::vector<Index> examples_of(Index size, Part part, const DataConfig& config, std::uint64_t seed);

/// Returns the same of examples that have a file each, of which a run may have recorded those set aside to validate
/// with, by their names below config.path. If config.validation is another number, they are drawn.
std::vector<Index> examples_of_files(const std::vector<std::string>& files, Part part, const DataConfig& config,
                                     std::uint64_t seed);

/// The sets of images that a data set consists of, each opened once, when it is first used, and their division.
class ImageSets {
 public:
  /// `seed` draws the images set aside; `path_key` is as open_dataset() takes it.
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

/// Puts things in a random order, every one equally likely.
void shuffle(std::vector<Index>& items, const RandomStream& stream);

/// All of a data set, in order.
std::vector<Index> all_images(Index size);

/// Images, normalised, with what they show.
template <class T>
struct Batch {
  Index first = 0;          ///< position of its first image in the epoch
  Index size = 0;           ///< number of images; the tensors have room for a full batch
  Tensor<T> images;         ///< [B,C,H,W], the first `size` of which count; with views, two of each: [B,2,C,H,W]
  Tensor<T> crops;          ///< with views, the small ones: [B,local_crops,C,local_size,local_size]
  Tensor<T> targets;        ///< [B,classes]: 1 for the class, or shared between two by mixup and cutmix
  std::vector<int> labels;  ///< [B] classes of the images before mixing
};

/// The order and the augmentation of a loader.
struct Loading {
  ImageSize input;  ///< size that the model takes
  Index batch;
  std::uint64_t seed;
  bool training;    ///< shuffled (config.shuffle) and augmented, the last partial batch dropped; or all, in their order
  int workers = 0;  ///< threads that decode and augment; 0: heed::threads()
  std::optional<DinoConfig> views{};  ///< to train: views of images instead of images
  bool ahead = true;                  ///< made by a thread of the background, or else when they are asked for
};

/// Goes through a subset of a data set in batches. One thread may use it; a background thread (and, for images that are
/// slow to make, oneTBB's) keeps two batches ready. Batches depend on (subset, config, seed, epoch) and their number in
/// the epoch only, not on threads or earlier batches.
template <class T>
class Loader {
 public:
  /// `dataset` must outlive the loader. Throws Error if the model's input differs from the images and config.resize is
  /// not set, or if `config` has values out of range.
  Loader(const Dataset& dataset, std::vector<Index> subset, const DataConfig& config, const Loading& loading);
  ~Loader();

  /// Batches in an epoch.
  Index batches() const;

  /// From the next start() on, image i of a batch of so many is made only if wanted(i, images) or if it is mixed with
  /// one that is; the places of others hold anything. Several threads ask at once.
  void make_only(std::function<bool(Index i, Index images)> wanted);

  /// Begins an epoch, at its batch `first_batch`; what was left of another epoch is given up.
  void start(Index epoch, Index first_batch = 0);

  /// The next batch, valid until the next call of next() or start(); nullptr after the last and before start(). Throws
  /// Error if an image cannot be read. Allocates nothing.
  const Batch<T>* next();

 private:
  class Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace heed
