#include "heed/data/readers/scenes.h"

#include <algorithm>

namespace heed {

namespace {

constexpr Index digit = 28;

RandomStream stream_of(Split split, std::uint64_t seed) {
  return split == Split::train ? RandomStream(seed).derive("scenes") : RandomStream(0).derive("test scenes");
}

}  // namespace

Scenes::Scenes(const std::string& source, const std::string& path, Split split, std::uint64_t seed, Index patch)
    : source_(open_dataset(source, path, split)),
      count_(split == Split::train ? train_count : test_count),
      patch_(patch),
      random_(stream_of(split, seed)) {
  const ImageSize size = source_->image_size();
  require(size == ImageSize{1, digit, digit}, "scenes: the images of {} are {}; expected {}", source, to_string(size),
          to_string(ImageSize{1, digit, digit}));
  require(side % patch == 0, "scenes: patches of {} do not divide a canvas of {}", patch, side);
}

std::vector<std::string> Scenes::class_names() const {
  std::vector<std::string> names{"background"};
  names.insert(names.end(), source_->class_names().begin(), source_->class_names().end());
  return names;
}

void Scenes::read(Index scene, Image& to, int* labels) const {
  HEED_ASSERT(scene >= 0 && scene < count_);
  const RandomStream random = random_.derive(scene);
  to.size = {1, side, side};
  to.pixels.assign(static_cast<std::size_t>(side * side), 0);
  std::vector<int> carried(to.pixels.size());
  Image image;
  const Index count = 1 + random.below(0, 4);
  for (Index i = 0; i < count; ++i) {
    const RandomStream chance = random.derive(i);
    const Index which = chance.below(0, source_->size());
    const Index top = chance.below(1, side - digit + 1), left = chance.below(2, side - digit + 1);
    source_->read(which, image);
    const int label = source_->label(which) + 1;
    for (Index y = 0; y < digit; ++y)
      for (Index x = 0; x < digit; ++x) {
        const std::uint8_t pixel = image.pixels[y * digit + x];
        const Index at = (top + y) * side + left + x;
        if (pixel == 0) continue;
        to.pixels[at] = pixel;
        carried[at] = pixel > 127 ? label : 0;
      }
  }
  const Index across = side / patch_;
  std::vector<Index> votes(classes());
  for (Index p = 0; p < across * across; ++p) {
    std::fill(votes.begin(), votes.end(), 0);
    for (Index y = 0; y < patch_; ++y)
      for (Index x = 0; x < patch_; ++x) ++votes[carried[(p / across * patch_ + y) * side + p % across * patch_ + x]];
    const bool enough = 4 * (patch_ * patch_ - votes[0]) >= patch_ * patch_;
    labels[p] = enough ? static_cast<int>(std::max_element(votes.begin() + 1, votes.end()) - votes.begin()) : 0;
  }
}

}  // namespace heed
