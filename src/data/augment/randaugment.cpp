// RandAugment's list of operations (Cubuk et al., 2019, arXiv:1909.13719v2). The strength of every operation that has
// one grows with the magnitude, as in timm's "increasing" variants, with which DeiT is trained. In contrast to timm's,
// the geometric operations here fill with black and interpolate bilinearly.
#include "heed/base/math.h"

#include "augment.h"

#include "src/data/images/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heed {

namespace {

template <class F>
void for_each_plane(Image& image, F f) {
  const Index n = image.size.pixels();
  for (Index c = 0; c < image.size.channels; ++c) f(image.pixels.data() + c * n, image.pixels.data() + (c + 1) * n);
}

/// Stretches each channel linearly so that its darkest byte becomes 0 and its brightest 255.
void autocontrast(Image& image) {
  for_each_plane(image, [](std::uint8_t* begin, std::uint8_t* end) {
    const auto [low, high] = std::minmax_element(begin, end);
    const int dark = *low, bright = *high;
    if (dark == bright) return;
    ByteTable table{};
    for (int x = dark; x <= bright; ++x) table[x] = to_byte(255.0 * (x - dark) / (bright - dark));
    look_up(begin, end, table);
  });
}

/// Equalises each channel's histogram by Pillow's rule.
void equalize(Image& image) {
  for_each_plane(image, [](std::uint8_t* begin, std::uint8_t* end) {
    std::array<Index, 256> histogram{};
    for (const std::uint8_t* at = begin; at != end; ++at) ++histogram[*at];
    const Index brightest = histogram[*std::max_element(begin, end)];
    const Index step = (end - begin - brightest) / 255;
    if (step == 0) return;
    ByteTable table;
    Index below = step / 2;
    for (std::size_t x = 0; x < 256; ++x) {
      table[x] = static_cast<std::uint8_t>(std::min<Index>(below / step, 255));
      below += histogram[x];
    }
    look_up(begin, end, table);
  });
}

/// Moves the image away from (factor > 1) or towards (factor < 1) a copy smoothed by [1 1 1; 1 5 1; 1 1 1] / 13. The
/// border is unchanged.
void sharpness(Image& image, double factor) {
  Image smooth = image;
  const auto [channels, height, width] = image.size;
  for (Index c = 0; c < channels; ++c)
    for (Index y = 1; y < height - 1; ++y)
      for (Index x = 1; x < width - 1; ++x) {
        const std::uint8_t* at = image.pixels.data() + (c * height + y) * width + x;
        int sum = 4 * *at;
        for (Index dy = -width; dy <= width; dy += width) sum += at[dy - 1] + at[dy] + at[dy + 1];
        smooth.pixels[(c * height + y) * width + x] = to_byte(sum / 13.0);
      }
  enhance(image, smooth, factor);
}

/// Affine map: output pixel (x, y) is input pixel (xx x + xy y + dx, yx x + yy y + dy), both relative to the centre.
struct Affine {
  double xx = 1, xy = 0, yx = 0, yy = 1, dx = 0, dy = 0;
};

void transform(Image& image, const Affine& m) {
  const auto [channels, height, width] = image.size;
  const Image from = image;
  const double cx = static_cast<double>(width - 1) / 2, cy = static_cast<double>(height - 1) / 2;
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x) {
      const double u = static_cast<double>(x) - cx, v = static_cast<double>(y) - cy;
      const double at_x = m.xx * u + m.xy * v + m.dx + cx, at_y = m.yx * u + m.yy * v + m.dy + cy;
      const Index left = static_cast<Index>(std::floor(at_x)), top = static_cast<Index>(std::floor(at_y));
      const double right_part = at_x - static_cast<double>(left), lower_part = at_y - static_cast<double>(top);
      for (Index c = 0; c < channels; ++c) {
        const auto pixel = [&, height = height, width = width](Index row, Index column) -> double {
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          return inside ? from.pixels[(c * height + row) * width + column] : 0;
        };
        const double upper = (1 - right_part) * pixel(top, left) + right_part * pixel(top, left + 1);
        const double lower = (1 - right_part) * pixel(top + 1, left) + right_part * pixel(top + 1, left + 1);
        image.pixels[(c * height + y) * width + x] = to_byte((1 - lower_part) * upper + lower_part * lower);
      }
    }
}

void rotate(Image& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, cosine = math::cos(angle), sine = math::sin(angle);
  transform(image, {.xx = cosine, .xy = -sine, .yx = sine, .yy = cosine});
}

constexpr AugmentOperation operations[] = {
    {"identity", [](Image&, double, double) {}},
    {"autocontrast", [](Image& image, double, double) { autocontrast(image); }},
    {"equalize", [](Image& image, double, double) { equalize(image); }},
    {"rotate", [](Image& image, double s, double sign) { rotate(image, 30 * s * sign); }},
    {"solarize", [](Image& image, double s, double) { solarise(image, 256 - 256 * s); }},
    // Drops 0 to 4 low bits.
    {"posterize",
     [](Image& image, double s, double) {
       const int dropped = static_cast<int>(std::lround(4 * s));
       map_bytes(image, [&](int x) { return x >> dropped << dropped; });
     }},
    {"color", [](Image& image, double s, double sign) { change_saturation(image, 1 + 0.9 * s * sign); }},
    {"contrast", [](Image& image, double s, double sign) { change_contrast(image, 1 + 0.9 * s * sign); }},
    {"brightness", [](Image& image, double s, double sign) { change_brightness(image, 1 + 0.9 * s * sign); }},
    {"sharpness", [](Image& image, double s, double sign) { sharpness(image, 1 + 0.9 * s * sign); }},
    {"shear-x", [](Image& image, double s, double sign) { transform(image, {.xy = 0.3 * s * sign}); }},
    {"shear-y", [](Image& image, double s, double sign) { transform(image, {.yx = 0.3 * s * sign}); }},
    {"translate-x",
     [](Image& image, double s, double sign) {
       transform(image, {.dx = 0.45 * s * sign * static_cast<double>(image.size.width)});
     }},
    {"translate-y",
     [](Image& image, double s, double sign) {
       transform(image, {.dy = 0.45 * s * sign * static_cast<double>(image.size.height)});
     }},
};

}  // namespace

std::span<const AugmentOperation> randaugment_operations() { return operations; }

void randaugment(Image& image, Index ops, double magnitude, const RandomStream& stream) {
  for (Index i = 0; i < ops; ++i) {
    const AugmentOperation& operation = operations[stream.below(2 * i, std::size(operations))];
    operation.apply(image, magnitude / 10, stream.below(2 * i + 1, 2) == 1 ? 1 : -1);
  }
}

}  // namespace heed
