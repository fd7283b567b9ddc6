// What the [data] section of an experiment says.
#pragma once

#include "heed/tensor.h"

#include <string>
#include <vector>

namespace heed {

/// The keys of [data] with their defaults.
struct DataConfig {
  std::string name = "mnist";        ///< mnist, fashion-mnist, cifar10, cifar100 or folder
  std::string path;                  ///< the data's directory; empty: the usual places (dataset.h)
  Index validation = 5000;           ///< images set aside from the training set
  Index limit = 0;                   ///< use only the first n training images; 0: all
  std::vector<double> mean;          ///< subtracted from pixels in [0, 1], one per channel or one for all; empty: 0
  std::vector<double> std;           ///< then divided by, likewise; empty: 1
  bool shuffle = true;               ///< training images in a new random order each epoch
  bool resize = false;               ///< convert images to the size and channels that the model takes
  std::vector<std::string> augment;  ///< see augment.h

  Index crop_padding = 4;            ///< crop: black pixels put around the image, and the largest shift
  double mixup_alpha = 0.8;          ///< mixup: the weight is drawn from Beta(alpha, alpha)
  double cutmix_alpha = 1.0;         ///< cutmix: likewise the part of the image that is kept
  double erase_probability = 0.25;   ///< erase: how many of the images lose a rectangle
  Index randaugment_ops = 2;         ///< randaugment: operations per image
  double randaugment_magnitude = 9;  ///< randaugment: their strength, from 0 to 10
};

}  // namespace heed
