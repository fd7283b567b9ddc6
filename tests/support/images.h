// Files that the data tests write and read.
#pragma once

#include "heed/data/dataset.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace heed::test {

using Bytes = std::vector<std::uint8_t>;

using heed::TemporaryDirectory;

/// Writes a file, making the directories it is in; and the same through gzip.
void write_file(const std::filesystem::path& path, const Bytes& bytes);
void write_gz(const std::filesystem::path& path, const Bytes& bytes);
Bytes read_bytes(const std::filesystem::path& path);

/// An IDX file of bytes: magic number, sizes, elements.
Bytes idx(const std::vector<std::uint32_t>& sizes, const Bytes& elements);

/// Writes an image as PNG, or as JPEG if the name ends in .jpg.
void write_image(const std::filesystem::path& path, const Image& image);

/// Writes a PNG of side x side pixels, each a grey level and an opacity: pixels [side, side, 2].
void write_transparent(const std::filesystem::path& path, Index side, const Bytes& pixels);

/// An image whose pixels are all different from their neighbours: element i is (first + 7 i) mod 256.
Image pattern(ImageSize size, int first);

/// `count` such images of `classes` classes in turn.
MemoryDataset pattern_dataset(Index count, ImageSize size, int classes);

/// Checks that f throws Error with all pieces in its one line.
void check_error(const std::function<void()>& f, std::initializer_list<std::string> pieces);

/// Calls read(bytes) for `times` damaged copies of `good` (bytes changed, the end cut off): it may succeed or throw
/// Error, nothing else. Returns how many threw.
int read_damaged(const Bytes& good, int times, const std::function<void(const Bytes&)>& read);

}  // namespace heed::test
