#include "colour.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace heed {

namespace {

using Knots = std::array<Colour, 17>;

/// The colours at 16 equal steps; between them linear interpolation is off by less than 2 of 255.
constexpr Knots viridis = {{{68, 1, 84},
                            {72, 24, 106},
                            {71, 45, 123},
                            {66, 64, 134},
                            {59, 82, 139},
                            {51, 99, 141},
                            {44, 114, 142},
                            {38, 130, 142},
                            {33, 145, 140},
                            {31, 160, 136},
                            {40, 174, 128},
                            {63, 188, 115},
                            {94, 201, 98},
                            {132, 212, 75},
                            {173, 220, 48},
                            {216, 226, 25},
                            {253, 231, 37}}};
constexpr Knots moreland = {{{59, 76, 192},
                             {78, 104, 216},
                             {98, 130, 234},
                             {119, 154, 247},
                             {141, 176, 254},
                             {163, 194, 254},
                             {185, 208, 249},
                             {204, 217, 237},
                             {221, 220, 220},
                             {236, 211, 197},
                             {245, 196, 172},
                             {247, 176, 147},
                             {244, 152, 122},
                             {235, 125, 98},
                             {221, 95, 75},
                             {202, 59, 55},
                             {180, 4, 38}}};

std::uint8_t mix(double a, double b, double share_of_b) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * share_of_b));
}

Colour interpolate(const Knots& knots, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (knots.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(place), knots.size() - 2);
  const double beyond = place - static_cast<double>(i);
  const Colour &a = knots[i], &b = knots[i + 1];
  return {mix(a.red, b.red, beyond), mix(a.green, b.green, beyond), mix(a.blue, b.blue, beyond)};
}

}  // namespace

Colour sequential_colour(double share) { return interpolate(viridis, share); }

Colour diverging_colour(double number) { return interpolate(moreland, (number + 1) / 2); }

Colour over_grey(Colour colour, std::uint8_t grey) {
  constexpr double share = 0.78;
  return {mix(grey, colour.red, share), mix(grey, colour.green, share), mix(grey, colour.blue, share)};
}

}  // namespace heed
