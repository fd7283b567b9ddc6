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
  /// Throws Error unless config.mean and config.std each have no value, one value, or one per channel, and all values
  /// of config.std are positive. No value means a mean of 0 and a deviation of 1.
  Normaliser(const DataConfig& config, Index channels);

  /// Writes the image's pixels to `to`, [channels, height, width].
  void operator()(const Image& image, T* to) const;

 private:
  std::vector<T> table_;  // [channels, 256]
};

}  // namespace heed
