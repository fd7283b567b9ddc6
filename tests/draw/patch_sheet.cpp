// Pictures of patches: positions of colours.
#include "heed/draw/patch_sheet.h"
#include "draw/pixel.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using heed::test::pixel;

namespace {

constexpr Colour blue{31, 119, 180}, orange{255, 127, 14};

/// Returns a picture of 4 x 4 pixels of one brightness, in patches of 2 x 2.
PatchPicture picture(std::uint8_t brightness, std::vector<int> predicted, std::vector<int> truth) {
  return {{{1, 4, 4}, std::vector<std::uint8_t>(16, brightness)}, std::move(predicted), std::move(truth)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(draw_patches)

// Three columns of 4 pixels, separated by 2, all scaled by 3; so are the rows.
BOOST_AUTO_TEST_CASE(image_told_and_truth_stand_side_by_side) {
  const Image sheet =
      patch_sheet({picture(200, {1, 0, 2, 11}, {0, 1, 1, 2}), picture(90, {2, 2, 2, 2}, {1, 1, 1, 1})}, {}, 2, 3);
  BOOST_TEST(sheet.size.height == 3 * (2 * 4 + 2));
  BOOST_TEST(sheet.size.width == 3 * (3 * 4 + 2 * 2));
  const auto patch = [&](Index picture, Index column, Index row, Index across) {
    return pixel(sheet, 3 * (6 * picture + 2 * row) + 1, 3 * (6 * column + 2 * across) + 1);
  };
  BOOST_TEST((patch(0, 0, 1, 1) == Colour{200, 200, 200}));
  BOOST_TEST((patch(0, 1, 0, 0) == over_grey(blue, 200)));
  BOOST_TEST((patch(0, 1, 0, 1) == Colour{100, 100, 100}));  // background, darker
  BOOST_TEST((patch(0, 1, 1, 0) == over_grey(orange, 200)));
  BOOST_TEST((patch(0, 1, 1, 1) == over_grey(blue, 200)));  // the eleventh class has the first's colour again
  BOOST_TEST((patch(0, 2, 0, 0) == Colour{100, 100, 100}));
  BOOST_TEST((patch(0, 2, 0, 1) == over_grey(blue, 200)));
  BOOST_TEST((patch(0, 2, 1, 1) == over_grey(orange, 200)));
  BOOST_TEST((patch(1, 0, 0, 0) == Colour{90, 90, 90}));
  BOOST_TEST((patch(1, 1, 0, 0) == over_grey(orange, 90)));
  BOOST_TEST((patch(1, 2, 0, 0) == over_grey(blue, 90)));
  BOOST_TEST((pixel(sheet, 0, 3 * 4) == Colour{255, 255, 255}));
  BOOST_TEST((pixel(sheet, 3 * 4, 0) == Colour{255, 255, 255}));
}

// Patches are 20 pixels wide.
BOOST_AUTO_TEST_CASE(large_patches_have_the_initial_of_their_class) {
  const std::vector<std::string> names{"background", "zero", "one"};
  const Image sheet = patch_sheet({picture(200, {1, 0, 0, 0}, {0, 2, 0, 0})}, names, 2, 10);
  const auto drawn = [&](Index column, Index row, Index across, const char* letter) {
    Canvas canvas(20, 20, {255, 255, 255});
    canvas.text(3, (20 - text_width(letter)) / 2, letter, {0, 0, 0});
    for (Index y = 0; y < 20; ++y)
      for (Index x = 0; x < 20; ++x)
        if ((pixel(sheet, 20 * row + y, 10 * (6 * column + 2 * across) + x) == Colour{0, 0, 0}) !=
            (pixel(canvas.image(), y, x) == Colour{0, 0, 0}))
          return false;
    return true;
  };
  BOOST_TEST(drawn(1, 0, 0, "z"));
  BOOST_TEST(drawn(2, 0, 1, "o"));
  BOOST_TEST(!drawn(2, 0, 1, "z"));
  BOOST_TEST(drawn(1, 1, 1, ""));
  // Letters, 14 pixels high, are not drawn in patches of 18 pixels.
  const Image small = patch_sheet({picture(200, {1, 0, 0, 0}, {0, 2, 0, 0})}, names, 2, 9);
  for (Index i = 0; i < small.size.pixels(); ++i)
    BOOST_REQUIRE(!(pixel(small, i / small.size.width, i % small.size.width) == Colour{0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(the_legend_names_colours) {
  BOOST_TEST(patch_legend({"background", "zero", "one"}) == "zero blue, one orange");
  BOOST_TEST(patch_legend({"-", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}) ==
             "a blue, b orange, c green, d red, e violet, f brown, g pink, h grey, i olive, j cyan, k blue");
}

// Pictures of 4 x 6 pixels: two rows of three patches. The second picture's letters are drawn on the second picture,
// not on the first.
BOOST_AUTO_TEST_CASE(pictures_may_be_wide) {
  const std::vector<std::string> names{"background", "zero", "one"};
  const PatchPicture plain{{{1, 4, 6}, std::vector<std::uint8_t>(24, 200)}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
  PatchPicture marked = plain;
  marked.predicted = {0, 0, 1, 0, 0, 0}, marked.truth = {0, 0, 0, 2, 0, 0};
  const Image sheet = patch_sheet({plain, marked}, names, 2, 10);
  BOOST_TEST((sheet.size == ImageSize{3, 10 * (2 * 4 + 2), 10 * (3 * 6 + 2 * 2)}));
  for (Index row = 0; row < 4; ++row)
    for (Index across = 0; across < 3; ++across)
      for (const Index column : {1, 2}) {
        const Index y = 10 * (row < 2 ? 2 * row : 6 + 2 * (row - 2)), x = 10 * (8 * column + 2 * across);
        const bool first = column == 1 && row == 2 && across == 2, second = column == 2 && row == 3 && across == 0;
        const Colour expected = first ? over_grey(blue, 200) : second ? over_grey(orange, 200) : Colour{100, 100, 100};
        BOOST_TEST((pixel(sheet, y + 1, x + 1) == expected), row << " " << across << " " << column);
        Index black = 0;
        for (Index i = 0; i < 400; ++i) black += pixel(sheet, y + i / 20, x + i % 20) == Colour{0, 0, 0};
        BOOST_TEST((black > 0) == (first || second), row << " " << across << " " << column);
      }
}

BOOST_AUTO_TEST_SUITE_END()
