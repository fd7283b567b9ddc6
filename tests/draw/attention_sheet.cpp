// Pictures: text, colours, PNG files, attention sheets.
#include "heed/data/images/image_write.h"
#include "heed/draw/attention_sheet.h"
#include "heed/io/file.h"
#include "draw/pixel.h"
#include "src/draw/font.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <tuple>

using namespace heed;
using heed::test::pixel;

namespace {

constexpr Colour white{255, 255, 255}, black{0, 0, 0};

Index count(const Image& image, Colour colour) {
  Index found = 0;
  for (Index y = 0; y < image.size.height; ++y)
    for (Index x = 0; x < image.size.width; ++x) found += pixel(image, y, x) == colour;
  return found;
}

Image ramp(ImageSize size, int first) {
  Image image{size, {}};
  for (Index i = 0; i < size.elements(); ++i) image.pixels.push_back(static_cast<std::uint8_t>(first + 3 * i));
  return image;
}

/// Returns true if the rectangle at (y, x) has the text in this colour, and no other pixel of the colour.
bool has_text(const Image& image, Index y, Index x, const std::string& text, Colour colour) {
  const Index width = text_width(text);
  Canvas canvas(capital_height, width, white);
  canvas.text(0, 0, text, colour);
  for (Index row = 0; row < capital_height; ++row)
    for (Index column = 0; column < width; ++column)
      if ((pixel(canvas.image(), row, column) == colour) != (pixel(image, y + row, x + column) == colour)) return false;
  return true;
}

/// Returns a sheet of two blocks of two heads; the weight of patch p in head h is h + p.
AttentionSheet small_sheet() {
  AttentionSheet sheet{"Attention", "file.png", ramp({1, 8, 8}, 0), {2, 2}, {}, {}};
  for (int i = 0; i < 2; ++i) {
    Tensor<float> weights(Shape{2, 2, 2}, {0, 1, 2, 3, 1, 2, 3, 4});
    sheet.rows.push_back({{fmt::format("block {}", i + 1), "softmax"}, weights});
  }
  return sheet;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(draw)

BOOST_AUTO_TEST_CASE(png_files_hold_the_image) {
  const TemporaryDirectory directory;
  for (const Index channels : {1, 3}) {
    const Image image = ramp({channels, 5, 7}, 9);
    save_png(directory / "a.png", image);
    const Image read = load_image(directory / "a.png");
    BOOST_TEST((read.size == image.size));
    BOOST_TEST(read.pixels == image.pixels);
  }
}

BOOST_AUTO_TEST_CASE(every_ascii_glyph_has_a_look_of_its_own) {
  std::vector<std::vector<std::uint8_t>> seen;
  for (char c = ' '; c <= '~'; ++c) {
    Canvas canvas(24, 16, white);
    canvas.text(2, 2, std::string(1, c), black);
    BOOST_TEST((count(canvas.image(), black) > 0) == (c != ' '), c);
    BOOST_TEST(std::count(seen.begin(), seen.end(), canvas.image().pixels) == 0, c);
    seen.push_back(canvas.image().pixels);
  }
}

BOOST_AUTO_TEST_CASE(text_fills_the_width_that_it_claims) {
  const std::string line = "|block 12|";
  const Index width = text_width(line);
  Canvas canvas(capital_height, width + 10, white);
  canvas.text(0, 0, line, black);
  BOOST_TEST(count(canvas.image(), black) > 0);
  BOOST_TEST((pixel(canvas.image(), 0, 0) == black));
  BOOST_TEST((pixel(canvas.image(), capital_height - 1, width - 1) == black));
  for (Index x = width; x < width + 10; ++x)
    for (Index y = 0; y < capital_height; ++y) BOOST_TEST((pixel(canvas.image(), y, x) == white));
  BOOST_TEST(text_width("") == 0);
  BOOST_TEST(text_width("\xc3\xa9") == text_width("?"));  // one character of two bytes
}

BOOST_AUTO_TEST_CASE(drawing_beyond_the_edge_is_cut_off) {
  Canvas canvas(4, 4, white);
  canvas.text(-5, -5, "WWW", black);
  canvas.fill(-2, -2, 4, 4, black);
  BOOST_TEST(count(canvas.image(), black) >= 4);
  Canvas framed(4, 4, white);
  framed.frame(2, 2, 9, 9, 1, black);
  BOOST_TEST(count(framed.image(), black) == 3);
}

BOOST_AUTO_TEST_CASE(long_text_is_wrapped_or_shortened) {
  const std::string text = "one two three four";
  const Index width = text_width("one two three");
  BOOST_TEST(wrap_text(text, width) == (std::vector<std::string>{"one two three", "four"}));
  BOOST_TEST(wrap_text(text, 1) == (std::vector<std::string>{"one", "two", "three", "four"}));
  BOOST_TEST(wrap_text("one\ntwo three", width) == (std::vector<std::string>{"one", "two three"}));
  BOOST_TEST(shorten_text(text, text_width(text)) == text);
  const std::string shorter = shorten_text(text, width);
  BOOST_TEST(shorter.ends_with("..."));
  BOOST_TEST(text.starts_with(shorter.substr(0, shorter.size() - 3)));
  BOOST_TEST(text_width(shorter) <= width);
}

BOOST_AUTO_TEST_CASE(colours_tell_order_and_sign) {
  const auto luminance = [](Colour c) { return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue; };
  for (int i = 1; i <= 100; ++i)
    BOOST_TEST(luminance(sequential_colour(i / 100.0)) > luminance(sequential_colour((i - 1) / 100.0)) - 1);
  BOOST_TEST((sequential_colour(7) == sequential_colour(1)));
  const Colour zero = diverging_colour(0), minus = diverging_colour(-1), plus = diverging_colour(1);
  BOOST_TEST(std::abs(zero.red - zero.blue) <= 2);
  BOOST_TEST(minus.blue > minus.red + 100);
  BOOST_TEST(plus.red > plus.blue + 100);
}

BOOST_AUTO_TEST_CASE(a_sheet_has_room_for_all_maps) {
  const AttentionSheet sheet = small_sheet();
  const Image image = draw_attention(sheet);
  // A map is 19 x 8 = 152 pixels wide; at least 330 are reserved for text.
  BOOST_TEST(image.size.channels == 3);
  BOOST_TEST(image.size.width == 28 + text_width("softmax") + 14 + 152 + 28 + 330 + 28);
  AttentionSheet more = small_sheet();
  more.rows.push_back(more.rows[0]);
  BOOST_TEST(draw_attention(more).size.height == image.size.height + 152 + 24 + 14);
  for (SheetRow& row : more.rows) row.weights = Tensor<float>(Shape{6, 2, 2});
  BOOST_TEST(draw_attention(more).size.width == 28 + text_width("softmax") + 14 + 6 * 152 + 5 * 14 + 28);
}

BOOST_AUTO_TEST_CASE(a_block_without_a_map_leaves_a_row) {
  AttentionSheet sheet = small_sheet();
  const Index height = draw_attention(sheet).size.height;
  sheet.rows.push_back({{"block 3", "aft"}});
  BOOST_TEST(draw_attention(sheet).size.height > height);
}

BOOST_AUTO_TEST_CASE(a_sheet_shows_the_weights_and_the_image) {
  const AttentionSheet sheet = small_sheet();
  const Image image = draw_attention(sheet);
  AttentionSheet other = small_sheet();
  other.image = ramp({1, 8, 8}, 100);
  BOOST_TEST(draw_attention(other).pixels != image.pixels);
  other = small_sheet();
  other.rows[1].weights[3] = 0;
  BOOST_TEST(draw_attention(other).pixels != image.pixels);
  other = small_sheet();
  other.query = Patch{1, 0};
  BOOST_TEST(draw_attention(other).pixels != image.pixels);
}

BOOST_AUTO_TEST_CASE(a_weight_is_drawn_over_its_patch) {
  AttentionSheet sheet = small_sheet();
  sheet.image.pixels.assign(64, 200);
  sheet.rows[1].weights = Tensor<float>(Shape{2, 2, 2}, {1, 1, 1, 1, 4, 0, 1, 2});
  const Image image = draw_attention(sheet);
  // The last block's second map: below it are a line of text and the margin, to its left a map and a gap.
  const Index top = image.size.height - 28 - 24 - 152, left = 28 + text_width("softmax") + 14 + 152 + 14;
  const auto shade = [](double share) { return over_grey(sequential_colour(share), 200); };
  for (const Index inset : {0, 75}) {
    BOOST_TEST((pixel(image, top + inset, left + inset) == shade(1)));
    BOOST_TEST((pixel(image, top + inset, left + 76 + inset) == shade(0)));
    BOOST_TEST((pixel(image, top + 76 + inset, left + inset) == shade(0.25)));
    BOOST_TEST((pixel(image, top + 76 + inset, left + 76 + inset) == shade(0.5)));
  }
}

// Maps may have any number of rows and columns: each element fills its part of the cell.
BOOST_AUTO_TEST_CASE(a_map_of_any_size_is_drawn) {
  AttentionSheet sheet = small_sheet();
  sheet.rows[1] = {{"block 2", "softmax", "channels"}, Tensor<float>(Shape{2, 1, 4}, {1, 1, 1, 1, 4, 0, 1, 2}), false};
  const Image image = draw_attention(sheet);
  const Index top = image.size.height - 28 - 24 - 152, left = 28 + text_width("channels") + 14 + 152 + 14;
  for (const Index down : {0, 151})
    for (const auto& [column, share] : {std::pair{0, 1.0}, {1, 0.0}, {2, 0.25}, {3, 0.5}})
      BOOST_TEST((pixel(image, top + down, left + 38 * column) == over_grey(sequential_colour(share), 255)));
}

BOOST_AUTO_TEST_CASE(negative_weights_turn_the_scale_around_zero) {
  AttentionSheet sheet = small_sheet();
  sheet.image = Image{{1, 8, 8}, std::vector<std::uint8_t>(64, 0)};
  const Colour most = over_grey(sequential_colour(1), 0), least = over_grey(diverging_colour(-1), 0);
  Image image = draw_attention(sheet);
  BOOST_TEST(count(image, most) > 4 * 76 * 76 - 1);  // the patch with the largest weight of each map
  BOOST_TEST(count(image, least) == 0);
  sheet.rows[0].weights[0] = -3;
  image = draw_attention(sheet);
  BOOST_TEST(count(image, most) == 0);
  BOOST_TEST(count(image, least) >= 76 * 76 - 2 * 25);  // the patch minus its dash
}

// Patches of 76 x 76 with dashes: white on dark colours, dark on light ones, none for weights near zero.
BOOST_AUTO_TEST_CASE(negative_weights_have_a_dash) {
  AttentionSheet sheet = small_sheet();
  sheet.image = Image{{1, 8, 8}, std::vector<std::uint8_t>(64, 0)};
  Tensor<float>& weights = sheet.rows[1].weights;  // the first head's largest is 3
  const auto check = [&](float weight, std::optional<Colour> dash) {
    weights[0] = weight;
    const Image image = draw_attention(sheet);
    const Index top = image.size.height - 28 - 24 - 152, left = 28 + text_width("softmax") + 14;
    const Colour around = over_grey(diverging_colour(static_cast<double>(weight) / 3), 0);
    for (const auto& [y, x] : {std::pair<Index, Index>{37, 25}, {38, 49}})
      BOOST_TEST((pixel(image, top + y, left + x) == dash.value_or(around)), weight);
    for (const auto& [y, x] : {std::pair<Index, Index>{37, 24}, {38, 50}, {36, 25}, {39, 49}})
      BOOST_TEST((pixel(image, top + y, left + x) == around), weight);
  };
  weights[1] = -0.1F;  // makes the scale diverging even if weights[0] is positive
  check(-3, white);
  check(-1.4F, Colour{34, 34, 34});
  check(-0.2F, {});
  check(3, {});
}

BOOST_AUTO_TEST_CASE(a_map_of_zeros_is_drawn) {
  AttentionSheet sheet = small_sheet();
  sheet.image.pixels.assign(64, 0);
  for (SheetRow& row : sheet.rows) row.weights = Tensor<float>(Shape{2, 2, 2});
  BOOST_TEST(count(draw_attention(sheet), over_grey(sequential_colour(0), 0)) >= 4 * 152 * 152);
}

BOOST_AUTO_TEST_CASE(matrices_are_drawn_without_the_image) {
  AttentionSheet sheet = small_sheet();
  sheet.image.pixels.assign(64, 50);
  sheet.query = Patch{0, 0};
  for (SheetRow& row : sheet.rows) {
    Tensor<float> weights(Shape{2, 4, 4});
    std::fill(weights.begin(), weights.end(), 1.0f);
    weights[16 + 15] = 4;
    row.weights = matrix_weights(weights.view());
    row.over_image = false;
    row.label.push_back("channels");
  }
  const Image image = draw_attention(sheet);
  const Index top = image.size.height - 28 - 24 - 152, left = 28 + text_width("channels") + 14 + 152 + 14;
  BOOST_TEST((pixel(image, top, left) == over_grey(sequential_colour(0.25), 255)));
  BOOST_TEST((pixel(image, top + 151, left + 151) == over_grey(sequential_colour(1), 255)));
  BOOST_TEST((pixel(image, top + 151 - 38, left + 151) == over_grey(sequential_colour(0.25), 255)));
  Tensor<float> infinite(Shape{1, 1, 1});
  infinite[0] = std::numeric_limits<float>::infinity();
  BOOST_TEST(error_of([&] { matrix_weights(infinite.view()); }) ==
             "an attention map contains inf; expected finite numbers");
}

// Without a common image, each row has an image in the first column, whose brightness shows through its maps.
BOOST_AUTO_TEST_CASE(each_row_may_be_over_an_image_of_its_own) {
  AttentionSheet sheet = small_sheet();
  sheet.image = {};
  for (int i = 0; i < 2; ++i) {
    SheetRow& row = sheet.rows[static_cast<std::size_t>(i)];
    row.image = Image{{1, 8, 8}, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(100 + 100 * i))};
    row.weights = Tensor<float>(Shape{2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 1});
  }
  const Image image = draw_attention(sheet);
  const Index left = 28 + text_width("softmax") + 14, first_map = left + 152 + 14;
  BOOST_TEST(image.size.width == left + 3 * 152 + 2 * 14 + 28);
  for (const int i : {0, 1}) {
    const Index top = image.size.height - 28 - 24 - 152 - (1 - i) * (152 + 24 + 14);
    const auto grey = static_cast<std::uint8_t>(100 + 100 * i);
    for (const Index inset : {0, 151}) {
      BOOST_TEST((pixel(image, top + inset, left + inset) == Colour{grey, grey, grey}));
      BOOST_TEST((pixel(image, top + inset, first_map + inset) == over_grey(sequential_colour(0), grey)));
    }
    BOOST_TEST((pixel(image, top + 151, first_map + 166 + 151) == over_grey(sequential_colour(1), grey)));
  }
}

BOOST_AUTO_TEST_CASE(columns_are_named) {
  AttentionSheet sheet = small_sheet();
  const Image without = draw_attention(sheet);
  sheet.columns = {"head 1", "head 2"};
  const Image with = draw_attention(sheet);
  BOOST_TEST((with.size == without.size));
  sheet.columns.pop_back();
  BOOST_TEST(with.pixels != without.pixels);
  BOOST_TEST(with.pixels != draw_attention(sheet).pixels);
}

// Two heads, a class token and a grid of 2 x 4; then one head and a grid of 1 x 2 without a class token.
BOOST_AUTO_TEST_CASE(token_weights_are_those_of_the_patches) {
  Tensor<float> numbers(Shape{2, 9});
  for (Index i = 0; i < 18; ++i) numbers[i] = static_cast<float>(i);
  const Tensor<float> weights = token_weights(numbers.view(), {2, 4}, true);
  BOOST_TEST((weights.shape() == Shape{2, 2, 4}));
  for (Index h = 0; h < 2; ++h)
    for (Index p = 0; p < 8; ++p) BOOST_TEST(weights[h * 8 + p] == static_cast<float>(9 * h + 1 + p));
  const Tensor<float> coarse = token_weights(Tensor<float>(Shape{1, 2}, {5, 7}).view(), {2, 4}, false);
  BOOST_TEST((coarse.shape() == Shape{1, 1, 2}));
  BOOST_TEST(coarse[1] == 7);
  BOOST_TEST(error_of([&] {
               token_weights(numbers.view(), {2, 4}, false);
             }) == "an attention map has 9 keys; expected the grid of patches of the queries, 2 x 4");
}

BOOST_AUTO_TEST_CASE(patch_weights_are_those_of_the_query) {
  // One head, a class token and four patches: element (query, key) is 10 query + key.
  Tensor<float> map(Shape{1, 5, 5});
  for (Index i = 0; i < 25; ++i) map[i] = static_cast<float>(10 * (i / 5) + i % 5);
  const auto values = [](const Tensor<float>& t) { return std::vector<float>(t.begin(), t.end()); };
  BOOST_TEST(values(patch_weights(map.view(), {2, 2}, {})) == (std::vector<float>{1, 2, 3, 4}));
  BOOST_TEST(values(patch_weights(map.view(), {2, 2}, Patch{1, 0})) == (std::vector<float>{31, 32, 33, 34}));
  // Two heads without a class token: the mean over the queries, or one of them.
  Tensor<float> plain(Shape{2, 4, 4});
  for (Index i = 0; i < 32; ++i) plain[i] = static_cast<float>(100 * (i / 16) + 10 * (i / 4 % 4) + i % 4);
  BOOST_TEST(values(patch_weights(plain.view(), {2, 2}, {})) ==
             (std::vector<float>{15, 16, 17, 18, 115, 116, 117, 118}));
  BOOST_TEST(values(patch_weights(plain.view(), {2, 2}, Patch{0, 1})) ==
             (std::vector<float>{10, 11, 12, 13, 110, 111, 112, 113}));
  // A class token and a row of four patches as queries, two patches and the class token as keys.
  Tensor<float> fewer(Shape{1, 5, 3});
  for (Index i = 0; i < 15; ++i) fewer[i] = static_cast<float>(10 * (i / 3) + i % 3);
  BOOST_TEST(error_of([&] {
               patch_weights(fewer.view(), {1, 4}, {});
             }) == "an attention map has 3 keys; expected the grid of patches of the queries, 1 x 4");
  // Sixteen patches as queries, four as keys.
  Tensor<float> coarse(Shape{1, 16, 4});
  for (Index i = 0; i < 64; ++i) coarse[i] = static_cast<float>(10 * (i / 4) + i % 4);
  const Tensor<float> weights = patch_weights(coarse.view(), {4, 4}, Patch{1, 2});
  BOOST_TEST((weights.shape() == Shape{1, 2, 2}));
  BOOST_TEST(values(weights) == (std::vector<float>{60, 61, 62, 63}));
  plain[3] = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(error_of([&] {
               patch_weights(plain.view(), {2, 2}, {});
             }) == "an attention map contains nan; expected finite numbers");
}

// A sheet with one head is as narrow as its header's text, which must end before the margin.
BOOST_AUTO_TEST_CASE(text_leaves_the_margin_free) {
  AttentionSheet sheet{"Attention through all blocks so far, of the class token to each patch",
                       "drawing.png",
                       ramp({1, 28, 28}, 0),
                       {2, 2},
                       {},
                       {}};
  for (const float least : {0.0F, -1.0F})
    sheet.rows.push_back({{"block 1", "softmax"}, Tensor<float>(Shape{1, 2, 2}, {least, 1, 2, 3})});
  const Image drawn = draw_attention(sheet);
  constexpr Index margin = 28;
  for (Index y = 0; y < drawn.size.height; ++y)
    for (Index x = drawn.size.width - margin + 2; x < drawn.size.width; ++x)
      BOOST_REQUIRE((pixel(drawn, y, x) == white));
}

// The largest magnitude of each head is below its map, the label of a row is beside it, and the heads' names are above.
BOOST_AUTO_TEST_CASE(numbers_and_names_stand_at_their_maps) {
  AttentionSheet sheet = small_sheet();
  sheet.columns = {"head 1", "head 2"};
  for (const bool negative : {false, true}) {
    if (negative) sheet.rows[0].weights[0] = -7.125F, sheet.rows[1].weights[7] = -0.5F;
    const Image image = draw_attention(sheet);
    const Index left = 28 + text_width("softmax") + 14, first = image.size.height - 28 - 2 * (152 + 24) - 14;
    const char* const expected[2][2] = {{negative ? "max 7.12" : "max 3", "max 4"},
                                        {"max 3", negative ? "max 3" : "max 4"}};
    for (Index row = 0; row < 2; ++row) {
      const Index top = first + row * (152 + 24 + 14);
      for (Index head = 0; head < 2; ++head) {
        const std::string text = expected[row][head];
        const Index x = left + head * (152 + 14) + (152 - text_width(text)) / 2;
        BOOST_TEST(has_text(image, top + 152 + 6, x, text, {120, 120, 120}), text << " below " << row << ", " << head);
      }
      const std::string label = fmt::format("block {}", row + 1);
      BOOST_TEST(has_text(image, top + 76 - 24, left - 14 - text_width(label), label, {34, 34, 34}), label);
    }
    for (Index head = 0; head < 2; ++head) {
      const std::string& name = sheet.columns[static_cast<std::size_t>(head)];
      BOOST_TEST(
          has_text(image, first - 24, left + head * (152 + 14) + (152 - text_width(name)) / 2, name, {34, 34, 34}));
    }
  }
}

// In every map and in the image, the query's patch of 76 x 76 has a white frame of two pixels within a black frame of
// one.
BOOST_AUTO_TEST_CASE(the_query_is_framed) {
  AttentionSheet sheet = small_sheet();
  sheet.image.pixels.assign(64, 100);
  for (SheetRow& row : sheet.rows) row.weights = Tensor<float>(Shape{2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1});
  sheet.query = Patch{1, 0};
  const Image image = draw_attention(sheet);
  const Index left = 28 + text_width("softmax") + 14, top = image.size.height - 28 - 24 - 152;
  const Colour grey{100, 100, 100}, map = over_grey(sequential_colour(1), 100);
  for (const auto& [y, x, around] : {std::tuple(Index{28}, left, grey),
                                     {top, left, map},
                                     {top, left + 152 + 14, map},
                                     {top - 152 - 24 - 14, left, map}}) {
    const Index corner = y + 76;
    BOOST_TEST((pixel(image, corner - 1, x + 10) == black));
    BOOST_TEST((pixel(image, corner, x + 10) == white));
    BOOST_TEST((pixel(image, corner + 1, x + 10) == white));
    BOOST_TEST((pixel(image, corner + 2, x + 10) == around));
    BOOST_TEST((pixel(image, corner + 20, x + 75) == white));
    BOOST_TEST((pixel(image, corner + 20, x + 76) == black));
    BOOST_TEST((pixel(image, corner + 20, x + 77) == around));
    BOOST_TEST((pixel(image, corner - 2, x + 10) == around));
  }
}

// Patches of 76 x 38 and of 38 x 76: each side of the frame has two white pixels inside the patch and a black one
// outside, in the image and in every map.
BOOST_AUTO_TEST_CASE(the_frame_has_the_sides_of_its_patch) {
  AttentionSheet sheet = small_sheet();
  sheet.image.pixels.assign(64, 100);
  for (const auto& [grid, query, height, width] : {std::tuple(PatchGrid{2, 4}, Patch{0, 2}, Index{76}, Index{38}),
                                                   {PatchGrid{4, 2}, Patch{2, 0}, Index{38}, Index{76}}}) {
    sheet.grid = grid, sheet.query = query;
    for (SheetRow& row : sheet.rows) row.weights = Tensor<float>(Shape{2, grid.rows, grid.columns});
    const Image image = draw_attention(sheet);
    const Index left = 28 + text_width("softmax") + 14, top = image.size.height - 28 - 24 - 152;
    for (const auto& [y, x] :
         {std::pair(Index{28}, left), {top, left}, {top, left + 152 + 14}, {top - 152 - 24 - 14, left}}) {
      const Index first = y + query.row * height, start = x + query.column * width;
      for (const Index row : {Index{0}, Index{1}, height - 2, height - 1})
        BOOST_TEST((pixel(image, first + row, start + 10) == white), row);
      for (const Index column : {Index{0}, Index{1}, width - 2, width - 1})
        BOOST_TEST((pixel(image, first + 10, start + column) == white), column);
      for (const Index row : {Index{-1}, height}) BOOST_TEST((pixel(image, first + row, start + 10) == black), row);
      for (const Index column : {Index{-1}, width})
        BOOST_TEST((pixel(image, first + 10, start + column) == black), column);
      BOOST_TEST(!(pixel(image, first + 2, start + 2) == white));
    }
  }
}

// Two tokens before two patches, such as a class and a distillation token: element (query, key) is 10 query + key, and
// 100 more in the second head.
BOOST_AUTO_TEST_CASE(the_query_may_be_any_token_before_the_patches) {
  Tensor<float> map(Shape{2, 4, 4});
  for (Index i = 0; i < 32; ++i) map[i] = static_cast<float>(100 * (i / 16) + 10 * (i / 4 % 4) + i % 4);
  const auto values = [&](std::optional<Patch> query, Index token) {
    const Tensor<float> t = patch_weights(map.view(), {1, 2}, query, token);
    return std::vector<float>(t.begin(), t.end());
  };
  BOOST_TEST(values({}, 0) == (std::vector<float>{2, 3, 102, 103}), boost::test_tools::per_element());
  BOOST_TEST(values({}, 1) == (std::vector<float>{12, 13, 112, 113}), boost::test_tools::per_element());
  BOOST_TEST(values({}, -1) == (std::vector<float>{27, 28, 127, 128}), boost::test_tools::per_element());
  BOOST_TEST(values(Patch{0, 1}, 1) == (std::vector<float>{32, 33, 132, 133}), boost::test_tools::per_element());
  const Tensor<float> mean = mean_of_heads(Tensor<float>(Shape{2, 1, 3}, {1, 2, 3, 5, 8, -3}).view());
  BOOST_TEST((mean.shape() == Shape{1, 1, 3}));
  BOOST_TEST(std::vector<float>(mean.begin(), mean.end()) == (std::vector<float>{3, 5, 0}),
             boost::test_tools::per_element());
}

// The ends and the middle of viridis, and of Moreland's map from blue through grey to red.
BOOST_AUTO_TEST_CASE(colours_of_a_scale) {
  BOOST_TEST(weight_colours(3, false) == (std::vector<std::string>{"440154", "21918c", "fde725"}),
             boost::test_tools::per_element());
  BOOST_TEST(weight_colours(3, true) == (std::vector<std::string>{"3b4cc0", "dddcdc", "b40426"}),
             boost::test_tools::per_element());
  BOOST_TEST(weight_colours(5, false)[1] == "3b528b");
}

// Images narrower than 150 pixels are enlarged by an integer factor; those wider than 256 are reduced. The aspect ratio
// does not change.
BOOST_AUTO_TEST_CASE(the_size_of_a_map_follows_from_the_image) {
  struct Size {
    Index height, width;
  };
  for (const auto& [image, map] : {std::pair(Size{4, 4}, Size{152, 152}),
                                   {{7, 7}, {154, 154}},
                                   {{28, 28}, {168, 168}},
                                   {{100, 100}, {200, 200}},
                                   {{150, 150}, {150, 150}},
                                   {{200, 200}, {200, 200}},
                                   {{256, 256}, {256, 256}},
                                   {{300, 300}, {256, 256}},
                                   {{32, 64}, {96, 192}},
                                   {{64, 32}, {320, 160}},
                                   {{200, 400}, {128, 256}}}) {
    AttentionSheet sheet = small_sheet();
    sheet.image = Image{{1, image.height, image.width},
                        std::vector<std::uint8_t>(static_cast<std::size_t>(image.height * image.width))};
    const Index height = draw_attention(sheet).size.height;
    BOOST_TEST(draw_attention(sheet).size.width == 28 + text_width("softmax") + 14 + map.width + 28 + 330 + 28,
               image.width);
    sheet.rows.push_back(sheet.rows[0]);
    BOOST_TEST(draw_attention(sheet).size.height == height + map.height + 24 + 14, image.width);
  }
}

// Title, subtitle, a scale of 300 x 24 pixels, its numbers and their meaning, below each other beside the image. The
// scale has the weights from left to right and the image's brightness from top to bottom.
BOOST_AUTO_TEST_CASE(the_header_describes_the_scale) {
  constexpr Colour ink{34, 34, 34}, pale{120, 120, 120};
  const Index x = 28 + text_width("softmax") + 14 + 152 + 28, height = draw_attention(small_sheet()).size.height;
  for (const bool negative : {false, true})
    for (const bool two_lines : {false, true}) {
      AttentionSheet sheet = small_sheet();
      if (two_lines) sheet.title += "\nof two blocks";
      if (negative) sheet.rows[1].weights[3] = -0.5F;
      const Image image = draw_attention(sheet);
      // The text takes 5 lines and a gap, 134 pixels, or 158 with another line; the image takes 152.
      BOOST_TEST(image.size.height == height + (two_lines ? 6 : 0));
      BOOST_TEST(has_text(image, 28, x, "Attention", ink));
      if (two_lines) BOOST_TEST(has_text(image, 52, x, "of two blocks", ink));
      const Index subtitle = two_lines ? 76 : 52, scale = subtitle + 24 + 14, numbers = scale + 24 + 6;
      BOOST_TEST(has_text(image, subtitle, x, "file.png", pale));
      const auto colour = negative ? diverging_colour : sequential_colour;
      for (const auto& [column, share] : {std::pair(0, negative ? -1.0 : 0.0), {299, 1.0}})
        for (const auto& [row, grey] : {std::pair(0, 0), {23, 255}})
          BOOST_TEST(
              (pixel(image, scale + row, x + column) == over_grey(colour(share), static_cast<std::uint8_t>(grey))));
      BOOST_TEST(has_text(image, numbers, x, negative ? "-max" : "0", ink));
      if (negative) BOOST_TEST(has_text(image, numbers, x + (300 - text_width("0")) / 2, "0", ink));
      BOOST_TEST(has_text(image, numbers, x + 300 - text_width("max"), "max", ink));
      BOOST_TEST(has_text(image, numbers + 24, x,
                          negative ? "max: below a map, dash: negative" : "max: the number below each map", pale));
    }
}

// A map of 2 x 4 weights, each 76 x 38 pixels: the dash takes the middle third of its own element's width.
BOOST_AUTO_TEST_CASE(a_dash_is_on_its_weight) {
  AttentionSheet sheet = small_sheet();
  sheet.image = Image{{1, 8, 8}, std::vector<std::uint8_t>(64, 0)};
  sheet.rows[1].weights = Tensor<float>(Shape{2, 2, 4}, {1, 1, 1, 1, 1, 1, -3, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Image image = draw_attention(sheet);
  const Index top = image.size.height - 28 - 24 - 152 + 76, left = 28 + text_width("softmax") + 14 + 2 * 38;
  const Colour around = over_grey(diverging_colour(-1), 0);
  for (Index y = 0; y < 76; ++y)
    for (Index x = 0; x < 38; ++x) {
      const bool dash = (y == 37 || y == 38) && x >= 12 && x < 24;
      BOOST_REQUIRE((pixel(image, top + y, left + x) == (dash ? white : around)));
    }
}

// A class token, a register and 2 x 3 patches: element (query, key) is 10 query + key, and 100 more in the second head.
// Keys may be on a coarser grid: 2 x 1 for queries on 4 x 2.
BOOST_AUTO_TEST_CASE(patches_of_a_grid_are_counted_row_by_row) {
  const auto drawn = [](Index queries, Index keys) {
    Tensor<float> map(Shape{2, queries, keys});
    for (Index i = 0; i < map.size(); ++i)
      map[i] = static_cast<float>(100 * (i / (queries * keys)) + 10 * (i / keys % queries) + i % keys);
    return map;
  };
  const Tensor<float> map = drawn(8, 8), of_coarse = drawn(8, 2);
  for (Index row = 0; row < 2; ++row)
    for (Index column = 0; column < 3; ++column) {
      const Tensor<float> weights = patch_weights(map.view(), {2, 3}, Patch{row, column});
      BOOST_TEST((weights.shape() == Shape{2, 2, 3}));
      for (Index i = 0; i < 12; ++i)
        BOOST_TEST(weights[i] == static_cast<float>(100 * (i / 6) + 10 * (2 + 3 * row + column) + 2 + i % 6));
    }
  const Tensor<float> mean = patch_weights(map.view(), {2, 3}, {}, -1);  // of the queries 2 to 7
  for (Index i = 0; i < 12; ++i) BOOST_TEST(mean[i] == static_cast<float>(100 * (i / 6) + 45 + 2 + i % 6));
  for (Index row = 0; row < 4; ++row)
    for (Index column = 0; column < 2; ++column) {
      const Tensor<float> coarse = patch_weights(of_coarse.view(), {4, 2}, Patch{row, column});
      BOOST_TEST((coarse.shape() == Shape{2, 2, 1}));
      for (Index i = 0; i < 4; ++i)
        BOOST_TEST(coarse[i] == static_cast<float>(100 * (i / 2) + 10 * (2 * row + column) + i % 2));
    }
}

// Seven rows above the baseline and two below, without empty columns; a space is three points wide.
BOOST_AUTO_TEST_CASE(glyphs_are_those_of_their_characters) {
  const auto check = [](char character, const std::vector<std::string>& rows) {
    const auto width = static_cast<Index>(rows[0].size());
    BOOST_TEST(heed::draw::glyph_width(character) == width, character);
    for (Index y = -1; y <= 9; ++y)
      for (Index x = -1; x <= width; ++x) {
        const bool inside = y >= 0 && y < 9 && x >= 0 && x < width;
        const bool black = inside && rows[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] == '#';
        BOOST_TEST(heed::draw::glyph_point(character, y, x) == black, character << " " << y << " " << x);
      }
  };
  check('L', {"#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####", "     ", "     "});
  check('T', {"#####", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "     ", "     "});
  check('1', {" # ", "## ", " # ", " # ", " # ", " # ", "###", "   ", "   "});
  check('y', {"     ", "     ", "#   #", "#   #", "#   #", "#   #", " ####", "    #", " ### "});
  check(' ', std::vector<std::string>(9, "   "));
  BOOST_TEST(heed::draw::glyph_width('\t') == heed::draw::glyph_width('?'));
}

// The middle between two of viridis's 17 colours, 440154 and 48186a; then 78 % of a colour over 22 % of a grey.
BOOST_AUTO_TEST_CASE(colours_between_colours) {
  BOOST_TEST((sequential_colour(1 / 32.0) == Colour{0x46, 13, 0x5f}));
  BOOST_TEST((over_grey({255, 0, 100}, 100) == Colour{221, 22, 100}));
}

BOOST_AUTO_TEST_CASE(a_shortened_text_is_the_longest_that_fits) {
  const std::string text = "one two three four";
  for (const Index width : {40, 71, 100, 133, 160}) {
    const std::string shorter = shorten_text(text, width);
    BOOST_TEST_REQUIRE(shorter.ends_with("..."));
    const std::string prefix = shorter.substr(0, shorter.size() - 3);
    BOOST_TEST(text.starts_with(prefix));
    BOOST_TEST(text_width(shorter) <= width);
    BOOST_TEST(text_width(text.substr(0, prefix.size() + 1) + "...") > width);
  }
}

// A row without weights is as high as two lines and a gap, and has a message in the middle of its first column. Labels
// have any number of lines, 24 pixels apart, and 4 more between the first and the second.
BOOST_AUTO_TEST_CASE(a_row_without_a_map_says_so) {
  constexpr Colour ink{34, 34, 34}, pale{120, 120, 120};
  AttentionSheet sheet = small_sheet();
  sheet.kind = "gradient";
  sheet.rows[1].label = {"block 2", "softmax", "2 heads"};
  const Index height = draw_attention(sheet).size.height;
  sheet.rows.push_back({{"block 3", "aft"}});
  const Image image = draw_attention(sheet);
  BOOST_TEST(image.size.height == height + 2 * 24 + 14);
  const Index left = 28 + std::max(text_width("softmax"), text_width("2 heads")) + 14, top = height - 28 - 24 - 152,
              last = height - 14, middle = last + 24;
  BOOST_TEST(has_text(image, middle - 7, left + (152 - text_width("no gradient")) / 2, "no gradient", pale));
  const auto label = [&](Index y, const std::string& text, Colour colour) {
    return has_text(image, y, left - 14 - text_width(text), text, colour);
  };
  BOOST_TEST(label(middle - 24, "block 3", ink));
  BOOST_TEST(label(middle + 4, "aft", pale));
  BOOST_TEST(label(top + 76 - 24, "block 2", ink));
  BOOST_TEST(label(top + 76 + 4, "softmax", pale));
  BOOST_TEST(label(top + 76 + 28, "2 heads", pale));
}

// The row with the most heads determines the width, wherever it is.
BOOST_AUTO_TEST_CASE(rows_may_have_different_heads) {
  for (const std::size_t most : {0, 1}) {
    AttentionSheet sheet = small_sheet();
    sheet.rows[most].weights = Tensor<float>(Shape{4, 2, 2});
    BOOST_TEST(draw_attention(sheet).size.width == 28 + text_width("softmax") + 14 + 4 * 152 + 3 * 14 + 28);
  }
}

// Maps may leave columns between them empty; the last column determines the width.
BOOST_AUTO_TEST_CASE(maps_are_in_their_columns) {
  AttentionSheet sheet = small_sheet();
  sheet.rows[1].columns = {0, 3};
  const Image image = draw_attention(sheet);
  const Index left = 28 + text_width("softmax") + 14, y = image.size.height - 28 - 24 - 76;
  BOOST_TEST(image.size.width == left + 4 * 152 + 3 * 14 + 28);
  for (Index column = 0; column < 4; ++column)
    BOOST_TEST((pixel(image, y, left + column * (152 + 14) + 76) == white) == (column == 1 || column == 2));
}

// A row with its own image but without a map has the image, and a message in the next column.
BOOST_AUTO_TEST_CASE(an_image_without_a_map) {
  AttentionSheet sheet = small_sheet();
  sheet.image = {};
  for (SheetRow& row : sheet.rows) row.image = Image{{1, 8, 8}, std::vector<std::uint8_t>(64, 100)};
  const ImageSize size = draw_attention(sheet).size;
  sheet.rows[1].weights = {};
  const Image image = draw_attention(sheet);
  BOOST_TEST((image.size == size));
  const Index left = 28 + text_width("softmax") + 14, top = size.height - 28 - 24 - 152;
  for (const Index inset : {0, 151}) BOOST_TEST((pixel(image, top + inset, left + inset) == Colour{100, 100, 100}));
  const Index x = left + 152 + 14 + (152 - text_width("no map")) / 2;
  BOOST_TEST(has_text(image, top + 76 - 7, x, "no map", {120, 120, 120}));
  BOOST_TEST(has_text(image, top + 76 - 24, left - 14 - text_width("block 2"), "block 2", {34, 34, 34}));
}

BOOST_AUTO_TEST_SUITE_END()
