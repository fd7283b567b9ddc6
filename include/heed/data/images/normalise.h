// Conversion of bytes to normalised model inputs.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"

#include <vector>

namespace heed {

/// Maps a byte of channel c to (byte / 255 - mean[c]) / std[c], computed in double and then rounded to T.
template <class T>
class Normaliser {
 public:
  /// Throws Error if the length of config.mean or config.std is not `channels`, or if a config.std is not positive.
  Normaliser(const DataConfig& config, Index channels);

  /// Writes the image's pixels to `to`, [channels, height, width].
  void operator()(const Image& image, T* to) const;

 private:
  std::vector<T> table_;  // [channels, 256]
};

}  // namespace heed
