// The user's own images, for heed train --images.
#pragma once

#include "heed/config/experiment.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Contents of an image directory, and an experiment's settings for it, "data.name=folder" and so on.
struct OwnImages {
  std::string found;  ///< a line for the terminal
  std::vector<std::string> sets;
};

/// Examines DIR/train/CLASS and so on (data/dataset.h). Sets the data, the number of classes, and the validation
/// images: a separate directory, or a tenth of the training images, at most 5000. `given` has the experiment's own
/// skip_bad and limit and, with `divided`, a number of validation images, which `found` states instead of a tenth. With
/// `model`, also sets the model's channels, size and patch, the batch, and the mean and standard deviation of each
/// channel.
OwnImages own_images(const std::string& directory, bool model, const DataConfig& given, bool divided);

}  // namespace heed::cli
