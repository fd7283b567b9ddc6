// Change of size and of channels.
#include "support/images.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(data_convert)

BOOST_AUTO_TEST_CASE(the_same_size_changes_nothing) {
  const Image image = pattern({3, 5, 7}, 1);
  BOOST_TEST(convert(image, image.size).pixels == image.pixels, boost::test_tools::per_element());
}

// Each output pixel of an enlargement by 2 lies a quarter of a pixel from an input pixel: it is 3/4 of that pixel and
// 1/4 of the next one on its side, which is missing at the edge.
BOOST_AUTO_TEST_CASE(growing_interpolates) {
  const Image row{{1, 1, 3}, {0, 100, 200}};
  BOOST_TEST(convert(row, {1, 1, 6}).pixels == (Bytes{0, 25, 75, 125, 175, 200}), boost::test_tools::per_element());
  const Image column{{1, 3, 1}, {0, 100, 200}};
  BOOST_TEST(convert(column, {1, 6, 1}).pixels == (Bytes{0, 25, 75, 125, 175, 200}), boost::test_tools::per_element());
}

// Halving: the triangle filter is centred between pixels 2k and 2k+1 and extends 2 pixels to each side. Its weights
// are proportional to 1/4, 3/4, 3/4, 1/4; at the edges the outer 1/4 is missing.
BOOST_AUTO_TEST_CASE(shrinking_averages_all_pixels) {
  const Image row{{1, 1, 4}, {0, 80, 160, 240}};
  // (3/4 0 + 3/4 80 + 1/4 160) / (7/4) = 57.1; mirrored: 182.9
  BOOST_TEST(convert(row, {1, 1, 2}).pixels == (Bytes{57, 183}), boost::test_tools::per_element());
  // At half its size, a checkerboard is uniform away from the edges.
  Image board{{1, 16, 16}, {}};
  for (int i = 0; i < 256; ++i) board.pixels.push_back((i / 16 + i) % 2 == 0 ? 0 : 255);
  const Image half = convert(board, {1, 8, 8});
  for (int y = 1; y < 7; ++y)
    for (int x = 1; x < 7; ++x) BOOST_TEST(std::abs(half.pixels[static_cast<std::size_t>(8 * y + x)] - 128) <= 1);
}

// Rows are narrowed in strips of 64.
BOOST_AUTO_TEST_CASE(each_row_is_narrowed_by_itself) {
  constexpr Index rows = 150, columns = 7, narrow = 3;
  Image all{{1, rows, columns}, {}};
  for (Index i = 0; i < rows * columns; ++i) all.pixels.push_back(static_cast<std::uint8_t>(i * i % 251));
  const Image result = convert(all, {1, rows, narrow});
  for (Index y = 0; y < rows; ++y) {
    const auto row = all.pixels.begin() + y * columns;
    const Image alone = convert(Image{{1, 1, columns}, {row, row + columns}}, {1, 1, narrow});
    BOOST_TEST(std::equal(alone.pixels.begin(), alone.pixels.end(), result.pixels.begin() + y * narrow), "row " << y);
  }
}

BOOST_AUTO_TEST_CASE(a_flat_image_stays_flat_at_any_size) {
  const Image flat{{3, 10, 14}, Bytes(3 * 140, 77)};
  for (const ImageSize size : {ImageSize{3, 3, 5}, ImageSize{3, 31, 17}, ImageSize{3, 1, 1}, ImageSize{3, 10, 29}}) {
    const Image image = convert(flat, size);
    BOOST_TEST((image.size == size));
    BOOST_TEST(image.pixels == Bytes(static_cast<std::size_t>(size.elements()), 77), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(grey_and_colour) {
  const Image colour{{3, 1, 4}, {255, 0, 0, 9, 0, 255, 0, 9, 0, 0, 255, 9}};
  BOOST_TEST(convert(colour, {1, 1, 4}).pixels == (Bytes{76, 150, 29, 9}), boost::test_tools::per_element());
  const Image grey{{1, 1, 2}, {3, 250}};
  BOOST_TEST(convert(grey, {3, 1, 2}).pixels == (Bytes{3, 250, 3, 250, 3, 250}), boost::test_tools::per_element());
  check_error([&] { convert(grey, {2, 1, 2}); }, {"1 or 3 channels", "2"});
}

// The shorter side of 10 x 8 is already 7 / 0.875, so the centre is cropped without resampling. The offsets (10 - 7) /
// 2 and (8 - 7) / 2 are rounded to the even numbers 2 and 0, as by Python's round in torchvision's CenterCrop.
BOOST_AUTO_TEST_CASE(the_middle_is_cut_out) {
  DataConfig data;
  data.resize = "crop";
  Image image{{1, 10, 8}, {}};
  for (int i = 0; i < 80; ++i) image.pixels.push_back(static_cast<std::uint8_t>(3 * i));
  const Image middle = fitted(image, {1, 7, 7}, data);
  for (int y = 0; y < 7; ++y)
    for (int x = 0; x < 7; ++x) BOOST_TEST(middle.pixels[static_cast<std::size_t>(7 * y + x)] == 3 * ((y + 2) * 8 + x));
  data.resize = "squash";
  BOOST_TEST(fitted(image, {1, 7, 7}, data).pixels == convert(image, {1, 7, 7}).pixels,
             boost::test_tools::per_element());
}

// The expected pixels are from Pillow 9.4, Image.resize((7, 9), BICUBIC or BILINEAR).crop((0, 2, 6, 8)), for a grey
// image of 12 rows and 9 columns. Pillow rounds between its passes over rows and columns, which changes a pixel by at
// most one level.
BOOST_AUTO_TEST_CASE(the_crop_is_pillows) {
  Image image{{1, 12, 9}, {}};
  for (int y = 0; y < 12; ++y)
    for (int x = 0; x < 9; ++x) image.pixels.push_back(static_cast<std::uint8_t>(40 + 10 * y + 6 * x + x * y % 5 * 7));
  const std::pair<const char*, Bytes> by_pillow[] = {
      {"bicubic", {74,  95,  104, 106, 107, 126, 87,  109, 109, 109, 121, 139, 96,  107, 120, 131, 127, 139,
                   111, 135, 142, 152, 143, 168, 128, 150, 158, 158, 162, 180, 139, 157, 158, 160, 172, 187}},
      {"bilinear", {75,  94,  102, 106, 108, 124, 89,  108, 110, 112, 121, 137, 98,  109, 120, 131, 129, 140,
                    113, 134, 140, 150, 145, 165, 129, 148, 156, 158, 162, 178, 141, 157, 159, 163, 172, 186}}};
  for (const auto& [interpolation, expected] : by_pillow) {
    DataConfig data;
    data.resize = "crop", data.interpolation = interpolation;
    const Image crop = fitted(image, {1, 6, 6}, data);
    for (std::size_t i = 0; i < expected.size(); ++i)
      BOOST_TEST(std::abs(crop.pixels[i] - expected[i]) <= 1, interpolation << ", " << i);
  }
}

// With crop_fraction 0.5, the shorter side of the 8 x 10 image is already 4 / 0.5. For a wide target, a 16 x 16 image
// is resized to the target's width and loses rows; for a tall one, it is resized to the target's height and loses
// columns.
BOOST_AUTO_TEST_CASE(the_middle_has_the_fraction_and_the_sides_asked_for) {
  DataConfig data;
  data.resize = "crop", data.crop_fraction = 0.5, data.interpolation = "bilinear";
  Image image{{1, 8, 10}, {}};
  for (int i = 0; i < 80; ++i) image.pixels.push_back(static_cast<std::uint8_t>(3 * i));
  const Image middle = fitted(image, {1, 4, 4}, data);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      BOOST_TEST(middle.pixels[static_cast<std::size_t>(4 * y + x)] == 3 * ((y + 2) * 10 + x + 3));
  data.crop_fraction = 1;
  const Image square = pattern({1, 16, 16}, 1), half = convert(square, {1, 8, 8});
  const Image wide = fitted(square, {1, 4, 8}, data), high = fitted(square, {1, 8, 4}, data);
  for (std::size_t i = 0; i < 32; ++i) {
    BOOST_TEST(wide.pixels[i] == half.pixels[16 + i]);
    BOOST_TEST(high.pixels[i] == half.pixels[i / 4 * 8 + 2 + i % 4]);
  }
}

// An image of 11 x 9 becomes int(7 * 11 / 9) = 8 by 7, as in torchvision, not 9 by 7; the centre of 6 x 6 begins at 1
// and 0.
BOOST_AUTO_TEST_CASE(the_longer_side_is_rounded_down) {
  DataConfig data;
  data.resize = "crop", data.interpolation = "bilinear";
  for (const bool tall : {true, false}) {
    const Image image = pattern(tall ? ImageSize{1, 11, 9} : ImageSize{1, 9, 11}, 5);
    const Image reduced = convert(image, tall ? ImageSize{1, 8, 7} : ImageSize{1, 7, 8});
    const Image middle = fitted(image, {1, 6, 6}, data);
    for (std::size_t y = 0; y < 6; ++y)
      for (std::size_t x = 0; x < 6; ++x)
        BOOST_TEST(middle.pixels[6 * y + x] == reduced.pixels[tall ? 7 * (y + 1) + x : 8 * y + x + 1]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
