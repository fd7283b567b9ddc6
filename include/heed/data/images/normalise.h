// From bytes to the numbers that a model takes.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"

#include <vector>

namespace heed {

/// Turns a byte of channel c into (byte / 255 - mean[c]) / std[c], computed in double and then rounded to T.
template <class T>
class Normaliser {
 public:
  /// Throws Error if config.mean or config.std do not suit so many channels or std is not positive.
  Normaliser(const DataConfig& config, Index channels);

  /// Writes the image's pixels to `to`, [channels, height, width].
  void operator()(const Image& image, T* to) const;

 private:
  std::vector<T> table_;  // [channels, 256]
};

}  // namespace heed
