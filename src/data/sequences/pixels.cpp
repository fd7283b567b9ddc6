#include "heed/data/sequences/pixels.h"

#include "src/data/augment/augment.h"
#include "heed/data/dataset.h"
#include "token_sets.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

void make_grey(Image& image) {
  const Index n = image.size.pixels();
  for (Index i = 0; i < n && image.size.channels == 3; ++i) {
    const auto channel = [&](Index c) { return static_cast<double>(image.pixels[c * n + i]); };
    const double grey = (0.2989 * channel(0) + 0.587 * channel(1) + 0.114 * channel(2)) * (255.5 / 255);
    image.pixels[i] = static_cast<std::uint8_t>(std::floor(grey));
  }
  image.size.channels = 1;
  image.pixels.resize(n);
}

/// Replaces each square cell by its mean, rounded half up: floor(sum / n + 1/2) = floor((2 sum + n) / 2n).
void shrink(Image& image, Index side) {
  const Index cell = image.size.height / side, n = cell * cell, width = image.size.width;
  Image small{{image.size.channels, side, side}, {}};
  for (Index c = 0; c < small.size.channels; ++c)
    for (Index y = 0; y < side; ++y)
      for (Index x = 0; x < side; ++x) {
        Index sum = 0;
        for (Index i = 0; i < n; ++i)
          sum += image.pixels[(c * image.size.height + y * cell + i / cell) * width + x * cell + i % cell];
        small.pixels.push_back(static_cast<std::uint8_t>((2 * sum + n) / (2 * n)));
      }
  image = std::move(small);
}

/// Images of a data set as sequences. Augmentation mirrors an image with probability 1/2 (flip) and shifts its values
/// by -10 to 10 (shift).
class PixelSequences : public SequenceSet {
 public:
  PixelSequences(std::unique_ptr<Dataset> images, const DataConfig& data)
      : SequenceSet(images->class_names(), data.levels, false, token_image(images->image_size(), data).elements()),
        images_(std::move(images)),
        data_(data),
        flip_(asks_for("flip")),
        shift_(asks_for("shift")) {
    files_ = images_->files();
  }

  Index size() const override { return images_->size(); }
  int label(Index example) const override { return images_->label(example); }
  void read(Index example, Index, const RandomStream* chance, std::vector<int>& to) const override {
    Image image;
    images_->read(example, image);
    if (chance && flip_ && chance->derive("flip").below(0, 2) == 1) flip(image);
    constexpr Index most = 10;
    const bool shifts = chance && shift_;
    to = pixel_tokens(image, data_,
                      shifts ? static_cast<int>(chance->derive("shift").below(0, 2 * most + 1) - most) : 0);
  }

 private:
  bool asks_for(const char* change) const {
    return std::find(data_.augment.begin(), data_.augment.end(), change) != data_.augment.end();
  }

  std::unique_ptr<Dataset> images_;
  DataConfig data_;
  bool flip_, shift_;
};

}  // namespace

ImageSize token_image(const ImageSize& size, const DataConfig& data) {
  const Index side = data.side == 0 ? size.height : data.side;
  require(size.height == size.width && size.height % side == 0, "[data] side = {} does not divide images of {}x{}",
          data.side, size.height, size.width);
  return {data.grey ? 1 : size.channels, side, side};
}

std::vector<int> pixel_tokens(const Image& original, const DataConfig& data, int shift) {
  const ImageSize size = token_image(original.size, data);
  Image image = original;
  if (data.grey) make_grey(image);
  if (size.height != image.size.height) shrink(image, size.height);
  std::vector<int> tokens;
  tokens.reserve(image.pixels.size());
  for (Index place = 0; place < size.pixels(); ++place)
    for (Index c = 0; c < size.channels; ++c) {
      const int byte = image.pixels[c * size.pixels() + place];
      const Index shifted = std::clamp<Index>(byte + shift, 0, byte_values - 1);
      tokens.push_back(static_cast<int>(shifted * data.levels / byte_values));
    }
  return tokens;
}

Image image_of_tokens(const std::vector<int>& tokens, const ImageSize& size, Index levels) {
  Image image{size, std::vector<std::uint8_t>(tokens.size())};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Index place = static_cast<Index>(i) / size.channels, c = static_cast<Index>(i) % size.channels;
    const Index middle = (2 * tokens[i] + 1) * byte_values / (2 * levels);
    image.pixels[c * size.pixels() + place] = static_cast<std::uint8_t>(middle);
  }
  return image;
}

std::shared_ptr<const SequenceSet> data::open_pixels(const DataConfig& data, Part part) {
  DataConfig images;
  images.name = data.source;
  images.path = data.path;
  images.recorded.classes = data.recorded.classes;  // checked by open_dataset()
  return std::make_shared<PixelSequences>(open_dataset(images, split_of(part)), data);
}

}  // namespace heed
