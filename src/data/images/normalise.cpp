#include "heed/data/images/normalise.h"

#include <cmath>

namespace heed {

namespace {

/// Returns data.mean or data.std with one value per channel.
std::vector<double> per_channel(const char* key, const std::vector<double>& given, Index channels, double fallback) {
  const Index count = static_cast<Index>(given.size());
  require(count <= 1 || count == channels, "data.{} has {} values; expected 1 or {}, one per channel", key, count,
          channels);
  for (const double value : given)
    require(std::isfinite(value), "data.{} contains {}; expected finite numbers", key, value);
  if (count > 1) return given;
  return std::vector<double>(static_cast<std::size_t>(channels), count == 0 ? fallback : given[0]);
}

}  // namespace

template <class T>
Normaliser<T>::Normaliser(const DataConfig& config, Index channels) {
  const std::vector<double> mean = per_channel("mean", config.mean, channels, 0);
  const std::vector<double> std = per_channel("std", config.std, channels, 1);
  for (std::size_t c = 0; c < mean.size(); ++c) {
    require(std[c] > 0, "data.std contains {}; expected more than 0", std[c]);
    for (int byte = 0; byte < 256; ++byte) table_.push_back(static_cast<T>((byte / 255.0 - mean[c]) / std[c]));
  }
}

template <class T>
void Normaliser<T>::operator()(const Image& image, T* to) const {
  HEED_ASSERT(image.size.channels * 256 == static_cast<Index>(table_.size()));
  const std::uint8_t* from = image.pixels.data();
  const Index pixels = image.size.pixels();
  for (Index c = 0; c < image.size.channels; ++c) {
    const T* table = table_.data() + c * 256;
    for (Index i = 0; i < pixels; ++i) to[c * pixels + i] = table[from[c * pixels + i]];
  }
}

template class Normaliser<float>;
template class Normaliser<double>;

}  // namespace heed
