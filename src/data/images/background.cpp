#include "heed/data/images/background.h"

#include <algorithm>
#include <vector>

namespace heed {

namespace {

/// Returns the median of `levels` if at least four fifths of `count` items have a level near it. `levels` has no entry
/// for items without a level.
std::optional<int> agreed_level(std::vector<int> levels, Index count) {
  constexpr int near = 32;
  if (levels.empty()) return std::nullopt;
  const auto middle = levels.begin() + static_cast<Index>(levels.size() / 2);
  std::nth_element(levels.begin(), middle, levels.end());
  const int median = *middle;
  const auto agree = std::count_if(levels.begin(), levels.end(), [&](int x) { return std::abs(x - median) <= near; });
  return 5 * agree >= 4 * count ? std::optional(median) : std::nullopt;
}

}  // namespace

std::optional<int> background(const Image& image) {
  const Index height = image.size.height, width = image.size.width;
  const Image grey = convert(image, {1, height, width});
  std::vector<int> edge;
  for (Index row = 0; row < height; ++row)
    for (Index column = 0; column < width; ++column)
      if (row == 0 || row == height - 1 || column == 0 || column == width - 1)
        edge.push_back(grey.pixels[row * width + column]);
  return agreed_level(edge, static_cast<Index>(edge.size()));
}

std::optional<int> common_background(const Dataset& data) {
  const Index count = std::min<Index>(data.size(), 100);
  std::vector<int> levels;
  Image image;
  for (Index i = 0; i < count; ++i) {
    data.read(i * data.size() / count, image);
    if (const std::optional<int> level = background(image)) levels.push_back(*level);
  }
  return agreed_level(levels, count);
}

}  // namespace heed
