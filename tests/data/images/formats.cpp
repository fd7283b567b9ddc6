// Image formats other than PNG and JPEG, unsupported formats, and the orientation in EXIF metadata.
#include "support/images.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns EXIF metadata with an orientation only: byte order, offset of the directory, one entry, no other directory.
Bytes exif(std::uint8_t orientation, bool little) {
  if (little) return {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0};
  return {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
}

/// Writes a PNG with the metadata in a chunk after the header, which ends at byte 33, or before the end chunk, which
/// has 12 bytes.
void write_oriented_png(const std::string& path, const Image& image, const Bytes& metadata, bool at_end = false) {
  write_image(path, image);
  Bytes bytes = read_bytes(path), chunk = {0, 0, 0, static_cast<std::uint8_t>(metadata.size()), 'e', 'X', 'I', 'f'};
  chunk.insert(chunk.end(), metadata.begin(), metadata.end());
  chunk.insert(chunk.end(), 4, 0);  // a checksum that is not checked
  bytes.insert(at_end ? bytes.end() - 12 : bytes.begin() + 33, chunk.begin(), chunk.end());
  write_file(path, bytes);
}

/// Returns EXIF metadata whose directory begins at byte 14 and has the camera's make before the orientation.
Bytes long_exif(std::uint8_t orientation, bool little) {
  if (little)
    return {'I', 'I', 42,  0,   14,  0, 0,    0, 9, 9, 9, 9, 9, 9, 2,           0, 0x0f, 1, 2, 0, 4, 0,
            0,   0,   'a', 'b', 'c', 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0,    0, 0, 0, 0, 0};
  return {'M', 'M', 0,   42,  0,   0, 0, 14,   9, 9, 9, 9, 9, 9, 0, 2,           1, 0x0f, 0, 2, 0, 0,
          0,   4,   'a', 'b', 'c', 0, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0,    0, 0, 0, 0};
}

/// Returns an application segment of a JPEG file: marker, length (which includes its own two bytes), name and content.
Bytes segment(std::uint8_t marker, const std::string& name, const Bytes& content) {
  const std::size_t length = 2 + name.size() + content.size();
  Bytes bytes = {0xff, marker, static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length)};
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

struct OnePath {
  TemporaryDirectory directory;
  std::string path = directory / "x.png";
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_image_formats)

BOOST_FIXTURE_TEST_CASE(images_are_turned_as_viewers_turn_them, OnePath) {
  const Image stored{{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  const std::vector<Bytes> seen = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
                                   {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation)
    for (const bool little : {true, false}) {
      write_oriented_png(path, stored, exif(orientation, little));
      const ImageSize size = orientation < 5 ? ImageSize{1, 2, 3} : ImageSize{1, 3, 2};
      const Image image = load_image(path);
      BOOST_TEST((image.size == size));
      BOOST_TEST((image_file_size(path) == size));
      BOOST_TEST(image.pixels == seen[orientation - 1u], boost::test_tools::per_element());
      BOOST_TEST(load_image(path, 255, false).pixels == stored.pixels, boost::test_tools::per_element());
      BOOST_TEST((image_file_size(path, false) == stored.size));
      write_oriented_png(path, stored, exif(orientation, little), true);
      BOOST_TEST(load_image(path).pixels == seen[orientation - 1u], boost::test_tools::per_element());
      BOOST_TEST((image_file_size(path) == size));
    }
  // Integers of four bytes have the type 4, of two bytes the type 3.
  for (const bool little : {true, false}) {
    Bytes metadata = exif(little ? 6 : 0, little);
    metadata[little ? 12 : 13] = 4;
    if (!little) metadata[21] = 6;
    write_oriented_png(path, stored, metadata);
    BOOST_TEST(load_image(path).pixels == seen[5], boost::test_tools::per_element());
  }
  // Invalid orientations and truncated metadata have no effect.
  for (const std::uint8_t orientation : {0, 9}) {
    write_oriented_png(path, stored, exif(orientation, true));
    BOOST_TEST((load_image(path).size == stored.size));
  }
  const Bytes whole = exif(6, false);
  for (std::size_t length = 0; length < 20; ++length) {
    write_oriented_png(path, stored, Bytes(whole.begin(), whole.begin() + static_cast<Index>(length)));
    BOOST_TEST((load_image(path).size == stored.size), length);
  }
}

BOOST_FIXTURE_TEST_CASE(jpegs_are_turned_as_well, OnePath) {
  const std::string jpeg = directory / "x.jpg";
  write_image(jpeg, pattern({3, 8, 16}, 0));
  Bytes bytes = read_bytes(jpeg), segment = {0xff, 0xe1, 0, 0, 'E', 'x', 'i', 'f', 0, 0};
  const Image stored = load_image(jpeg);
  const Bytes metadata = exif(6, true);
  segment.insert(segment.end(), metadata.begin(), metadata.end());
  segment[3] = static_cast<std::uint8_t>(segment.size() - 2);
  bytes.insert(bytes.begin() + 2, segment.begin(), segment.end());
  write_file(jpeg, bytes);
  const Image turned = load_image(jpeg);
  BOOST_TEST((turned.size == ImageSize{3, 16, 8}));
  for (Index y = 0; y < 16; ++y)
    for (Index x = 0; x < 8; ++x)
      BOOST_REQUIRE(turned.pixels[static_cast<std::size_t>(y * 8 + x)] ==
                    stored.pixels[static_cast<std::size_t>((7 - x) * 16 + y)]);
}

/// Checks that the file's first `needed` bytes can be read as an image, and that anything shorter is refused.
void check_every_length(const std::string& path, const Bytes& bytes, std::size_t needed) {
  for (std::size_t length = 1; length < needed; ++length) {
    write_file(path, Bytes(bytes.begin(), bytes.begin() + static_cast<Index>(length)));
    BOOST_CHECK_THROW(load_image(path), Error);
  }
  write_file(path, Bytes(bytes.begin(), bytes.begin() + static_cast<Index>(needed)));
  BOOST_CHECK_NO_THROW(load_image(path));
}

BOOST_FIXTURE_TEST_CASE(gif_is_read, OnePath) {
  // Two colours. The data are the codes clear, 0, 1 and end, of three bits each.
  Bytes gif = {'G', 'I', 'F', '8', '9', 'a', 2, 0, 1, 0, 0x80, 0, 0, 10, 20, 30, 200, 210, 220, 0x2c};
  gif.insert(gif.end(), {0, 0, 0, 0, 2, 0, 1, 0, 0, 2, 2, 0x44, 0x0a, 0, 0x3b});
  write_file(directory / "x.gif", gif);
  const Image image = load_image((directory / "x.gif").string());
  BOOST_TEST((image.size == ImageSize{3, 1, 2}));
  BOOST_TEST(image.pixels == (Bytes{10, 200, 20, 210, 30, 220}), boost::test_tools::per_element());
  read_damaged(gif, 500, [&](const Bytes& bytes) {
    write_file(directory / "x.gif", bytes);
    load_image((directory / "x.gif").string());
  });
  check_every_length((directory / "x.gif").string(), gif, gif.size() - 1);  // without the trailer
  const Bytes comment = {0x21, 0xfe, 2, 'h', 'i', 1, '!', 0};
  gif.insert(gif.begin() + 19, comment.begin(), comment.end());
  gif[36] = 0x80;  // the frame has its own palette
  gif.insert(gif.begin() + 37, {1, 2, 3, 4, 5, 6});
  check_every_length((directory / "x.gif").string(), gif, gif.size() - 1);
}

/// Returns a GIF with a canvas of 4 x 2 pixels and a frame with data for `pixels` of its pixels. A code has three bits:
/// 4 clears the table, which happens before every second pixel, 1 is a colour, 5 is the end.
Bytes gif_frame(std::uint8_t width, std::uint8_t height, std::uint8_t interlaced, int pixels) {
  Bytes gif = {'G', 'I', 'F', '8', '9', 'a', 4, 0, 2, 0, 0x80, 0, 0, 10, 20, 30, 200, 210, 220, 0x2c};
  gif.insert(gif.end(), {0, 0, 0, 0, width, 0, height, 0, interlaced, 2, 6});
  std::uint64_t codes = 0;
  int bits = 0;
  const auto add = [&](std::uint64_t code) { codes |= code << bits, bits += 3; };
  for (int i = 0; i < pixels; ++i) {
    if (i % 2 == 0) add(4);
    add(1);
  }
  add(5);
  for (int shift = 0; shift < 48; shift += 8) gif.push_back(static_cast<std::uint8_t>(codes >> shift));
  gif.insert(gif.end(), {0, 0x3b});
  return gif;
}

// Pixels around the frame are transparent, for any background colour.
BOOST_FIXTURE_TEST_CASE(the_canvas_around_a_frame_is_transparent, OnePath) {
  for (const std::uint8_t colour : {0, 1}) {
    Bytes gif = gif_frame(3, 1, 0, 3);
    gif[11] = colour;  // index of the background
    write_file(path, gif);
    for (const std::uint8_t background : {255, 7}) {
      const Image image = load_image(path, background);
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < 8; ++i)
          BOOST_TEST(image.pixels[static_cast<std::size_t>(8 * c + i)] == (i < 3 ? 200 + 10 * c : background));
    }
  }
}

// stb_image fills missing pixels with the background. A broken copy ends in zeros, and a length of zero ends the data.
BOOST_FIXTURE_TEST_CASE(frames_of_a_gif_have_all_their_pixels, OnePath) {
  const auto check = [&](const Bytes& gif, bool complete) {
    write_file(path, gif);
    if (complete)
      BOOST_TEST((load_image(path).size == ImageSize{3, 2, 4}));
    else
      check_error([&] { load_image(path); }, {path, "the data of its first frame are incomplete"});
  };
  for (const std::uint8_t interlaced : {0, 0x40})
    for (const auto& [width, height] : {std::pair(4, 2), std::pair(3, 1), std::pair(1, 2)})
      for (int pixels = 0; pixels <= width * height; ++pixels)
        check(gif_frame(static_cast<std::uint8_t>(width), static_cast<std::uint8_t>(height), interlaced, pixels),
              pixels == width * height);
  check(gif_frame(0, 0, 0, 0), false);
  Bytes zeros = gif_frame(4, 2, 0, 8);
  zeros[30] = 1;  // length of the data
  std::fill(zeros.begin() + 32, zeros.end(), std::uint8_t{0});
  check(zeros, false);
}

BOOST_FIXTURE_TEST_CASE(bmp_is_read, OnePath) {
  // Two rows of two pixels, blue first, bottom row first, rows padded to four bytes.
  Bytes bmp = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0};
  bmp.insert(bmp.end(), 24, 0);
  bmp.insert(bmp.end(), {3, 2, 1, 6, 5, 4, 0, 0, 9, 8, 7, 12, 11, 10, 0, 0});
  write_file(directory / "x.bmp", bmp);
  const Image image = load_image((directory / "x.bmp").string());
  BOOST_TEST((image.size == ImageSize{3, 2, 2}));
  BOOST_TEST(image.pixels == (Bytes{7, 10, 1, 4, 8, 11, 2, 5, 9, 12, 3, 6}), boost::test_tools::per_element());
  read_damaged(bmp, 500, [&](const Bytes& bytes) {
    write_file(directory / "x.bmp", bytes);
    load_image((directory / "x.bmp").string());
  });
  check_every_length((directory / "x.bmp").string(), bmp, bmp.size() - 2);  // the last row needs no padding
  // A negative height: the top row is first.
  bmp[22] = 0xfe, bmp[23] = bmp[24] = bmp[25] = 0xff;
  write_file(path, bmp);
  BOOST_TEST((image_file_size(path) == ImageSize{3, 2, 2}));
  BOOST_TEST(load_image(path).pixels == (Bytes{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}),
             boost::test_tools::per_element());
}

// A header of 12 bytes, as in OS/2, stores width and height in two bytes each. The pixels are the same as in
// bmp_is_read.
BOOST_FIXTURE_TEST_CASE(bmp_with_a_short_header, OnePath) {
  Bytes bmp = {'B', 'M', 42, 0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 12, 0, 0, 0, 2, 0, 2, 0, 1, 0, 24, 0};
  bmp.insert(bmp.end(), {3, 2, 1, 6, 5, 4, 0, 0, 9, 8, 7, 12, 11, 10, 0, 0});
  check_every_length(path, bmp, bmp.size() - 2);  // the last row needs no padding
  BOOST_TEST((image_file_size(path) == ImageSize{3, 2, 2}));
  BOOST_TEST(load_image(path).pixels == (Bytes{7, 10, 1, 4, 8, 11, 2, 5, 9, 12, 3, 6}),
             boost::test_tools::per_element());
}

// Two colours, blue first, and a byte per pixel: rows of three bytes, padded to four.
BOOST_FIXTURE_TEST_CASE(bmp_with_a_palette, OnePath) {
  Bytes bmp = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 8, 0};
  bmp.insert(bmp.end(), 24, 0);
  bmp.insert(bmp.end(), {30, 20, 10, 0, 220, 210, 200, 0});
  bmp.insert(bmp.end(), {0, 1, 1, 0, 1, 0, 0, 0});
  check_every_length(path, bmp, bmp.size() - 1);
  BOOST_TEST((image_file_size(path) == ImageSize{3, 2, 3}));
  BOOST_TEST(load_image(path).pixels ==
                 (Bytes{200, 10, 10, 10, 200, 200, 210, 20, 20, 20, 210, 210, 220, 30, 30, 30, 220, 220}),
             boost::test_tools::per_element());
}

// Without masks, the fourth byte of a pixel is unused; a mask makes it an opacity.
BOOST_FIXTURE_TEST_CASE(opacities_of_a_bmp_have_a_mask, OnePath) {
  for (const bool masked : {false, true}) {
    const std::uint8_t header = masked ? 108 : 40, compression = masked ? 3 : 0;
    Bytes bmp = {'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(14 + header), 0, 0, 0, header, 0, 0, 0};
    bmp.insert(bmp.end(), {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 32, 0, compression, 0, 0, 0});
    bmp.resize(14u + 40u);
    if (masked) bmp.insert(bmp.end(), {0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255});
    bmp.resize(14u + header);
    bmp.insert(bmp.end(), {30, 20, 10, 51});
    write_file(path, bmp);
    BOOST_TEST(load_image(path).pixels == (masked ? Bytes{206, 208, 210} : Bytes{10, 20, 30}),
               boost::test_tools::per_element());
  }
}

BOOST_FIXTURE_TEST_CASE(other_formats_are_called_by_their_names, OnePath) {
  const auto says = [&](const std::string& bytes, const std::string& what) {
    write_file(path, Bytes(bytes.begin(), bytes.end()));
    check_error([&] { load_image(path); }, {path, what});
    check_error([&] { image_file_size(path); }, {path, what});
  };
  says(std::string("RIFF\0\0\0\0WEBPVP8 ", 16),
       "the content is a WebP image; convert it with ImageMagick: mogrify -format png");
  says(std::string("II*\0\x08\0\0\0", 8), "a TIFF image");
  says(std::string("\0\0\0\x1c"
                   "ftypheic",
                   12),
       "a HEIC image");
  says(std::string("\0\0\0\x1c"
                   "ftypavif",
                   12),
       "the content is an AVIF image");
  says(std::string("\0\0\0\x1c"
                   "ftypmif1",
                   12),
       "a HEIF image");
  says(std::string("MM\0*\0\0\0\x08", 8), "a TIFF image");
  says("8BPS\1", "a Photoshop file");
  says("%PDF-1.7", "a PDF document");
  says("<svg xmlns", "an SVG drawing");
  says("<?xml version", "an XML document");
  says("<html lang", "the content is a web page, as of a failed download");
  for (const char* name : {"JXL ", "jP  "})
    says(std::string("\0\0\0\x0c", 4) + name + "\r\n\x87\n", *name == 'J' ? "a JPEG XL image" : "a JPEG 2000 image");
  says("\xff\x0a\x12\x34", "a JPEG XL image");
  says("<!DOCTYPE html>", "a web page");
  // A PNG is replaced by its conversion; another file remains and has to be removed.
  write_file(directory / "x.jpg", Bytes{'I', 'I', 42, 0});
  check_error([&] { load_image(directory / "x.jpg"); }, {"mogrify -format png, then remove it"});
  says("", "the file is empty");
  // BMP headers of 40 bytes, with run-length compression for pixels of 8 and of 4 bits.
  const std::string bmp("BM\0\0\0\0\0\0\0\0\66\0\0\0\50\0\0\0\1\0\0\0\1\0\0\0\1\0\10\0", 30);
  for (const char compression : {1, 2})
    says(bmp + compression + std::string(23, '\0'),
         "the content is a BMP with run-length compression; convert it with ImageMagick: mogrify -format png");
  // A JPEG with four channels and without Adobe's segment.
  says(std::string("\xff\xd8\xff\xc0\0\x14\x08\0\x08\0\x08\x04\1\x11\0\2\x11\0\3\x11\0\4\x11\0\xff\xd9", 26),
       "a CMYK JPEG without Adobe's marker");
}

// Xcode writes PNG files into apps with red and blue exchanged, and with a chunk before the header, by which heed
// recognises them.
BOOST_FIXTURE_TEST_CASE(png_files_of_xcode_are_refused, OnePath) {
  write_image(path, pattern({3, 2, 2}, 0));
  Bytes bytes = read_bytes(path);
  const Bytes chunk = {0, 0, 0, 4, 'C', 'g', 'B', 'I', 0x50, 0, 0x20, 2, 0x2b, 0xd5, 0xb3, 0x7f};
  bytes.insert(bytes.begin() + 8, chunk.begin(), chunk.end());
  write_file(path, bytes);
  for (const bool whole : {true, false})
    check_error(
        [&] { whole ? static_cast<void>(load_image(path)) : static_cast<void>(image_file_size(path)); },
        {path + ": not a readable image: the content is a PNG for iPhones (CgBI)", "xcrun -sdk iphoneos pngcrush"});
}

// Editing programs write XMP metadata, which is in an APP1 segment like EXIF, before or after it. There may also be
// JFIF segments, comments and colour profiles.
BOOST_FIXTURE_TEST_CASE(the_orientation_is_found_among_other_metadata, OnePath) {
  const std::string jpeg = directory / "x.jpg", exif_mark("Exif\0\0", 6),
                    xmp_mark("http://ns.adobe.com/xap/1.0/\0", 29);
  write_image(jpeg, pattern({3, 8, 16}, 0));
  const Bytes plain = read_bytes(jpeg), fill(2, 0xff);
  const Bytes xmp = segment(0xe1, xmp_mark, {'<', 'x', '/', '>'}), comment = segment(0xfe, "made by hand", {}),
              profile = segment(0xe2, std::string(20000, 'a'), {});
  for (const bool little : {true, false})
    for (const Bytes& metadata : {exif(6, little), long_exif(6, little)}) {
      const Bytes turned = segment(0xe1, exif_mark, metadata);
      for (const std::vector<Bytes>& segments : {std::vector{turned, xmp},
                                                 {xmp, turned},
                                                 {comment, xmp, comment, turned},
                                                 {xmp, profile, turned},
                                                 {fill, turned},
                                                 {xmp, fill, turned}}) {
        Bytes bytes = plain;
        Bytes added;
        for (const Bytes& each : segments) added.insert(added.end(), each.begin(), each.end());
        bytes.insert(bytes.begin() + 2, added.begin(), added.end());
        write_file(jpeg, bytes);
        BOOST_TEST((load_image(jpeg).size == ImageSize{3, 16, 8}));
        BOOST_TEST((image_file_size(jpeg) == ImageSize{3, 16, 8}));
      }
      for (const std::uint8_t pages : {0, 80}) {  // 256 bytes each
        write_oriented_png(path, pattern({1, 2, 3}, 0), metadata);
        Bytes bytes = read_bytes(path), text = {0, 0, pages, 3, 't', 'E', 'X', 't', 'a', 0, 'b'};
        text.insert(text.end(), 256u * pages + 4, 0);
        bytes.insert(bytes.begin() + 33, text.begin(), text.end());
        write_file(path, bytes);
        BOOST_TEST((load_image(path).size == ImageSize{1, 3, 2}));
        BOOST_TEST((image_file_size(path) == ImageSize{1, 3, 2}));
      }
    }
}

// If a class has fewer than five images, its last one is for testing.
BOOST_FIXTURE_TEST_CASE(folders_turn_their_images_unless_told_not_to, OnePath) {
  const Image stored{{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  write_oriented_png(directory / "cat/0.png", stored, exif(6, true));
  write_image(directory / "cat/1.png", stored);
  DataConfig data;
  data.name = "folder", data.path = directory.path().string();
  for (const bool turned : {true, false}) {
    data.orientation = turned;
    const auto set = open_dataset(data, Split::train);
    Image image;
    set->read(0, image);
    const ImageSize size = turned ? ImageSize{1, 3, 2} : stored.size;
    BOOST_TEST((set->image_size() == size));
    BOOST_TEST((image.size == size));
    BOOST_TEST(image.pixels == (turned ? Bytes{4, 1, 5, 2, 6, 3} : stored.pixels), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
