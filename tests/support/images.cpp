#include "support/images.h"

#include "heed/base/random.h"

#include <zlib.h>

#include <fstream>
#include <iterator>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace heed::test {

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  BOOST_REQUIRE(file.good());
}

void write_gz(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb");
  BOOST_REQUIRE(file != nullptr);
  BOOST_REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  BOOST_REQUIRE(gzclose(file) == Z_OK);
}

Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  BOOST_REQUIRE(file.good());
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes idx(const std::vector<std::uint32_t>& sizes, const Bytes& elements) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(size >> shift));
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

void write_image(const std::filesystem::path& path, const Image& image) {
  std::filesystem::create_directories(path.parent_path());
  const int channels = static_cast<int>(image.size.channels), width = static_cast<int>(image.size.width),
            height = static_cast<int>(image.size.height);
  Bytes interleaved(image.pixels.size());
  for (Index i = 0; i < image.size.pixels(); ++i)
    for (Index c = 0; c < channels; ++c)
      interleaved[static_cast<std::size_t>(i * channels + c)] =
          image.pixels[static_cast<std::size_t>(c * image.size.pixels() + i)];
  const bool jpeg = path.extension() == ".jpg";
  const int done = jpeg ? stbi_write_jpg(path.c_str(), width, height, channels, interleaved.data(), 95)
                        : stbi_write_png(path.c_str(), width, height, channels, interleaved.data(), width * channels);
  BOOST_REQUIRE(done != 0);
}

void write_transparent(const std::filesystem::path& path, Index side, const Bytes& pixels) {
  const int size = static_cast<int>(side);
  BOOST_REQUIRE(stbi_write_png(path.c_str(), size, size, 2, pixels.data(), 2 * size) != 0);
}

Image pattern(ImageSize size, int first) {
  Image image{size, {}};
  for (Index i = 0; i < size.elements(); ++i) image.pixels.push_back(static_cast<std::uint8_t>(first + 7 * i));
  return image;
}

MemoryDataset pattern_dataset(Index count, ImageSize size, int classes) {
  Bytes pixels, labels;
  for (Index i = 0; i < count; ++i) {
    const Image image = pattern(size, static_cast<int>(11 * i));
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    labels.push_back(static_cast<std::uint8_t>(i % classes));
  }
  return MemoryDataset("pattern", std::vector<std::string>(static_cast<std::size_t>(classes), "class"), size, pixels,
                       labels);
}

void check_error(const std::function<void()>& f, std::initializer_list<std::string> pieces) {
  std::string message;
  try {
    f();
    BOOST_ERROR("no Error was thrown");
    return;
  } catch (const Error& error) {
    message = error.what();
  }
  BOOST_TEST(message.find('\n') == std::string::npos, message);
  for (const std::string& piece : pieces)
    BOOST_TEST(message.find(piece) != std::string::npos, "'" << piece << "' is not in: " << message);
}

int read_damaged(const Bytes& good, int times, const std::function<void(const Bytes&)>& read) {
  int refused = 0;
  const Index size = static_cast<Index>(good.size());
  for (int i = 0; i < times; ++i) {
    const RandomStream stream = RandomStream(99).derive(static_cast<std::uint64_t>(i));
    Bytes bytes = good;
    // Half of the changes are restricted to the first 64 bytes, which hold the headers.
    const Index changes = stream.below(0, 4);
    for (Index k = 0; k < changes; ++k) {
      const Index range = stream.below(3 * k + 1, 2) == 0 ? std::min<Index>(size, 64) : size;
      bytes[static_cast<std::size_t>(stream.below(3 * k + 2, range))] =
          static_cast<std::uint8_t>(stream.below(3 * k + 3, 256));
    }
    if (changes == 0 || i % 5 == 0) bytes.resize(static_cast<std::size_t>(stream.below(100, size)));
    try {
      read(bytes);
    } catch (const Error&) {
      ++refused;
    }
  }
  return refused;
}

}  // namespace heed::test
