#include "heed/data/images/image.h"

#include "src/data/readers/files.h"
#include "jpeg.h"

#define ZLIB_CONST  // it only reads what is const here
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace {

/// Failed assertions of stb_image become errors: damaged files reach some of them.
struct Inconsistent {};

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_ZLIB               // zlib's own does better, below
#define STBI_MAX_DIMENSIONS 16384  // max_image_side
#define STBI_ASSERT(condition) ((condition) ? void() : throw Inconsistent())
// Zeroed, because a damaged JPEG can make the decoder look into tables that the file never defined.
#define STBI_MALLOC(size) std::calloc(1, size)
#define STBI_REALLOC(memory, size) std::realloc(memory, size)
#define STBI_FREE(memory) std::free(memory)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

/// Inflates a PNG's rows for stb_image, which expects a number of bytes and frees the `found` ones; null on failure.
/// Interlacing makes them at most twice as many, but for the smallest images; data that are longer, compressed or not,
/// are refused before they cost memory or time.
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
                                         : "its data end early",
                   ""),
         nullptr;
}

namespace heed {

static_assert(STBI_MAX_DIMENSIONS == max_image_side);

namespace {

/// Memory of stb_image per decoded pixel (four channels of 16 bits, packed and unpacked), and the longest file within
/// its int.
constexpr Index bytes_per_pixel = 16, max_file_bytes = Index{1} << 30;

std::vector<std::uint8_t> read_whole(const std::string& path) {
  return data::read_file(path, std::min(max_file_bytes, data::read_limit()));
}

/// Limits of a JPEG. Encoders write about ten scans and a few parts for each; a scan costs up to 5 ns per pixel, even
/// if nothing is in it.
constexpr Index max_parts = 10'000, max_scans = 100, max_scanned_pixels = Index{1} << 29;

/// Size from a header; channels 0 if `bytes` do not begin with a whole one.
ImageSize parse_size(const std::vector<std::uint8_t>& bytes) {
  int width = 0, height = 0, components = 0;
  const data::JpegDemands demands = data::jpeg_demands(bytes);
  if (!demands.tables_fit || demands.parts > max_parts ||
      stbi_info_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &components) == 0)
    return {};
  return {components >= 3 ? 3 : 1, height, width};
}

/// Returns true if each chunk of a PNG (length, type, content, checksum) ends within the file: stb_image makes room for
/// a chunk before it looks for it. Other files pass.
bool chunks_fit(const std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t signature = 8, around = 12;
  if (bytes.size() < signature || bytes[1] != 'P') return true;
  for (std::size_t at = signature; at < bytes.size();) {
    if (bytes.size() - at < around) return false;
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (length > bytes.size() - at - around) return false;
    if (std::equal(bytes.begin() + static_cast<Index>(at) + 4, bytes.begin() + static_cast<Index>(at) + 8, "IEND"))
      return true;
    at += around + length;
  }
  return true;
}

/// A pixel of opacity alpha / 255 over a background.
std::uint8_t over(int pixel, int alpha, int background) {
  return static_cast<std::uint8_t>((pixel * alpha + background * (255 - alpha) + 127) / 255);
}

void require_allowed(const std::string& path, const ImageSize& size) {
  require(size.channels > 0, "{}: not a readable PNG or JPEG image", path);
  require(size.height >= 1 && size.width >= 1 && size.height <= max_image_side && size.width <= max_image_side &&
              size.pixels() <= max_image_pixels,
          "{}: the image is {}x{}; at most {} pixels along a side and {} altogether are read", path, size.width,
          size.height, max_image_side, max_image_pixels);
  require(size.pixels() <= data::read_limit() / bytes_per_pixel,
          "{}: the image is {}x{}, and {} bytes to decode it make {} pixels; {}", path, size.width, size.height,
          data::read_limit(), data::read_limit() / bytes_per_pixel, data::raising_read_limit);
}

}  // namespace

ImageSize image_file_size(const std::string& path) {
  // The header ends within the first kilobytes unless large metadata stand before it.
  ImageSize size = parse_size(data::read_start(path, 1 << 14));
  if (size.channels == 0) size = parse_size(read_whole(path));
  require_allowed(path, size);
  return size;
}

bool has_image_name(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

Image load_image(const std::string& path, std::uint8_t background) {
  const std::vector<std::uint8_t> bytes = read_whole(path);
  Image image;
  image.size = parse_size(bytes);
  require_allowed(path, image.size);
  require(chunks_fit(bytes), "{}: the image cannot be decoded: the file ends within a chunk", path);
  const Index scans = data::jpeg_demands(bytes).scans;
  require(scans <= max_scans && scans * image.size.pixels() <= max_scanned_pixels,
          "{}: {} scans of {}x{} pixels; at most {} scans and {} pixels in all scans are decoded", path, scans,
          image.size.width, image.size.height, max_scans, max_scanned_pixels);
  const bool alpha = bytes[1] == 'P';  // a PNG may have some, a JPEG has none
  const int channels = static_cast<int>(image.size.channels), decoded = channels + alpha;
  int width = 0, height = 0, components = 0;
  std::unique_ptr<stbi_uc, void (*)(void*)> interleaved(nullptr, stbi_image_free);
  try {
    interleaved.reset(
        stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &components, decoded));
  } catch (const Inconsistent&) {
    fail("{}: the image cannot be decoded: its data contradict each other", path);
  }
  if (interleaved == nullptr) {
    const char* const reason = stbi_failure_reason();
    fail("{}: the image cannot be decoded: {}", path, reason && *reason ? reason : "the file ends early");
  }
  require(width == image.size.width && height == image.size.height, "{}: the header says {}x{}, the image is {}x{}",
          path, image.size.width, image.size.height, width, height);
  image.pixels.resize(static_cast<std::size_t>(image.size.elements()));
  const Index pixels = image.size.pixels();
  for (Index c = 0; c < channels; ++c)
    for (Index i = 0; i < pixels; ++i) {
      const stbi_uc* const pixel = interleaved.get() + i * decoded;
      image.pixels[static_cast<std::size_t>(c * pixels + i)] =
          alpha ? over(pixel[c], pixel[channels], background) : pixel[c];
    }
  return image;
}

}  // namespace heed
