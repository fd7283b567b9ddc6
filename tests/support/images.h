// Images and data files for tests.
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

/// Write a file, plain or compressed by gzip, and create its directories.
void write_file(const std::filesystem::path& path, const Bytes& bytes);
void write_gz(const std::filesystem::path& path, const Bytes& bytes);

/// Returns the bytes of a file.
Bytes read_bytes(const std::filesystem::path& path);

/// Returns an IDX file of bytes: magic number, sizes, elements.
Bytes idx(const std::vector<std::uint32_t>& sizes, const Bytes& elements);

/// Writes an image as PNG, or as JPEG if the name ends in .jpg.
void write_image(const std::filesystem::path& path, const Image& image);

/// Writes a PNG of side x side pixels with grey level and opacity: pixels [side, side, 2].
void write_transparent(const std::filesystem::path& path, Index side, const Bytes& pixels);

/// Returns an image whose neighbouring pixels differ: element i is (first + 7 i) mod 256.
Image pattern(ImageSize size, int first);

/// Returns `count` images of pattern(), cycling through `classes` classes.
MemoryDataset pattern_dataset(Index count, ImageSize size, int classes);

/// Checks that f throws Error with all pieces in its one line.
void check_error(const std::function<void()>& f, std::initializer_list<std::string> pieces);

/// Calls read(bytes) for `times` damaged copies of `good` (changed bytes, truncation): it may only succeed or throw
/// Error. Returns the number that threw.
int read_damaged(const Bytes& good, int times, const std::function<void(const Bytes&)>& read);

}  // namespace heed::test
