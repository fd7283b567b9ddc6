#include "heed/data/images/image.h"

#include "src/data/readers/files.h"
#include "bytes.h"
#include "damage.h"
#include "exif.h"
#include "jpeg.h"

#define ZLIB_CONST  // makes zlib's input pointer const
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace {

/// Thrown by failed assertions of stb_image; damaged files can trigger some of these assertions.
struct Inconsistent {};

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_NO_ZLIB               // replaced by zlib, below
#define STBI_MAX_DIMENSIONS 16384  // max_image_side
#define STBI_ASSERT(condition) ((condition) ? void() : throw Inconsistent())
// Zeroed, because the decoder of a damaged JPEG can read tables that the file never defined.
#define STBI_MALLOC(size) std::calloc(1, size)
#define STBI_REALLOC(memory, size) std::realloc(memory, size)
#define STBI_FREE(memory) std::free(memory)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

/// Inflates a PNG's rows for stb_image, which expects `expected` bytes and frees the result. Writes the actual number
/// of bytes to `found`; returns null on failure. Interlacing at most doubles the expected number, except for the
/// smallest images, hence 64 more; longer data, compressed or not, are refused before they cost memory or time.
static char* stbi_zlib_decode_malloc_guesssize_headerflag(const char* data, int length, int expected, int* found,
                                                          int with_header) {
  const unsigned most = 2 * static_cast<unsigned>(expected) + 64;
  if (static_cast<unsigned>(length) > most) return stbi__err("more data than pixels", ""), nullptr;
  char* const rows = static_cast<char*>(std::malloc(most));
  z_stream stream{};
  stream.next_in = reinterpret_cast<const Bytef*>(data);
  stream.avail_in = static_cast<unsigned>(length);
  stream.next_out = reinterpret_cast<Bytef*>(rows);
  stream.avail_out = most;
  if (rows == nullptr || inflateInit2(&stream, with_header ? MAX_WBITS : -MAX_WBITS) != Z_OK) {
    std::free(rows);
    return stbi__err("out of memory", ""), nullptr;
  }
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  *found = static_cast<int>(stream.total_out);
  if (result == Z_STREAM_END) return rows;
  std::free(rows);
  return stbi__err(stream.avail_out == 0 ? "more data than pixels"
                   : stream.msg          ? stream.msg
                                         : "its data is incomplete",
                   ""),
         nullptr;
}

/// Decodes the first frame of a GIF into pixels [height, width, 4] of its canvas, transparent around the frame. Returns
/// null on failure, or if the frame's data end before its pixels.
static stbi_uc* load_first_frame(const std::vector<stbi_uc>& bytes, int& width, int& height) {
  stbi__context context;
  stbi__start_mem(&context, bytes.data(), static_cast<int>(bytes.size()));
  stbi__gif gif{};
  int components = 0;
  const bool found = stbi__gif_load_next(&context, &gif, &components, 4, nullptr) == gif.out && gif.out != nullptr;
  const bool complete = gif.start_x < gif.max_x && gif.start_y < gif.max_y && gif.cur_y >= gif.max_y;
  if (found && !complete) stbi__err("the data of its first frame are incomplete", "");
  // stb_image fills the canvas around the frame with the background colour, red and blue swapped; browsers leave
  // this area transparent.
  for (int i = 0; found && i < gif.w * gif.h; ++i)
    if (gif.history[i] == 0) gif.out[4 * i + 3] = 0;
  std::free(gif.background);
  std::free(gif.history);
  width = gif.w, height = gif.h;
  if (found && complete) return gif.out;
  std::free(gif.out);
  return nullptr;
}

namespace heed {

static_assert(STBI_MAX_DIMENSIONS == max_image_side);

namespace {

/// Memory of stb_image per decoded pixel (four channels of 16 bits, packed and unpacked), and the maximum length of a
/// file, which stb_image stores as an int; both in bytes.
constexpr Index bytes_per_pixel = 16, max_file_bytes = Index{1} << 30;

std::vector<std::uint8_t> read_whole(const std::string& path) {
  return data::read_file(path, std::min(max_file_bytes, data::read_limit()));
}

/// Limits of a JPEG. Encoders write about ten scans, with a few parts each; even an empty scan costs up to 5 ns per
/// pixel.
constexpr Index max_parts = 10'000, max_scans = 100;

/// Returns the maximum number of pixels in all scans together. It grows with the file length: photographs are large
/// files, attacks can be small.
Index max_scanned_pixels(Index bytes) { return (Index{1} << 29) + 256 * bytes; }

/// Returns true for Xcode's variant of PNG, in which stb_image would swap red and blue.
bool is_cgbi(const std::vector<std::uint8_t>& bytes) { return data::begins_with(bytes, 12, "CgBI"); }

/// Parses the size in a header; channels are 0 if `bytes` do not begin with a complete header of a supported image.
ImageSize parse_size(const std::vector<std::uint8_t>& bytes) {
  int width = 0, height = 0, components = 0;
  const data::JpegDemands demands = data::jpeg_demands(bytes);
  if (is_cgbi(bytes) || !demands.tables_fit || demands.parts > max_parts || demands.cmyk_without_mark ||
      stbi_info_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &components) == 0)
    return {};
  return {components >= 3 ? 3 : 1, std::abs(Index{height}), width};  // negative height: a BMP's rows from the top
}

/// Returns the size in the header of a PNG, GIF or JPEG, even above stb_image's limit.
ImageSize declared_size(const std::vector<std::uint8_t>& bytes) {
  const auto side = [&](std::size_t at, std::size_t count, bool little) {
    return static_cast<Index>(data::number_at(bytes, at, count, little));
  };
  if (data::begins_with(bytes, 12, "IHDR")) return {3, side(20, 4, false), side(16, 4, false)};
  if (data::begins_with(bytes, 0, "GIF8")) return {3, side(8, 2, true), side(6, 2, true)};
  const data::JpegDemands demands = data::jpeg_demands(bytes);
  return {3, demands.height, demands.width};
}

/// Returns true if the image may have an alpha channel. In a BMP without channel masks, the fourth byte is padding.
bool may_have_alpha(const std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t masks = 3;  // value of the compression field
  return data::begins_with(bytes, 0, "BM") ? data::number_at(bytes, 30, 4, true) == masks : bytes[0] != 0xff;
}

/// Returns true for a BMP with run-length compression, which stb_image does not support.
bool is_run_length_bmp(const std::vector<std::uint8_t>& bytes) {
  const std::size_t header = data::number_at(bytes, 14, 4, true), compression = data::number_at(bytes, 30, 4, true);
  return data::begins_with(bytes, 0, "BM") && header >= 40 && (compression == 1 || compression == 2);
}

/// Blends a pixel of opacity alpha / 255 with a background.
std::uint8_t over(int pixel, int alpha, int background) {
  return static_cast<std::uint8_t>((pixel * alpha + background * (255 - alpha) + 127) / 255);
}

constexpr const char* web_page = "a web page";

/// Returns the name of an unsupported format, recognised by its first bytes; nullptr for others.
const char* other_format(const std::vector<std::uint8_t>& bytes) {
  struct Mark {
    std::size_t at;
    std::string_view text;
    const char* name;
  };
  using namespace std::string_view_literals;
  static constexpr Mark marks[] = {
      {8, "WEBP"sv, "a WebP image"},      {0, "II*\0"sv, "a TIFF image"},       {0, "MM\0*"sv, "a TIFF image"},
      {4, "ftypavif"sv, "an AVIF image"}, {4, "ftyphei"sv, "a HEIC image"},     {4, "ftypmif1"sv, "a HEIF image"},
      {0, "8BPS"sv, "a Photoshop file"},  {0, "%PDF"sv, "a PDF document"},      {0, "<svg"sv, "an SVG drawing"},
      {0, "<?xml"sv, "an XML document"},  {0, "<!DOCTYPE"sv, web_page},         {0, "<html"sv, web_page},
      {4, "JXL "sv, "a JPEG XL image"},   {0, "\xff\x0a"sv, "a JPEG XL image"}, {4, "jP  "sv, "a JPEG 2000 image"}};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 64));
  for (const Mark& mark : marks)
    if (text.size() >= mark.at && text.substr(mark.at).starts_with(mark.text)) return mark.name;
  return nullptr;
}

void require_allowed(const std::string& path, const ImageSize& size) {
  require(size.height >= 1 && size.width >= 1 && size.height <= max_image_side && size.width <= max_image_side &&
              size.pixels() <= max_image_pixels,
          "{}: the image is {}x{}; expected at most {} pixels per side and {} in total", path, size.width, size.height,
          max_image_side, max_image_pixels);
  if (std::getenv("HEED_READ_LIMIT") == nullptr) return;
  require(size.pixels() <= data::read_limit() / bytes_per_pixel,
          "{}: the image is {}x{}; the limit of {} bytes allows {} pixels; {}", path, size.width, size.height,
          data::read_limit(), data::read_limit() / bytes_per_pixel, data::raising_read_limit);
}

/// Returns the image size from the start of a file. Throws Error naming the actual format if it is not an image.
ImageSize require_image(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  const ImageSize size = parse_size(bytes);
  if (size.channels > 0) return size;
  require(!bytes.empty(), "{}: not a readable image: the file is empty", path);
  if (const ImageSize declared = declared_size(bytes); std::max(declared.height, declared.width) > max_image_side)
    require_allowed(path, declared);
  require(!data::jpeg_demands(bytes).cmyk_without_mark,
          "{}: a CMYK JPEG without Adobe's marker, so its colours are unknown; convert it with ImageMagick: mogrify "
          "-colorspace sRGB",
          path);
  require(!is_cgbi(bytes),
          "{}: not a readable image: the content is a PNG for iPhones (CgBI), as Xcode writes it; convert it on macOS: "
          "xcrun -sdk iphoneos pngcrush -revert-iphone-optimizations FILE.png NEW.png",
          path);
  if (const char* const other = is_run_length_bmp(bytes) ? "a BMP with run-length compression" : other_format(bytes)) {
    require(other != web_page, "{}: not a readable image: the content is {}, as of a failed download", path, other);
    // A PNG is replaced; another file remains beside its conversion, and would be refused again.
    const bool remains = has_image_name(path) && data::ending_of(path) != ".png";
    fail("{}: not a readable image: the content is {}; convert it with ImageMagick: mogrify -format png{}", path, other,
         remains ? ", then remove it" : "");
  }
  fail("{}: not a readable PNG, JPEG, BMP or GIF image", path);
}

/// Extends a PNG's palette to 256 colours with black: stb_image leaves the missing ones uninitialised, but damaged
/// pixels may refer to them.
void fill_palette(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t whole = 3 * 256, around = 12;
  if (!data::begins_with(bytes, 0, "\x89PNG")) return;
  for (std::size_t at = 8, length; at < bytes.size(); at += around + length) {
    length = data::number_at(bytes, at, 4, false);
    if (data::begins_with(bytes, at + 4, "IDAT") || length > bytes.size() - at) return;
    if (!data::begins_with(bytes, at + 4, "PLTE") || length >= whole || length % 3 != 0) continue;
    bytes.insert(bytes.begin() + static_cast<Index>(at + 8 + length), whole - length, 0);
    bytes[at + 2] = whole >> 8, bytes[at + 3] = 0;
    return;
  }
}

/// Lets one thread at a time decode a large image, to limit memory.
std::unique_lock<std::mutex> large_image_lock(const ImageSize& size) {
  static std::mutex mutex;
  constexpr Index small = Index{1} << 25;
  return size.pixels() > small ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

}  // namespace

ImageSize image_file_size(const std::string& path, bool oriented) {
  // The header ends within the first kilobytes unless large metadata precede it.
  std::vector<std::uint8_t> bytes = data::read_start(path, 1 << 14);
  ImageSize size = parse_size(bytes);
  if (size.channels == 0) {
    bytes = read_whole(path);
    size = require_image(path, bytes);
  }
  require_allowed(path, size);
  if (oriented) {
    // A PNG is read whole, since metadata may follow its pixels.
    std::optional<int> orientation = data::exif_orientation(bytes);
    if (!orientation) orientation = data::exif_orientation(read_whole(path));
    if (data::swaps_sides(orientation.value_or(1))) std::swap(size.height, size.width);
  }
  return size;
}

bool has_image_name(const std::string& path) {
  constexpr std::string_view known[] = {".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".bmp", ".gif"};
  return std::ranges::count(known, data::ending_of(path)) > 0;
}

Image load_image(const std::string& path, std::uint8_t background, bool oriented) {
  std::vector<std::uint8_t> bytes = read_whole(path);
  Image image;
  image.size = require_image(path, bytes);
  require_allowed(path, image.size);
  const std::unique_lock<std::mutex> alone = large_image_lock(image.size);
  const std::string damage = data::damage(bytes, image.size);
  require(damage.empty(), "{}: the image cannot be decoded: {}", path, damage);
  fill_palette(bytes);
  const Index scans = data::jpeg_demands(bytes).scans;
  const Index most_pixels = max_scanned_pixels(static_cast<Index>(bytes.size()));
  require(scans <= max_scans && scans * image.size.pixels() <= most_pixels,
          "{}: {} scans of {}x{} pixels in {} bytes; expected at most {} scans, and {} pixels in all scans", path,
          scans, image.size.width, image.size.height, bytes.size(), max_scans, most_pixels);
  const bool alpha = may_have_alpha(bytes);
  const int channels = static_cast<int>(image.size.channels), decoded = channels + alpha;
  int width = 0, height = 0, components = 0;
  std::unique_ptr<stbi_uc, void (*)(void*)> interleaved(nullptr, stbi_image_free);
  try {
    interleaved.reset(data::begins_with(bytes, 0, "GIF8")
                          ? load_first_frame(bytes, width, height)
                          : stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height,
                                                  &components, decoded));
  } catch (const Inconsistent&) {
    fail("{}: the image cannot be decoded: its data is inconsistent", path);
  }
  if (interleaved == nullptr) {
    const char* const reason = stbi_failure_reason();
    fail("{}: the image cannot be decoded: {}", path, reason && *reason ? reason : "the file ends early");
  }
  require(width == image.size.width && height == image.size.height, "{}: the header states {}x{}, the image is {}x{}",
          path, image.size.width, image.size.height, width, height);
  image.pixels.resize(image.size.elements());
  const Index pixels = image.size.pixels();
  for (Index c = 0; c < channels; ++c)
    for (Index i = 0; i < pixels; ++i) {
      const stbi_uc* const pixel = interleaved.get() + i * decoded;
      image.pixels[c * pixels + i] = alpha ? over(pixel[c], pixel[channels], background) : pixel[c];
    }
  interleaved.reset();
  return data::upright(std::move(image), oriented ? data::exif_orientation(bytes).value_or(1) : 1);
}

}  // namespace heed
