// Changes of colour and sharpness, of bytes. Results are rounded to bytes, and to 0..255, after each of them.
#pragma once

#include "heed/data/images/image.h"

#include <algorithm>
#include <array>

namespace heed {

/// The byte nearest to x, a half upwards.
template <class T>
std::uint8_t to_byte(T x) {
  return static_cast<std::uint8_t>(std::clamp(x + T(0.5), T(0), T(255)));
}

/// A byte for each byte.
using ByteTable = std::array<std::uint8_t, 256>;

/// Replaces each byte of [begin, end) by table[byte].
inline void look_up(std::uint8_t* begin, std::uint8_t* end, const ByteTable& table) {
  std::transform(begin, end, begin, [&](std::uint8_t x) { return table[x]; });
}

/// Replaces each byte x of an image by f(x).
template <class F>
void map_bytes(Image& image, F f) {
  ByteTable table;
  for (int x = 0; x < 256; ++x) table[static_cast<std::size_t>(x)] = to_byte(f(x));
  look_up(image.pixels.data(), image.pixels.data() + image.pixels.size(), table);
}

/// x becomes base + factor (x - base): away from `base` for factors above 1, towards it below.
void enhance(Image& image, const Image& base, double factor);

/// The grey image, with as many channels (convert(), data/images/image.h).
Image grey_of(const Image& image);

/// x becomes factor x.
void change_brightness(Image& image, double factor);

/// x becomes mean + factor (x - mean), the mean being that of the grey image.
void change_contrast(Image& image, double factor);

/// x becomes grey + factor (x - grey), pixel by pixel.
void change_saturation(Image& image, double factor);

/// Turns the hue of a colour image by a part of the full circle, in HSV: with v the largest and l the least of R, G, B,
/// v and (v - l) / v stay, and the hue, sixths of the circle counted from red, becomes hue + 6 turn.
void turn_hue(Image& image, double turn);

/// x becomes 255 - x where it is `threshold` or more.
void solarise(Image& image, double threshold = 128);

/// Each channel convolved with exp(-d^2 / (2 sigma^2)), along rows and along columns, as far as three sigma; weights
/// are divided by their sum, and beyond an edge the outermost pixel is repeated.
void blur(Image& image, double sigma);

}  // namespace heed
