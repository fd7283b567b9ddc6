#include "heed/base/math.h"

#include "colour.h"

#include <cmath>

namespace heed {

void enhance(Image& image, const Image& base, double factor) {
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = to_byte(base.pixels[i] + factor * (image.pixels[i] - base.pixels[i]));
}

Image grey_of(const Image& image) {
  return convert(convert(image, {1, image.size.height, image.size.width}), image.size);
}

void change_brightness(Image& image, double factor) {
  map_bytes(image, [&](int x) { return x * factor; });
}

void change_contrast(Image& image, double factor) {
  const Image grey = convert(image, {1, image.size.height, image.size.width});
  double sum = 0;
  for (const std::uint8_t x : grey.pixels) sum += x;
  const double mean = sum / static_cast<double>(grey.pixels.size());
  map_bytes(image, [&](int x) { return mean + factor * (x - mean); });
}

void change_saturation(Image& image, double factor) { enhance(image, grey_of(image), factor); }

// With hue h in sixths of the circle, saturation s and value v, a channel is v - v s max(0, min(k, 4 - k, 1)), where
// k = (n + h) mod 6 and n = 5 for R, 3 for G, 1 for B.
void turn_hue(Image& image, double turn) {
  HEED_ASSERT(image.size.channels == 3);
  const Index n = image.size.pixels();
  std::uint8_t *const red = image.pixels.data(), *const green = red + n, *const blue = green + n;
  const float sixths = static_cast<float>(6 * (turn - std::floor(turn)));
  for (Index i = 0; i < n; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float v = std::max(r, std::max(g, b)), range = v - std::min(r, std::min(g, b));
    const float inverse = range > 0 ? 1 / range : 0;
    const float from_red = (g - b) * inverse, from_green = 2 + (b - r) * inverse, from_blue = 4 + (r - g) * inverse;
    const float h = (v == r ? from_red : v == g ? from_green : from_blue) + 6 + sixths;  // in [5, 17)
    const auto channel = [&](float place) {
      float k = place + h;
      k -= 6 * std::floor(k * (1.0f / 6));
      return static_cast<std::uint8_t>(v - range * std::max(0.0f, std::min(std::min(k, 4 - k), 1.0f)) + 0.5f);
    };
    red[i] = channel(5), green[i] = channel(3), blue[i] = channel(1);
  }
}

void solarise(Image& image, double threshold) {
  map_bytes(image, [&](int x) { return x < threshold ? x : 255 - x; });
}

void blur(Image& image, double sigma) {
  const Index reach = static_cast<Index>(std::ceil(3 * sigma));
  std::vector<float> weights;
  double sum = 0;
  for (Index d = -reach; d <= reach; ++d) sum += math::exp(-static_cast<double>(d * d) / (2 * sigma * sigma));
  for (Index d = -reach; d <= reach; ++d)
    weights.push_back(static_cast<float>(math::exp(-static_cast<double>(d * d) / (2 * sigma * sigma)) / sum));

  // Filters each row, padded with repeated edge pixels; then filters all columns together, by adding weighted rows.
  const auto [channels, height, width] = image.size;
  std::vector<float> wide(width + 2 * reach), across(height * width), row(width);
  const auto add = [](float weight, const float* from, std::vector<float>& to) {
    for (std::size_t x = 0; x < to.size(); ++x) to[x] += weight * from[x];
  };
  for (Index c = 0; c < channels; ++c) {
    std::uint8_t* const plane = image.pixels.data() + c * height * width;
    for (Index y = 0; y < height; ++y) {
      const std::uint8_t* const from = plane + y * width;
      std::fill_n(wide.begin(), reach, from[0]);
      std::copy_n(from, width, wide.begin() + reach);
      std::fill_n(wide.begin() + reach + width, reach, from[width - 1]);
      std::fill(row.begin(), row.end(), 0.0f);
      for (std::size_t k = 0; k < weights.size(); ++k) add(weights[k], wide.data() + k, row);
      std::copy(row.begin(), row.end(), across.begin() + y * width);
    }
    for (Index y = 0; y < height; ++y) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (Index d = -reach; d <= reach; ++d)
        add(weights[d + reach], across.data() + std::clamp<Index>(y + d, 0, height - 1) * width, row);
      for (Index x = 0; x < width; ++x) plane[y * width + x] = static_cast<std::uint8_t>(row[x] + 0.5f);
    }
  }
}

}  // namespace heed
