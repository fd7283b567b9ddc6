// Resampling is separable: rows first, then columns; each output pixel is a weighted mean of input pixels.
#include "resample.h"

#include "colour.h"
#include "heed/kernels/grids/bicubic.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// Input pixels of one output pixel, [first, first + weights.size()), with their weights.
struct Taps {
  Index first;
  std::vector<float> weights;
};

double weight_of(Filter filter, double distance) {
  constexpr double a = -0.5;
  return filter == Filter::linear ? std::max(0.0, 1 - std::abs(distance)) : kernels::cubic_weight(distance, a);
}

/// Returns the taps of each output pixel; pixel i is centred at (i + 1/2) from / to in the input.
std::vector<Taps> taps_of(Index from, Index to, Filter filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), unit = std::max(scale, 1.0);
  const double reach = unit * (filter == Filter::linear ? 1 : 2);
  std::vector<Taps> taps(to);
  for (Index i = 0; i < to; ++i) {
    Taps& tap = taps[i];
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    tap.first = std::max<Index>(0, static_cast<Index>(std::floor(centre - reach)));
    const Index end = std::min(from, static_cast<Index>(std::ceil(centre + reach)));
    double sum = 0;
    for (Index k = tap.first; k < end; ++k) {
      const double weight = weight_of(filter, (static_cast<double>(k) + 0.5 - centre) / unit);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return taps;
}

using Plane = std::vector<float>;

/// Number of rows that are resized horizontally at a time: only these are in memory as floats at their full width.
constexpr Index strip_rows = 64;

/// Computes weighted means of rows of `width` values; each result is a row.
Plane mix_rows(const Plane& from, Index width, const std::vector<Taps>& taps) {
  Plane to(taps.size() * static_cast<std::size_t>(width));
  float* sum = to.data();
  for (const Taps& tap : taps) {
    const float* row = from.data() + tap.first * width;
    for (const float weight : tap.weights) {
      for (Index x = 0; x < width; ++x) sum[x] += weight * row[x];
      row += width;
    }
    sum += width;
  }
  return to;
}

/// Returns the transpose.
Plane turned(const Plane& from, Index width) {
  const Index height = static_cast<Index>(from.size()) / width;
  Plane to(from.size());
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x) to[x * height + y] = from[y * width + x];
  return to;
}

}  // namespace

Image resampled(const Image& image, const Box& box, Index height, Index width, Filter filter) {
  const std::vector<Taps> across = taps_of(box.width(), width, filter), down = taps_of(box.height(), height, filter);
  Image result{{image.size.channels, height, width}, {}};
  result.pixels.reserve(result.size.elements());
  for (Index channel = 0; channel < image.size.channels; ++channel) {
    Plane plane;
    for (Index top = box.top; top < box.bottom; top += strip_rows) {
      const Index rows = std::min(strip_rows, box.bottom - top);
      Plane strip;
      for (Index y = top; y < top + rows; ++y) {
        const std::uint8_t* const row = image.pixels.data() + (channel * image.size.height + y) * image.size.width;
        strip.insert(strip.end(), row + box.left, row + box.right);
      }
      if (box.width() != width) strip = turned(mix_rows(turned(strip, box.width()), rows, across), rows);
      plane.insert(plane.end(), strip.begin(), strip.end());
    }
    if (box.height() != height) plane = mix_rows(plane, width, down);
    std::transform(plane.begin(), plane.end(), std::back_inserter(result.pixels), to_byte<float>);
  }
  return result;
}

}  // namespace heed
