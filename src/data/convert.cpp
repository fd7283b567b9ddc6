// Change of size and channels. Resampling is separable: rows first, then columns, each output pixel a weighted mean
// of input pixels.
#include "heed/data/image.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// The input pixels that make one output pixel: [first, first + weights.size()).
struct Taps {
  Index first;
  std::vector<float> weights;
};

/// Triangle filter: the centre of output pixel i lies at (i + 1/2) scale of the input; a pixel weighs 1 - distance,
/// the distance counted in input pixels when growing and in output pixels when shrinking.
std::vector<Taps> triangle(Index from, Index to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), width = std::max(scale, 1.0);
  std::vector<Taps> taps(static_cast<std::size_t>(to));
  for (Index i = 0; i < to; ++i) {
    Taps& tap = taps[static_cast<std::size_t>(i)];
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    tap.first = std::max<Index>(0, static_cast<Index>(std::floor(centre - width)));
    const Index end = std::min(from, static_cast<Index>(std::ceil(centre + width)));
    double sum = 0;
    for (Index k = tap.first; k < end; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - centre) / width);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return taps;
}

/// from [planes, rows, size] to [planes, rows, taps.size()], or with `columns` [planes, size, rows] likewise.
std::vector<float> resample(const std::vector<float>& from, const std::vector<Taps>& taps, Index planes, Index rows,
                            Index size, bool columns) {
  const Index to = static_cast<Index>(taps.size());
  const Index step = columns ? rows : 1, row_in = columns ? 1 : size, row_out = columns ? 1 : to;
  std::vector<float> result(static_cast<std::size_t>(planes * rows * to));
  for (Index plane = 0; plane < planes; ++plane)
    for (Index i = 0; i < to; ++i) {
      const Taps& tap = taps[static_cast<std::size_t>(i)];
      for (Index row = 0; row < rows; ++row) {
        const float* at = from.data() + plane * rows * size + row * row_in + tap.first * step;
        float sum = 0;
        for (const float weight : tap.weights) {
          sum += weight * *at;
          at += step;
        }
        result[static_cast<std::size_t>(plane * rows * to + row * row_out + i * step)] = sum;
      }
    }
  return result;
}

std::uint8_t to_byte(float x) { return static_cast<std::uint8_t>(std::clamp(x + 0.5f, 0.0f, 255.0f)); }

Image resize(const Image& image, Index height, Index width) {
  const ImageSize from = image.size;
  std::vector<float> values(image.pixels.begin(), image.pixels.end());
  if (from.width != width)
    values = resample(values, triangle(from.width, width), from.channels, from.height, from.width, false);
  if (from.height != height)
    values = resample(values, triangle(from.height, height), from.channels, width, from.height, true);
  Image result{{from.channels, height, width}, std::vector<std::uint8_t>(values.size())};
  std::transform(values.begin(), values.end(), result.pixels.begin(), to_byte);
  return result;
}

Image to_grey(const Image& image) {
  const Index n = image.size.pixels();
  Image grey{{1, image.size.height, image.size.width}, std::vector<std::uint8_t>(static_cast<std::size_t>(n))};
  const std::uint8_t *red = image.pixels.data(), *green = red + n, *blue = green + n;
  for (Index i = 0; i < n; ++i) {
    const int sum = 299 * red[i] + 587 * green[i] + 114 * blue[i];  // exact in integers
    grey.pixels[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((sum + 500) / 1000);
  }
  return grey;
}

void grey_to_rgb(Image& image) {
  const std::size_t n = image.pixels.size();
  image.size.channels = 3;
  image.pixels.resize(3 * n);
  for (std::size_t c = 1; c < 3; ++c)
    std::copy_n(image.pixels.begin(), n, image.pixels.begin() + static_cast<Index>(c * n));
}

}  // namespace

Image convert(Image image, ImageSize target) {
  require(target.channels == 1 || target.channels == 3, "an image can have 1 or 3 channels, not {}", target.channels);
  require(target.height >= 1 && target.width >= 1, "an image cannot be {}", to_string(target));
  // Resampling runs on the fewer channels.
  if (image.size.channels == 3 && target.channels == 1) image = to_grey(image);
  if (image.size.height != target.height || image.size.width != target.width)
    image = resize(image, target.height, target.width);
  if (image.size.channels == 1 && target.channels == 3) grey_to_rgb(image);
  return image;
}

}  // namespace heed
