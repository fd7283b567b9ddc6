#include "heed/draw/patch_sheet.h"

#include "canvas.h"
#include "colour.h"

#include <fmt/format.h>

namespace heed {

namespace {

struct ClassColour {
  const char* name;
  Colour colour;
};
constexpr ClassColour palette[] = {
    {"blue", {31, 119, 180}},    {"orange", {255, 127, 14}}, {"green", {44, 160, 44}},  {"red", {214, 39, 40}},
    {"violet", {148, 103, 189}}, {"brown", {140, 86, 75}},   {"pink", {227, 119, 194}}, {"grey", {160, 160, 160}},
    {"olive", {188, 189, 34}},   {"cyan", {23, 190, 207}},
};

const ClassColour& colour_of(Index label) { return palette[(label - 1) % static_cast<Index>(std::size(palette))]; }

}  // namespace

Image patch_sheet(const std::vector<PatchPicture>& pictures, const std::vector<std::string>& names, Index patch,
                  Index scale) {
  constexpr Index gap = 2;  // between the images, in image pixels
  const auto [channels, height, width] = pictures.front().image.size;
  const Index across = width + gap, down = height + gap;
  Canvas canvas((static_cast<Index>(pictures.size()) * down - gap) * scale, (3 * across - gap) * scale,
                {255, 255, 255});
  Index top = 0;
  for (const PatchPicture& picture : pictures) {
    const Image grey = convert(picture.image, {1, height, width});
    const auto draw = [&, top](Index place, Index y, Index x, Colour colour) {
      canvas.fill((top + y) * scale, (place * across + x) * scale, scale, scale, colour);
    };
    for (Index i = 0; i < grey.size.pixels(); ++i) {
      const Index y = i / grey.size.width, x = i % grey.size.width;
      const std::uint8_t pixel = grey.pixels[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(y / patch * (grey.size.width / patch) + x / patch);
      draw(0, y, x, {pixel, pixel, pixel});
      const auto half = static_cast<std::uint8_t>(pixel / 2);
      for (const auto& [place, label] : {std::pair<Index, int>{1, picture.predicted[at]}, {2, picture.truth[at]}})
        draw(place, y, x, label == 0 ? Colour{half, half, half} : over_grey(colour_of(label).colour, pixel));
    }
    const Index columns = width / patch, side = patch * scale;
    if (side > capital_height + 4)
      for (std::size_t i = 0; i < picture.truth.size(); ++i)
        for (const auto& [place, label] : {std::pair<Index, int>{1, picture.predicted[i]}, {2, picture.truth[i]}}) {
          if (label == 0) continue;
          const std::string letter = names[static_cast<std::size_t>(label)].substr(0, 1);
          const Index y = (top + static_cast<Index>(i) / columns * patch) * scale + (side - capital_height) / 2;
          const Index x = (place * across + static_cast<Index>(i) % columns * patch) * scale;
          canvas.text(y, x + (side - text_width(letter)) / 2, letter, {0, 0, 0});
        }
    top += down;
  }
  return canvas.image();
}

std::string patch_legend(const std::vector<std::string>& names) {
  std::string legend;
  for (std::size_t c = 1; c < names.size(); ++c)
    legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", names[c], colour_of(static_cast<Index>(c)).name);
  return legend;
}

}  // namespace heed
