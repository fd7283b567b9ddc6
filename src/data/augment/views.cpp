#include "heed/base/math.h"

#include "views.h"

#include "augment.h"
#include "src/data/images/colour.h"

#include <cmath>

namespace heed {

Box draw_part(ImageSize size, const std::vector<double>& scale, const RandomStream& stream) {
  constexpr double narrowest = 3.0 / 4, widest = 4.0 / 3;
  constexpr Index tries = 10;
  const double height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  for (Index k = 0; k < 4 * tries; k += 4) {
    const double area = height * width * stream.uniform(k, scale[0], scale[1]);
    const double aspect = math::exp(stream.uniform(k + 1, math::log(narrowest), math::log(widest)));
    const Index rows = std::lround(std::sqrt(area / aspect)), columns = std::lround(std::sqrt(area * aspect));
    if (rows < 1 || columns < 1 || rows > size.height || columns > size.width) continue;
    const Index top = stream.below(k + 2, size.height - rows + 1), left = stream.below(k + 3, size.width - columns + 1);
    return {top, left, top + rows, left + columns};
  }
  const Index rows = std::min(size.height, static_cast<Index>(std::lround(width / narrowest)));
  const Index columns = std::min(size.width, static_cast<Index>(std::lround(height * widest)));
  const Index top = (size.height - rows) / 2, left = (size.width - columns) / 2;
  return {top, left, top + rows, left + columns};
}

void jitter(Image& image, const RandomStream& stream) {
  constexpr Index count = 4;
  Index order[count] = {0, 1, 2, 3};
  for (Index i = count - 1; i > 0; --i) std::swap(order[i], order[stream.below(i, i + 1)]);
  const RandomStream factors = stream.derive("factors");
  for (const Index change : order) {
    if (change == 0) change_brightness(image, factors.uniform(0, 0.6, 1.4));
    if (change == 1) change_contrast(image, factors.uniform(1, 0.6, 1.4));
    if (change == 2) change_saturation(image, factors.uniform(2, 0.8, 1.2));
    if (change == 3) turn_hue(image, factors.uniform(3, -0.1, 0.1));
  }
}

ViewMaker::ViewMaker(const DataConfig& data, const DinoConfig& dino, ImageSize large)
    : dino_(dino), large_(large), small_{large.channels, dino.local_size, dino.local_size} {
  const std::pair<const char*, bool*> names[] = {
      {"flip", &flip_}, {"jitter", &jitter_}, {"grey", &grey_}, {"blur", &blur_}, {"solarise", &solarise_}};
  for (const auto& [name, asked] : names)
    *asked = std::find(data.augment.begin(), data.augment.end(), name) != data.augment.end();
}

Image ViewMaker::operator()(const Image& image, Index view, const RandomStream& stream) const {
  const Box part = draw_part(image.size, view < 2 ? dino_.global_scale : dino_.local_scale, stream.derive("part"));
  Image result = resampled(image, part, size(view).height, size(view).width, Filter::cubic);
  const auto happens = [&](const char* change, double probability) {
    return stream.derive(change).uniform(0) < probability;
  };
  if (flip_ && happens("flip", 0.5)) flip(result);
  if (jitter_ && happens("jitter", 0.8)) jitter(result, stream.derive("jitter").derive("how"));
  if (grey_ && happens("grey", 0.2)) result = grey_of(result);
  if (blur_ && happens("blur", view == 0 ? 1 : view == 1 ? 0.1 : 0.5))
    blur(result, stream.derive("blur").uniform(1, 0.1, 2));
  if (solarise_ && view == 1 && happens("solarise", 0.2)) solarise(result);
  return result;
}

}  // namespace heed
