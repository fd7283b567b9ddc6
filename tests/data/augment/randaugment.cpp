// RandAugment's operations compared with hand calculations.
#include "src/data/augment/augment.h"

#include "support/images.h"

#include <algorithm>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

Bytes applied(const std::string& name, Image image, double strength, double sign = 1) {
  for (const AugmentOperation& operation : randaugment_operations())
    if (operation.name == name) {
      operation.apply(image, strength, sign);
      return image.pixels;
    }
  BOOST_FAIL("no operation is named " << name);
  return {};
}

void check(const Bytes& got, const Bytes& expected) { BOOST_TEST(got == expected, boost::test_tools::per_element()); }

}  // namespace

BOOST_AUTO_TEST_SUITE(data_randaugment)

BOOST_AUTO_TEST_CASE(values_by_hand) {
  const Image row{{1, 1, 4}, {50, 60, 90, 100}};
  check(applied("identity", row, 1), row.pixels);
  check(applied("autocontrast", row, 1), {0, 51, 204, 255});
  check(applied("solarize", row, 0.625), {50, 60, 90, 155});  // threshold 96
  check(applied("posterize", row, 1), {48, 48, 80, 96});      // four bits dropped
  check(applied("posterize", row, 0.5), {48, 60, 88, 100});   // two bits
  check(applied("posterize", row, 0.7), {48, 56, 88, 96});    // 2.8, rounded to three
  check(applied("posterize", row, 0.6), {48, 60, 88, 100});   // 2.4, rounded to two
  check(applied("autocontrast", {{1, 1, 3}, {77, 77, 77}}, 1), {77, 77, 77});
  check(applied("brightness", row, 1), {95, 114, 171, 190});
  check(applied("brightness", row, 1, -1), {5, 6, 9, 10});
  check(applied("contrast", row, 1), {28, 47, 104, 123});  // mean 75: 75 + 1.9 * -25 = 27.5, ...
  // Grey is (299 100 + 587 50 + 114 200) / 1000 = 82: 82 + 0.1 (x - 82) and 82 + 1.9 (x - 82).
  check(applied("color", {{3, 1, 1}, {100, 50, 200}}, 1, -1), {84, 79, 94});
  check(applied("color", {{3, 1, 1}, {100, 50, 200}}, 1), {116, 21, 255});
  // The mean of grey 82 and 0: 41 + 1.9 (x - 41) and 41 + 0.1 (x - 41).
  const Image colours{{3, 1, 2}, {100, 0, 50, 0, 200, 0}};
  check(applied("contrast", colours, 1), {153, 0, 58, 0, 255, 0});
  check(applied("contrast", colours, 1, -1), {47, 37, 42, 37, 57, 37});
}

// 2048 pixels: 1024 of 10, 512 of 20, 512 of 30. Pillow's step is (2048 - 512) / 255 = 6; the values become (3 + 0) /
// 6, (3 + 1024) / 6 and (3 + 1536) / 6, the last clipped to 255.
BOOST_AUTO_TEST_CASE(equalize_by_hand) {
  Image image{{1, 32, 64}, Bytes(2048, 10)};
  std::fill(image.pixels.begin() + 1024, image.pixels.end(), std::uint8_t{20});
  std::fill(image.pixels.begin() + 1536, image.pixels.end(), std::uint8_t{30});
  const Bytes got = applied("equalize", image, 1);
  check({got[0], got[1023], got[1024], got[1535], got[1536], got[2047]}, {0, 0, 171, 171, 255, 255});
}

// The middle pixel, 130, has the smoothed value (8 0 + 5 130) / 13 = 50; only inner pixels change.
BOOST_AUTO_TEST_CASE(sharpness_by_hand) {
  const Image dot{{1, 3, 3}, {0, 0, 0, 0, 130, 0, 0, 0, 0}};
  check(applied("sharpness", dot, 1), {0, 0, 0, 0, 202, 0, 0, 0, 0});     // 50 + 1.9 * 80
  check(applied("sharpness", dot, 1, -1), {0, 0, 0, 0, 58, 0, 0, 0, 0});  // 50 + 0.1 * 80
}

BOOST_AUTO_TEST_CASE(geometry_by_hand) {
  const Image image{{1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const double quarter_turn = 3, one_pixel = 1 / (0.45 * 3), one_per_row = 1 / 0.3;
  check(applied("rotate", image, quarter_turn), {3, 6, 9, 2, 5, 8, 1, 4, 7});
  check(applied("rotate", image, quarter_turn, -1), {7, 4, 1, 8, 5, 2, 9, 6, 3});
  check(applied("translate-x", image, one_pixel), {2, 3, 0, 5, 6, 0, 8, 9, 0});
  check(applied("translate-y", image, one_pixel, -1), {0, 0, 0, 1, 2, 3, 4, 5, 6});
  check(applied("shear-x", image, one_per_row), {0, 1, 2, 4, 5, 6, 8, 9, 0});
  check(applied("shear-y", image, one_per_row), {0, 2, 6, 1, 5, 9, 4, 8, 0});
  // Half a pixel to the left: the mean of two neighbours, halves rounded up.
  check(applied("translate-x", image, one_pixel / 2), {2, 3, 2, 5, 6, 3, 8, 9, 5});
}

// Translations are fractions of the width or of the height, and each axis has its own centre.
BOOST_AUTO_TEST_CASE(geometry_of_an_image_that_is_not_square) {
  const Image image{{1, 3, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  const double half_turn = 6, one_column = 1 / (0.45 * 5), one_row = 1 / (0.45 * 3), one_per_row = 1 / 0.3;
  check(applied("rotate", image, half_turn), {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  check(applied("translate-x", image, one_column), {2, 3, 4, 5, 0, 7, 8, 9, 10, 0, 12, 13, 14, 15, 0});
  check(applied("translate-y", image, one_row), {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0});
  check(applied("shear-x", image, one_per_row), {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 0});
  check(applied("shear-y", image, one_per_row), {0, 0, 3, 9, 15, 0, 2, 8, 14, 0, 1, 7, 13, 0, 0});
}

// All operations except those of saturation and contrast, which use the grey level, change each channel separately.
BOOST_AUTO_TEST_CASE(channels_are_changed_one_by_one) {
  constexpr Index height = 20, width = 30, pixels = height * width;
  Image image{{3, height, width}, {}};
  for (Index i = 0; i < 3 * pixels; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(10 + 60 * (i / pixels) + 37 * i % 100));
  for (const AugmentOperation& operation : randaugment_operations()) {
    const std::string name = operation.name;
    if (name == "color" || name == "contrast") continue;
    const Bytes all = applied(name, image, 0.7);
    for (Index c = 0; c < 3; ++c) {
      const auto first = image.pixels.begin() + c * pixels;
      const Bytes alone = applied(name, {{1, height, width}, {first, first + pixels}}, 0.7);
      BOOST_TEST(std::equal(alone.begin(), alone.end(), all.begin() + c * pixels), name << ", channel " << c);
    }
  }
}

// An inner pixel x moves away from (4 x + the sum of the 3 x 3 pixels centred on x) / 13, rounded.
BOOST_AUTO_TEST_CASE(sharpness_of_an_image_that_is_not_square) {
  const Image image = pattern({1, 4, 6}, 3);
  const auto byte = [](double x) { return static_cast<std::uint8_t>(std::clamp(x + 0.5, 0.0, 255.0)); };
  Bytes expected = image.pixels;
  for (std::size_t y = 1; y < 3; ++y)
    for (std::size_t x = 1; x < 5; ++x) {
      const int own = image.pixels[6 * y + x];
      int sum = 4 * own;
      for (std::size_t row = y - 1; row <= y + 1; ++row)
        for (std::size_t column = x - 1; column <= x + 1; ++column) sum += image.pixels[6 * row + column];
      const int smooth = byte(sum / 13.0);
      expected[6 * y + x] = byte(smooth + (1 + 0.9 * 0.5) * (own - smooth));
    }
  check(applied("sharpness", image, 0.5), expected);
}

// Magnitude 0 removes the effect of strength-dependent operations. The others are identity, autocontrast and equalize,
// which do not change an image that contains every value once.
BOOST_AUTO_TEST_CASE(randaugment_grows_with_magnitude) {
  Image even{{1, 16, 16}, {}};
  for (int i = 0; i < 256; ++i) even.pixels.push_back(static_cast<std::uint8_t>(37 * i));
  std::set<Bytes> seen;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Image still = even, moved = even;
    randaugment(still, 1, 0, RandomStream(i));
    BOOST_REQUIRE(still.pixels == even.pixels);
    randaugment(moved, 1, 9, RandomStream(i));
    seen.insert(moved.pixels);
  }
  // Without effect on this image: identity, autocontrast, equalize, and colour, since the image is grey. The same
  // effect for both signs: solarize, posterize. Two effects: rotate, contrast, brightness, sharpness, shears,
  // translations.
  BOOST_TEST(seen.size() == 1u + 2u + 16u);
}

// Several operations and their signs are drawn independently.
BOOST_AUTO_TEST_CASE(operations_and_signs_are_drawn_one_by_one) {
  const Image even = pattern({1, 16, 16}, 3);
  const std::span<const AugmentOperation> operations = randaugment_operations();
  for (std::uint64_t i = 0; i < 100; ++i) {
    const RandomStream stream(i);
    Image got = even, expected = even;
    randaugment(got, 3, 7, stream);
    for (const auto& [which, sign] : {std::pair<Index, Index>{0, 1}, {2, 3}, {4, 5}})
      operations[static_cast<std::size_t>(stream.below(which, static_cast<Index>(operations.size())))].apply(
          expected, 0.7, stream.below(sign, 2) == 1 ? 1 : -1);
    BOOST_TEST((got.pixels == expected.pixels), "draw " << i);
  }
}

// A single row is the smallest image that all operations must handle.
BOOST_AUTO_TEST_CASE(randaugment_keeps_the_size_and_repeats_itself) {
  const Image colours{{3, 1, 3}, {90, 200, 255, 90, 10, 255, 90, 10, 255}};
  for (std::uint64_t i = 0; i < 200; ++i) {
    Image a = colours, b = colours;
    randaugment(a, 3, 10, RandomStream(i));
    randaugment(b, 3, 10, RandomStream(i));
    BOOST_REQUIRE((a.size == colours.size));
    BOOST_REQUIRE(a.pixels.size() == colours.pixels.size());
    BOOST_REQUIRE(a.pixels == b.pixels);
  }
}

BOOST_AUTO_TEST_SUITE_END()
