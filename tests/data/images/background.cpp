// Background of the objects in images.
#include "heed/data/images/background.h"

#include "support/images.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns grey images of 6 x 6, each with an edge of one level, then `without` images without a background.
MemoryDataset with_edges(const Bytes& levels, int without = 0) {
  Bytes pixels;
  for (const std::uint8_t level : levels)
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < 6; ++column)
        pixels.push_back(row % 5 == 0 || column % 5 == 0 ? level : static_cast<std::uint8_t>(128));
  for (int i = 0; i < without; ++i) {
    const Image image = pattern({1, 6, 6}, i);
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
  }
  return MemoryDataset("edges", {"one"}, {1, 6, 6}, pixels, Bytes(pixels.size() / 36, 0));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_background)

BOOST_AUTO_TEST_CASE(of_an_image) {
  Image image;
  with_edges({240}).read(0, image);
  BOOST_TEST(background(image).value() == 240);
  image.pixels[0] = image.pixels[1] = image.pixels[2] = image.pixels[3] = 0;  // four of twenty edge pixels
  BOOST_TEST(background(image).value() == 240);
  image.pixels[4] = 0;
  BOOST_TEST(!background(image).has_value());
  BOOST_TEST(!background(pattern({3, 9, 9}, 0)).has_value());
}

// Images of 3 x 9 and 9 x 3 pixels have twenty edge pixels. With four dark ones at the bottom or on the right, the
// level of the others is the background; with five, there is no background. The seven inner pixels do not count.
BOOST_AUTO_TEST_CASE(of_an_image_that_is_not_square) {
  for (const bool tall : {false, true})
    for (const std::size_t dark : {4, 5}) {
      Image image{{1, tall ? 9 : 3, tall ? 3 : 9}, Bytes(27, 240)};
      for (std::size_t i = 1; i < 8; ++i) image.pixels[tall ? 3 * i + 1 : 9 + i] = 100;
      for (std::size_t i = 2; i < 2 + dark; ++i) image.pixels[tall ? 3 * i + 2 : 18 + i] = 0;
      BOOST_TEST((background(image) == (dark == 4 ? std::optional(240) : std::nullopt)), tall << ", " << dark);
    }
}

BOOST_AUTO_TEST_CASE(of_a_data_set) {
  BOOST_TEST(common_background(with_edges({0, 5, 10, 0, 200})).value() == 5);
  BOOST_TEST(!common_background(with_edges({0, 5, 200, 0, 200})).has_value());
}

// At least four fifths of all images must agree, including those without a background.
BOOST_AUTO_TEST_CASE(images_without_a_background_disagree) {
  BOOST_TEST(common_background(with_edges({0, 5, 10, 0}, 1)).value() == 5);
  BOOST_TEST(!common_background(with_edges({0, 5, 10, 0}, 2)).has_value());
  BOOST_TEST(!common_background(with_edges({255, 255}, 18)).has_value());
  BOOST_TEST(!common_background(with_edges({}, 5)).has_value());
}

// Images are often sorted by class, so the images that are read are spread over the whole set.
BOOST_AUTO_TEST_CASE(images_of_the_whole_set_are_read) {
  Bytes levels(100, 0);
  levels.resize(500, 250);
  BOOST_TEST(common_background(with_edges(levels)).value() == 250);
}

// A level agrees with the median if it is at most 32 above or below. Fifteen of an image's twenty edge pixels agree in
// any case, and so do three of four images; `level` decides whether four fifths agree.
BOOST_AUTO_TEST_CASE(levels_agree_up_to_a_distance_of_32) {
  for (const int distance : {-33, -32, 32, 33}) {
    const auto level = static_cast<std::uint8_t>(100 + distance);
    const std::optional<int> expected = std::abs(distance) == 32 ? std::optional(100) : std::nullopt;
    Image image;
    with_edges({100}).read(0, image);
    std::fill_n(image.pixels.begin(), 4, std::uint8_t{0});
    image.pixels[4] = level;
    BOOST_TEST((background(image) == expected), distance);
    BOOST_TEST((common_background(with_edges({100, 100, 100, level})) == expected), distance);
  }
}

BOOST_AUTO_TEST_SUITE_END()
