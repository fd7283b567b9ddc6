// Conversion of size and channels.
#include "resample.h"

#include "heed/config/data.h"

#include <algorithm>
#include <cmath>

namespace heed {

std::string to_string(const ImageSize& size) { return fmt::format("{}x{}x{}", size.channels, size.height, size.width); }

namespace {

Image to_grey(const Image& image) {
  const Index n = image.size.pixels();
  Image grey{{1, image.size.height, image.size.width}, std::vector<std::uint8_t>(n)};
  const std::uint8_t *red = image.pixels.data(), *green = red + n, *blue = green + n;
  for (Index i = 0; i < n; ++i) {
    const int sum = 299 * red[i] + 587 * green[i] + 114 * blue[i];  // exact in integers
    grey.pixels[i] = static_cast<std::uint8_t>((sum + 500) / 1000);
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

/// Returns the offset of a centred window of `size` in `all`; halves are rounded to even, as in Python.
Index middle(Index all, Index size) {
  const Index half = (all - size) / 2;
  return (all - size) % 2 == 0 ? half : half + half % 2;
}

Image middle_of(const Image& image, ImageSize target, const DataConfig& data) {
  const auto covered = [&](Index side) { return std::llround(static_cast<double>(side) / data.crop_fraction); };
  const Index rows = covered(target.height), columns = covered(target.width);
  const auto [channels, height, width] = image.size;
  // Resizes the axis that needs the larger factor to `rows` or `columns`, and the other axis in proportion.
  const bool by_rows = rows * width >= columns * height;
  const Index new_height = by_rows ? rows : columns * height / width;
  const Index new_width = by_rows ? rows * width / height : columns;
  const Box all{0, 0, height, width};
  const Filter filter = data.interpolation == "bicubic" ? Filter::cubic : Filter::linear;
  const Image large = resampled(image, all, new_height, new_width, filter);
  const Index top = middle(new_height, target.height), left = middle(new_width, target.width);
  return resampled(large, {top, left, top + target.height, left + target.width}, target.height, target.width, filter);
}

}  // namespace

Image fitted(Image image, ImageSize target, const DataConfig& data) {
  if (image.size.channels == 3 && target.channels == 1) image = to_grey(image);
  if (data.resize == "crop") image = middle_of(image, target, data);
  return convert(std::move(image), target);
}

Image convert(Image image, ImageSize target) {
  require(target.channels == 1 || target.channels == 3, "an image can have 1 or 3 channels, not {}", target.channels);
  require(target.height >= 1 && target.width >= 1, "an image of {} is empty", to_string(target));
  // Resampling runs on whichever format has fewer channels.
  if (image.size.channels == 3 && target.channels == 1) image = to_grey(image);
  if (image.size.height != target.height || image.size.width != target.width)
    image = resampled(image, {0, 0, image.size.height, image.size.width}, target.height, target.width, Filter::linear);
  if (image.size.channels == 1 && target.channels == 3) grey_to_rgb(image);
  return image;
}

}  // namespace heed
