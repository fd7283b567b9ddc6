// Image files designed to cost more than their content justifies; interlacing, transparency and checksums of PNG files.
#include "heed/data/images/image_write.h"
#include "support/images.h"

#include <zlib.h>

#include <algorithm>
#include <array>

using namespace heed;
using namespace heed::test;

namespace {

void append(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

/// Returns a chunk of a PNG: length, type, content and checksum.
Bytes chunk(const std::string& type, const Bytes& content) {
  Bytes bytes = {0, 0, static_cast<std::uint8_t>(content.size() >> 8), static_cast<std::uint8_t>(content.size())};
  bytes.insert(bytes.end(), type.begin(), type.end());
  append(bytes, content);
  const uLong checksum = crc32(0, bytes.data() + 4, static_cast<unsigned>(bytes.size() - 4));
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(checksum >> shift));
  return bytes;
}

constexpr std::uint8_t grey = 0, rgb = 2, indexed = 3, grey_with_alpha = 4;

Bytes packed(const Bytes& rows) {
  Bytes bytes(compressBound(rows.size()));
  uLongf length = bytes.size();
  BOOST_REQUIRE(compress(bytes.data(), &length, rows.data(), rows.size()) == Z_OK);
  bytes.resize(length);
  return bytes;
}

/// Returns a PNG of side x side pixels of 8 bits, with arbitrary `data`, and with the chunks `others` before them.
Bytes png_of(std::uint8_t side, bool interlaced, std::uint8_t colour, const Bytes& data, const Bytes& others = {}) {
  Bytes bytes = {137, 'P', 'N', 'G', 13, 10, 26, 10};
  append(bytes, chunk("IHDR", {0, 0, 0, side, 0, 0, 0, side, 8, colour, 0, 0, interlaced}));
  append(bytes, others);
  append(bytes, chunk("IDAT", data));
  append(bytes, chunk("IEND", {}));
  return bytes;
}

/// Returns a PNG of side x side pixels of 8 bits whose uncompressed data are `rows`.
Bytes png(std::uint8_t side, bool interlaced, const Bytes& rows, std::uint8_t colour = grey) {
  return png_of(side, interlaced, colour, packed(rows));
}

/// Returns a grey progressive JPEG of 8 side x 8 side pixels with `scans` empty scans.
Bytes progressive_jpeg(int side, int scans) {
  Bytes bytes = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};  // a quantisation table of ones
  append(bytes, Bytes(64, 1));
  const auto high = static_cast<std::uint8_t>(side >> 5), low = static_cast<std::uint8_t>(side << 3);
  append(bytes, {0xff, 0xc2, 0, 11, 8, high, low, high, low, 1, 1, 0x11, 0});
  append(bytes, {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // one code, for 0
  for (int i = 0; i < scans; ++i) append(bytes, {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0});
  append(bytes, {0xff, 0xd9});
  return bytes;
}

/// Returns a JPEG of progressive_jpeg() with another height, which is at byte 76: after the quantisation table and the
/// frame's marker, length and precision.
Bytes with_height(Bytes jpeg, int height) {
  jpeg[76] = static_cast<std::uint8_t>(height >> 8), jpeg[77] = static_cast<std::uint8_t>(height);
  return jpeg;
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

// Interlaced, 5 x 5 pixels are 11 rows in seven passes of 1, 1, 2, 2, 3, 6 and 10 pixels, each row with a filter byte;
// a few more bytes are allowed.
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

// A row is a filter byte, then grey level and opacity of each pixel.
BOOST_FIXTURE_TEST_CASE(what_is_transparent_shows_the_background, Written) {
  const Bytes rows = {0, 100, 255, 100, 0, 0, 200, 51, 0, 255};
  BOOST_TEST(load(png(2, false, rows, grey_with_alpha)).pixels == (Bytes{100, 255, 244, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(load_image(path, 0).pixels == (Bytes{100, 0, 40, 0}), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(png_data_are_held_against_their_checksum, Written) {
  Bytes data = packed(Bytes(12, 0));
  data.back() ^= 1;
  check_error([&] { load(png_of(3, false, grey, data)); }, {path, "incorrect data check"});
}

// Like image viewers, heed reads an image whose text chunk is damaged.
BOOST_FIXTURE_TEST_CASE(png_chunks_are_held_against_their_checksums, Written) {
  Bytes others = chunk("PLTE", {1, 2, 3});
  append(others, chunk("tEXt", {'a', 0, 'b'}));
  const Bytes good = png_of(1, false, rgb, packed({0, 4, 5, 6}), others);
  for (const std::string type : {"IHDR", "PLTE", "IDAT", "tEXt"}) {
    Bytes bytes = good;
    const auto at = std::search(bytes.begin(), bytes.end(), type.begin(), type.end());
    at[4 + at[-1]] ^= 1;  // the checksum follows the content
    if (type == "tEXt")
      BOOST_TEST(load(bytes).pixels == (Bytes{4, 5, 6}), boost::test_tools::per_element());
    else
      check_error([&] { load(bytes); }, {path, "the checksum of its " + type + " chunk is wrong"});
  }
}

// A palette of one colour; the second pixel refers to the last of 256.
BOOST_FIXTURE_TEST_CASE(colours_beyond_the_palette_are_black, Written) {
  const Bytes rows = packed({0, 0, 255, 0, 0, 0});
  BOOST_TEST(load(png_of(2, false, indexed, rows, chunk("PLTE", {1, 2, 3}))).pixels ==
                 (Bytes{1, 0, 1, 1, 2, 0, 2, 2, 3, 0, 3, 3}),
             boost::test_tools::per_element());
  check_error([&] { load(png_of(2, false, indexed, rows, chunk("PLTE", {1, 2}))); }, {path});
}

BOOST_FIXTURE_TEST_CASE(a_png_without_its_end, Written) {
  Bytes bytes = png(3, false, Bytes(12, 0));
  bytes.resize(bytes.size() - 12);
  check_error([&] { load(bytes); }, {path, "cannot be decoded: the file ends early"});
}

BOOST_FIXTURE_TEST_CASE(png_chunks_end_within_the_file, Written) {
  Bytes bytes = png(3, false, Bytes(12, 0));
  bytes[8 + 25] = 0x50;  // the length of IDAT, which follows IHDR, increases by 1.25 GiB
  check_error([&] { load(bytes); }, {path, "the file ends early"});
}

// stb_image does not report the size of such a large PNG, JPEG or GIF. 20000 is 0x4e20.
BOOST_FIXTURE_TEST_CASE(the_size_of_a_large_image_is_named, Written) {
  Bytes large = png(1, false, {0, 1});
  large[18] = 0x4e, large[19] = 0x20;
  const std::string limit = "expected at most 16384 pixels per side";
  check_error([&] { load(large); }, {path, "the image is 20000x1; " + limit});
  check_error([&] { image_file_size(path); }, {path, "the image is 20000x1; " + limit});
  check_error([&] { load(progressive_jpeg(2500, 1)); }, {path, "the image is 20000x20000; " + limit});
  check_error([&] { load(with_height(progressive_jpeg(2500, 1), 8)); }, {path, "the image is 20000x8; " + limit});
  check_error(
      [&] {
        load({'G', 'I', 'F', '8', '9', 'a', 0x20, 0x4e, 7, 0, 0, 0, 0});
      },
      {"the image is 20000x7; " + limit});
}

BOOST_FIXTURE_TEST_CASE(scans_of_a_jpeg_are_limited, Written) {
  BOOST_TEST(load(progressive_jpeg(1, 100)).pixels.size() == 64u);
  check_error([&] { load(progressive_jpeg(1, 101)); }, {path, "101 scans", "at most 100"});
  // All scans together may have 2^29 pixels, and 256 more for each byte of the file.
  const Bytes large = progressive_jpeg(1250, 6);
  check_error([&] { load(large); }, {path, "6 scans of 10000x10000 pixels",
                                     std::to_string((1 << 29) + 256 * large.size()) + " pixels in all"});
  check_error([&] { load(with_height(progressive_jpeg(1250, 7), 8000)); }, {path, "7 scans of 10000x8000 pixels"});
}

// A JPEG may have at most 10,000 segments and Huffman tables. Tests segments without content, then segments with
// thousands of empty tables.
BOOST_FIXTURE_TEST_CASE(parts_of_a_jpeg_are_limited, Written) {
  Bytes segments = {0xff, 0xd8};
  for (int i = 0; i < 10'000; ++i) append(segments, {0xff, 0xe0, 0, 2});
  Bytes tables = {0xff, 0xd8};
  for (int i = 0; i < 3; ++i) {
    append(tables, {0xff, 0xc4, 0xff, 0xfe});
    append(tables, Bytes(0xfffe - 2, 0));  // tables of 17 bytes
  }
  const Bytes image = progressive_jpeg(1, 1), rest(image.begin() + 2, image.end());
  for (Bytes* bytes : {&segments, &tables}) {
    append(*bytes, rest);
    check_error([&] { load(*bytes); }, {path, "not a readable"});
  }
  // The image itself has four segments and a table.
  segments.erase(segments.begin() + 2, segments.begin() + 2 + 4 * 5);
  BOOST_TEST(load(segments).pixels.size() == 64u);
  segments.insert(segments.begin() + 2, {0xff, 0xe0, 0, 2});
  check_error([&] { load(segments); }, {path, "not a readable"});
}

BOOST_FIXTURE_TEST_CASE(written_images_are_read_again, Written) {
  for (const ImageSize size : {ImageSize{1, 3, 5}, ImageSize{3, 3, 5}, ImageSize{3, 5, 3}}) {
    const Image image = pattern(size, 9);
    save_png(path, image);
    const Image found = load_image(path);
    BOOST_TEST((found.size == size));
    BOOST_TEST(found.pixels == image.pixels, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(names_of_images_end_in_either_case) {
  for (const char* name : {"a.png", "a.jpg", "b/a.JPEG", "a.jfif", "a.jpe", "a.Bmp", "a.b.GIF"})
    BOOST_TEST(has_image_name(name), name);
  for (const char* name : {"", "a", "png", ".png", "a.webp", "a.png.txt", "a.png/b", "a.pngs"})
    BOOST_TEST(!has_image_name(name), name);
}

BOOST_AUTO_TEST_SUITE_END()
