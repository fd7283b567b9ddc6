#include "augment.h"

#include "heed/base/math.h"
#include "heed/base/suggest.h"

#include <algorithm>
#include <cstring>

namespace heed {

Augmentations parse_augmentations(const DataConfig& config) {
  Augmentations which;
  const std::vector<std::pair<std::string, bool*>> names = {
      {"crop", &which.crop},   {"flip", &which.flip},   {"randaugment", &which.randaugment},
      {"erase", &which.erase}, {"mixup", &which.mixup}, {"cutmix", &which.cutmix}};
  for (const std::string& given : config.augment) {
    const auto known = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.first == given; });
    if (known == names.end()) {
      std::vector<std::string> choices;
      for (const auto& name : names) choices.push_back(name.first);
      fail("data.augment: unknown augmentation '{}'{}", given, suggestion(given, choices));
    }
    require(!*known->second, "data.augment: '{}' is given twice", given);
    *known->second = true;
  }
  require(config.crop_padding >= 0 && config.crop_padding <= max_image_side,
          "data.crop_padding is {}; expected 0 to {}", config.crop_padding, max_image_side);
  require(config.mixup_alpha > 0 && config.mixup_alpha <= 1e6,
          "data.mixup_alpha is {}; expected more than 0, and at most 1e6", config.mixup_alpha);
  require(config.cutmix_alpha > 0 && config.cutmix_alpha <= 1e6,
          "data.cutmix_alpha is {}; expected more than 0, and at most 1e6", config.cutmix_alpha);
  require(config.erase_probability >= 0 && config.erase_probability <= 1,
          "data.erase_probability is {}; expected 0 to 1", config.erase_probability);
  require(config.randaugment_ops >= 0 && config.randaugment_ops <= 100, "data.randaugment_ops is {}; expected 0 to 100",
          config.randaugment_ops);
  require(config.randaugment_magnitude >= 0 && config.randaugment_magnitude <= 10,
          "data.randaugment_magnitude is {}; expected 0 to 10", config.randaugment_magnitude);
  return which;
}

void crop(Image& image, Index padding, Index top, Index left) {
  HEED_ASSERT(top >= 0 && top <= 2 * padding && left >= 0 && left <= 2 * padding);
  const auto [channels, height, width] = image.size;
  const Index down = top - padding, right = left - padding;  // position of the window relative to the image
  const Index from = std::clamp<Index>(right, 0, width), count = std::max<Index>(0, width - std::abs(right));
  const Index to = std::max<Index>(0, -right);
  // Moves rows in an order that overwrites none before it has been read.
  for (Index c = 0; c < channels; ++c)
    for (Index step = 0; step < height; ++step) {
      const Index y = down >= 0 ? step : height - 1 - step, source = y + down;
      std::uint8_t* row = image.pixels.data() + (c * height + y) * width;
      if (source < 0 || source >= height || count == 0) {
        std::memset(row, 0, static_cast<std::size_t>(width));
        continue;
      }
      const std::uint8_t* read = image.pixels.data() + (c * height + source) * width;
      std::memmove(row + to, read + from, static_cast<std::size_t>(count));
      std::memset(row, 0, static_cast<std::size_t>(to));
      std::memset(row + to + count, 0, static_cast<std::size_t>(width - to - count));
    }
}

void flip(Image& image) {
  const Index width = image.size.width;
  for (auto row = image.pixels.begin(); row != image.pixels.end(); row += width) std::reverse(row, row + width);
}

void augment(Image& image, const Augmentations& which, const DataConfig& config, const RandomStream& stream) {
  if (which.crop) {
    const RandomStream place = stream.derive("crop");
    const Index positions = 2 * config.crop_padding + 1;
    crop(image, config.crop_padding, place.below(0, positions), place.below(1, positions));
  }
  if (which.flip && stream.derive("flip").below(0, 2) == 1) flip(image);
  if (which.randaugment)
    randaugment(image, config.randaugment_ops, config.randaugment_magnitude, stream.derive("randaugment"));
}

template <class T>
void erase(View<T> image, double probability, const RandomStream& stream) {
  const Index channels = image.shape()[0], height = image.shape()[1], width = image.shape()[2];
  if (stream.uniform(0) >= probability) return;
  // Rejection sampling of a rectangle inside the image, as in the paper, but with at most ten tries, which suffice in
  // practice.
  constexpr Index tries = 10;
  for (Index k = 1; k <= 4 * tries; k += 4) {
    const double area = stream.uniform(k, 0.02, 0.33) * static_cast<double>(height * width);
    const double aspect = math::exp(stream.uniform(k + 1, math::log(0.3), math::log(1 / 0.3)));
    const Index rows = std::lround(std::sqrt(area * aspect)), columns = std::lround(std::sqrt(area / aspect));
    if (rows < 1 || columns < 1 || rows > height || columns > width) continue;
    const Index top = stream.below(k + 2, height - rows + 1), left = stream.below(k + 3, width - columns + 1);
    const RandomStream noise = stream.derive("noise");
    for (Index c = 0; c < channels; ++c)
      for (Index y = top; y < top + rows; ++y)
        for (Index x = left; x < left + columns; ++x) {
          const Index at = (c * height + y) * width + x;
          image[at] = static_cast<T>(noise.normal(at));
        }
    return;
  }
}

template void erase(View<float>, double, const RandomStream&);
template void erase(View<double>, double, const RandomStream&);

}  // namespace heed
