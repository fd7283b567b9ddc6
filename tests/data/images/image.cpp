// Image files designed to cost more than their content justifies.
#include "support/images.h"

#include <zlib.h>

#include <array>

using namespace heed;
using namespace heed::test;

namespace {

void append(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

/// Returns length, type, content and an unchecked checksum.
Bytes chunk(const std::string& type, const Bytes& content) {
  Bytes bytes = {0, 0, static_cast<std::uint8_t>(content.size() >> 8), static_cast<std::uint8_t>(content.size())};
  bytes.insert(bytes.end(), type.begin(), type.end());
  append(bytes, content);
  append(bytes, {0, 0, 0, 0});
  return bytes;
}

constexpr std::uint8_t grey = 0, grey_with_alpha = 4;

/// Returns a PNG of side x side pixels of 8 bits, with arbitrary `rows`.
Bytes png(std::uint8_t side, bool interlaced, const Bytes& rows, std::uint8_t colour = grey) {
  Bytes packed(compressBound(rows.size()));
  uLongf length = packed.size();
  BOOST_REQUIRE(compress(packed.data(), &length, rows.data(), rows.size()) == Z_OK);
  packed.resize(length);
  Bytes bytes = {137, 'P', 'N', 'G', 13, 10, 26, 10};
  append(bytes, chunk("IHDR", {0, 0, 0, side, 0, 0, 0, side, 8, colour, 0, 0, interlaced}));
  append(bytes, chunk("IDAT", packed));
  append(bytes, chunk("IEND", {}));
  return bytes;
}

/// Returns a grey progressive JPEG of 8 side x 8 side pixels with `scans` empty scans.
Bytes progressive_jpeg(int side, int scans) {
  Bytes bytes = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};  // all quantised by 1
  append(bytes, Bytes(64, 1));
  const auto high = static_cast<std::uint8_t>(side >> 5), low = static_cast<std::uint8_t>(side << 3);
  append(bytes, {0xff, 0xc2, 0, 11, 8, high, low, high, low, 1, 1, 0x11, 0});
  append(bytes, {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // one code, for 0
  for (int i = 0; i < scans; ++i) append(bytes, {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0});
  append(bytes, {0xff, 0xd9});
  return bytes;
}

struct Written {
  TemporaryDirectory directory;
  std::string path = directory / "x";

  Image load(const Bytes& bytes) const {
    write_file(path, bytes);
    return load_image(path);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_image)

// Interlaced, 5 x 5 pixels are 11 rows in seven passes of 1, 1, 2, 2, 6, 4 and 10 pixels with a filter byte each; a few
// more bytes are allowed.
BOOST_FIXTURE_TEST_CASE(png_data_are_as_long_as_the_image, Written) {
  BOOST_TEST(load(png(28, false, Bytes(28 * 29, 0))).pixels.size() == 784u);
  BOOST_TEST(load(png(28, false, Bytes(28 * 29 + 9, 0))).pixels.size() == 784u);
  BOOST_TEST(load(png(5, true, Bytes(25 + 11, 0))).pixels.size() == 25u);
  check_error([&] { load(png(28, false, Bytes(28 * 29 - 1, 0))); }, {path, "not enough pixels"});
  check_error([&] { load(png(28, false, Bytes(1 << 20, 0))); }, {path, "more data than pixels"});
  check_error([&] { load(png(5, true, Bytes(1 << 20, 0))); }, {path, "more data than pixels"});
}

// Interlacing does not change the pixel values.
BOOST_FIXTURE_TEST_CASE(interlaced_pixels_come_to_their_places, Written) {
  Bytes rows;
  const std::array<std::array<int, 4>, 7> passes = {{{0, 0, 8, 8},  // first x, first y, step in x, step in y
                                                     {4, 0, 8, 8},
                                                     {0, 4, 4, 8},
                                                     {2, 0, 4, 4},
                                                     {0, 2, 2, 4},
                                                     {1, 0, 2, 2},
                                                     {0, 1, 1, 2}}};
  for (const auto& [x0, y0, dx, dy] : passes)
    for (int y = y0; y < 13; y += dy) {
      rows.push_back(0);
      for (int x = x0; x < 13; x += dx) rows.push_back(static_cast<std::uint8_t>(13 * y + x));
    }
  const Image image = load(png(13, true, rows));
  for (std::size_t i = 0; i < 169; ++i) BOOST_REQUIRE(image.pixels[i] == i);
}

// A filter byte, then grey and opacity of each pixel.
BOOST_FIXTURE_TEST_CASE(what_is_transparent_shows_the_background, Written) {
  const Bytes rows = {0, 100, 255, 100, 0, 0, 200, 51, 0, 255};
  BOOST_TEST(load(png(2, false, rows, grey_with_alpha)).pixels == (Bytes{100, 255, 244, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(load_image(path, 0).pixels == (Bytes{100, 0, 40, 0}), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(png_data_are_held_against_their_checksum, Written) {
  Bytes bytes = png(3, false, Bytes(12, 0));
  const std::size_t checksum = bytes.size() - 12 - 4 - 4;  // before IEND and the chunk's own
  bytes[checksum + 3] ^= 1;
  check_error([&] { load(bytes); }, {path, "incorrect data check"});
}

BOOST_FIXTURE_TEST_CASE(a_png_without_its_end, Written) {
  Bytes bytes = png(3, false, Bytes(12, 0));
  bytes.resize(bytes.size() - 12);
  check_error([&] { load(bytes); }, {path, "cannot be decoded: the file ends early"});
}

BOOST_FIXTURE_TEST_CASE(png_chunks_end_within_the_file, Written) {
  Bytes bytes = png(3, false, Bytes(12, 0));
  bytes[8 + 25] = 0x50;  // the length of IDAT, which follows IHDR, increases by a gigabyte
  check_error([&] { load(bytes); }, {path, "the file ends early"});
}

BOOST_FIXTURE_TEST_CASE(scans_of_a_jpeg_are_limited, Written) {
  BOOST_TEST(load(progressive_jpeg(1, 100)).pixels.size() == 64u);
  check_error([&] { load(progressive_jpeg(1, 101)); }, {path, "101 scans", "at most 100"});
  // The limit is 2^29 pixels, and 256 more for each byte of the file.
  const Bytes large = progressive_jpeg(1250, 6);
  check_error([&] { load(large); }, {path, "6 scans of 10000x10000 pixels",
                                     std::to_string((1 << 29) + 256 * large.size()) + " pixels in all"});
}

// Segments without content, then consecutive empty Huffman tables.
BOOST_FIXTURE_TEST_CASE(parts_of_a_jpeg_are_limited, Written) {
  Bytes segments = {0xff, 0xd8};
  for (int i = 0; i < 10'000; ++i) append(segments, {0xff, 0xe0, 0, 2});
  Bytes tables = {0xff, 0xd8};
  for (int i = 0; i < 3; ++i) {
    append(tables, {0xff, 0xc4, 0xff, 0xfe});
    append(tables, Bytes(0xfffe - 2, 0));  // 17 bytes each
  }
  const Bytes image = progressive_jpeg(1, 1), rest(image.begin() + 2, image.end());
  for (Bytes* bytes : {&segments, &tables}) {
    append(*bytes, rest);
    check_error([&] { load(*bytes); }, {path, "not a readable"});
  }
}

BOOST_AUTO_TEST_SUITE_END()
