// One's own images, for heed train --images.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// The contents of a directory of images, and the settings of an experiment for it, "data.name=folder" and so on.
struct OwnImages {
  std::string found;  ///< a line for the terminal
  std::vector<std::string> sets;
};

/// Looks at DIR/train/CLASS and so on (data/dataset.h). Set are the data, the number of classes, and the images to
/// validate with: those of a directory for it, or a tenth of the training images. `skip_bad` is data.skip_bad. With
/// `model`, also what depends on the images alone: the model's channels, size and patch, the batch, the mean and
/// standard deviation of each channel.
OwnImages own_images(const std::string& directory, bool model, bool skip_bad);

}  // namespace heed::cli
