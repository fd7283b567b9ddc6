#include "heed/data/images/image_write.h"

#include "heed/io/file.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace heed {

std::string encode_png(const Image& image) {
  const Index channels = image.size.channels, pixels = image.size.pixels();
  HEED_ASSERT(static_cast<Index>(image.pixels.size()) == image.size.elements());
  std::string interleaved(image.pixels.size(), '\0');
  for (Index c = 0; c < channels; ++c)
    for (Index i = 0; i < pixels; ++i) interleaved[i * channels + c] = static_cast<char>(image.pixels[c * pixels + i]);
  std::string file;
  const auto append = [](void* to, void* bytes, int count) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  };
  const int width = static_cast<int>(image.size.width), height = static_cast<int>(image.size.height);
  if (stbi_write_png_to_func(append, &file, width, height, static_cast<int>(channels), interleaved.data(), 0) == 0)
    throw std::bad_alloc();  // the only failure of stb here
  return file;
}

void save_png(const std::string& path, const Image& image) { write_file(path, encode_png(image)); }

}  // namespace heed
