#include "colour.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace heed {

namespace {

/// Colours as 0xRRGGBB at the ends of 16 equal steps; linear interpolation between them has errors below 2 of 255.
using Knots = std::array<std::uint32_t, 17>;

constexpr Knots viridis = {0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d, 0x2c728e, 0x26828e, 0x21918c,
                           0x1fa088, 0x28ae80, 0x3fbc73, 0x5ec962, 0x84d44b, 0xaddc30, 0xd8e219, 0xfde725};
constexpr Knots moreland = {0x3b4cc0, 0x4e68d8, 0x6282ea, 0x779af7, 0x8db0fe, 0xa3c2fe, 0xb9d0f9, 0xccd9ed, 0xdddcdc,
                            0xecd3c5, 0xf5c4ac, 0xf7b093, 0xf4987a, 0xeb7d62, 0xdd5f4b, 0xca3b37, 0xb40426};

std::uint8_t mix(double a, double b, double share_of_b) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * share_of_b));
}

Colour interpolate(const Knots& knots, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (knots.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(place), knots.size() - 2);
  const double beyond = place - static_cast<double>(i);
  const auto channel = [&](int shift) { return mix(knots[i] >> shift & 255, knots[i + 1] >> shift & 255, beyond); };
  return {channel(16), channel(8), channel(0)};
}

}  // namespace

Colour sequential_colour(double share) { return interpolate(viridis, share); }

Colour diverging_colour(double number) { return interpolate(moreland, (number + 1) / 2); }

Colour over_grey(Colour colour, std::uint8_t grey) {
  constexpr double share = 0.78;
  return {mix(grey, colour.red, share), mix(grey, colour.green, share), mix(grey, colour.blue, share)};
}

}  // namespace heed
