#include "heed/data/image.h"

#include "files.h"

#include <cstdio>
#include <memory>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_MAX_DIMENSIONS 16384  // max_image_side
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace heed {

static_assert(STBI_MAX_DIMENSIONS == max_image_side);

namespace {

using FilePointer = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

FilePointer open_file(const std::string& path) {
  data::file_length(path);
  FilePointer file(std::fopen(path.c_str(), "rb"), std::fclose);
  require(file != nullptr, "{}: cannot be opened for reading", path);
  return file;
}

/// Size from the header; leaves the file at its beginning.
ImageSize read_size(const std::string& path, std::FILE* file) {
  int width = 0, height = 0, components = 0;
  require(stbi_info_from_file(file, &width, &height, &components) != 0, "{}: not a readable PNG or JPEG image ({})",
          path, stbi_failure_reason());
  const ImageSize size{components >= 3 ? 3 : 1, height, width};
  require(height >= 1 && width >= 1, "{}: the image is {}x{}", path, width, height);
  require(height <= max_image_side && width <= max_image_side && size.pixels() <= max_image_pixels,
          "{}: the image is {}x{}; at most {} pixels along a side and {} altogether are read", path, width, height,
          max_image_side, max_image_pixels);
  return size;
}

}  // namespace

std::string to_string(const ImageSize& size) { return fmt::format("{}x{}x{}", size.channels, size.height, size.width); }

ImageSize image_file_size(const std::string& path) { return read_size(path, open_file(path).get()); }

Image load_image(const std::string& path) {
  const FilePointer file = open_file(path);
  Image image;
  image.size = read_size(path, file.get());
  int width = 0, height = 0, components = 0;
  const int channels = static_cast<int>(image.size.channels);
  const std::unique_ptr<stbi_uc, void (*)(void*)> interleaved(
      stbi_load_from_file(file.get(), &width, &height, &components, channels), stbi_image_free);
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
