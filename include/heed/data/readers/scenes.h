// Scenes of several small grey images with a class for each patch: a dense prediction task from MNIST-like images.
#pragma once

#include "heed/base/random.h"
#include "heed/data/dataset.h"

#include <cstdint>
#include <memory>
#include <string>

namespace heed {

/// A scene is a black canvas of 56 x 56 with 1 to 4 images of the source, each with its upper left corner anywhere in
/// rows and columns 0 to 28. Non-black pixels of later images cover earlier ones. A pixel brighter than 127 has the
/// class of its image plus one. If at least a quarter of a patch's pixels have a class, the patch has the most frequent
/// of their classes, the lowest on ties; otherwise it has class 0, background.
///
/// Training scenes are drawn by a seed; test scenes are always the same.
class Scenes {
 public:
  static constexpr Index side = 56, train_count = 25'000, test_count = 5'000;

  /// Composes scenes of a split's images. `source` and `path` are passed to open_dataset(). Throws Error if the images
  /// are not 28 x 28 and grey, or if the patch size does not divide the canvas.
  Scenes(const std::string& source, const std::string& path, Split split, std::uint64_t seed, Index patch);

  Index size() const { return count_; }
  Index patches() const { return side / patch_ * (side / patch_); }
  Index classes() const { return 1 + static_cast<Index>(source_->class_names().size()); }

  const std::vector<std::string>& files() const { return source_->files(); }

  /// Returns "background", then the source's classes.
  std::vector<std::string> class_names() const;

  /// Draws a scene and writes the classes of its patches, row by row, to labels [patches].
  void read(Index scene, Image& to, int* labels) const;

 private:
  std::unique_ptr<Dataset> source_;
  Index count_, patch_;
  RandomStream random_;
};

}  // namespace heed
