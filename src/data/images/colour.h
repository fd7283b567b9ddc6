// Colour changes and blurring of 8-bit images. Each operation rounds its results to integers and clips them to 0..255.
#pragma once

#include "heed/data/images/image.h"

#include <algorithm>
#include <array>

namespace heed {

/// Returns the byte nearest to x; halves are rounded up.
template <class T>
std::uint8_t to_byte(T x) {
  return static_cast<std::uint8_t>(std::clamp(x + T(0.5), T(0), T(255)));
}

/// Lookup table from bytes to bytes.
using ByteTable = std::array<std::uint8_t, 256>;

/// Replaces each byte of [begin, end) by table[byte].
inline void look_up(std::uint8_t* begin, std::uint8_t* end, const ByteTable& table) {
  std::transform(begin, end, begin, [&](std::uint8_t x) { return table[x]; });
}

/// Replaces each byte x of an image by f(x).
template <class F>
void map_bytes(Image& image, F f) {
  ByteTable table;
  for (int x = 0; x < 256; ++x) table[x] = to_byte(f(x));
  look_up(image.pixels.data(), image.pixels.data() + image.pixels.size(), table);
}

/// Maps x to base + factor (x - base): away from `base` for factors above 1, towards it below.
void enhance(Image& image, const Image& base, double factor);

/// Returns the grey image with the same number of channels (convert(), data/images/image.h).
Image grey_of(const Image& image);

/// Multiplies each pixel value by `factor`.
void change_brightness(Image& image, double factor);

/// Maps x to mean + factor (x - mean), where mean is the mean of the grey image.
void change_contrast(Image& image, double factor);

/// Maps x to grey + factor (x - grey), pixel by pixel.
void change_saturation(Image& image, double factor);

/// Rotates the hue of a colour image by the fraction `turn` of the full circle: hue + 6 turn in sixths of the circle.
/// The HSV value v and saturation (v - l) / v are unchanged, with v = max(R, G, B) and l = min(R, G, B).
void turn_hue(Image& image, double turn);

/// Maps x to 255 - x if it is at least `threshold`.
void solarise(Image& image, double threshold = 128);

/// Convolves each channel with exp(-d^2 / (2 sigma^2)) along rows and columns, for distances d up to 3 sigma, rounded
/// up; the weights are divided by their sum, and the outermost pixel is repeated beyond an edge.
void blur(Image& image, double sigma);

}  // namespace heed
