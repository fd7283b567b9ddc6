#include "heed/data/image.h"

#include "files.h"
#include "jpeg.h"

#include <cstdlib>
#include <memory>

namespace {

/// What a failed assertion of stb_image becomes: damaged files reach some of them.
struct Inconsistent {};

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
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

namespace heed {

static_assert(STBI_MAX_DIMENSIONS == max_image_side);

namespace {

/// Far above any PNG or JPEG of max_image_pixels, and within stb's int.
constexpr Index max_file_bytes = Index{1} << 30;

/// Size from a header; channels 0 if `bytes` do not begin with a whole one.
ImageSize parse_size(const std::vector<std::uint8_t>& bytes) {
  int width = 0, height = 0, components = 0;
  if (!data::huffman_tables_fit(bytes) ||
      stbi_info_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &components) == 0)
    return {};
  return {components >= 3 ? 3 : 1, height, width};
}

void require_allowed(const std::string& path, const ImageSize& size) {
  require(size.channels > 0, "{}: not a readable PNG or JPEG image", path);
  require(size.height >= 1 && size.width >= 1 && size.height <= max_image_side && size.width <= max_image_side &&
              size.pixels() <= max_image_pixels,
          "{}: the image is {}x{}; at most {} pixels along a side and {} altogether are read", path, size.width,
          size.height, max_image_side, max_image_pixels);
}

}  // namespace

std::string to_string(const ImageSize& size) { return fmt::format("{}x{}x{}", size.channels, size.height, size.width); }

ImageSize image_file_size(const std::string& path) {
  // The header ends within the first kilobytes unless large metadata stand before it.
  ImageSize size = parse_size(data::read_start(path, 1 << 14));
  if (size.channels == 0) size = parse_size(data::read_file(path, max_file_bytes));
  require_allowed(path, size);
  return size;
}

Image load_image(const std::string& path) {
  const std::vector<std::uint8_t> bytes = data::read_file(path, max_file_bytes);
  Image image;
  image.size = parse_size(bytes);
  require_allowed(path, image.size);
  const int channels = static_cast<int>(image.size.channels);
  int width = 0, height = 0, components = 0;
  std::unique_ptr<stbi_uc, void (*)(void*)> interleaved(nullptr, stbi_image_free);
  try {
    interleaved.reset(
        stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &components, channels));
  } catch (const Inconsistent&) {
    fail("{}: the image cannot be decoded: its data contradict each other", path);
  }
  require(interleaved != nullptr, "{}: the image cannot be decoded: {}", path, stbi_failure_reason());
  require(width == image.size.width && height == image.size.height, "{}: the header says {}x{}, the image is {}x{}",
          path, image.size.width, image.size.height, width, height);
  image.pixels.resize(static_cast<std::size_t>(image.size.elements()));
  const Index pixels = image.size.pixels();
  for (Index c = 0; c < channels; ++c)
    for (Index i = 0; i < pixels; ++i)
      image.pixels[static_cast<std::size_t>(c * pixels + i)] = interleaved.get()[i * channels + c];
  return image;
}

}  // namespace heed
