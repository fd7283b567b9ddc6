// File access and parallel loops of the readers.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::data {

/// Returns the memory limit in bytes for one file or, with CIFAR, for all files of a split: 512 MiB, or
/// $HEED_READ_LIMIT.
Index read_limit();

/// End of an error message about read_limit().
inline constexpr const char* raising_read_limit = "HEED_READ_LIMIT in the environment allows more";

/// Returns the length of a regular file in bytes. Throws Error if there is none.
Index file_length(const std::filesystem::path& path);

/// Reads a regular file. Throws Error if it has more than `limit` bytes: read_limit() or, for a set in several files,
/// read_limit() minus the bytes already read.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, Index limit);

/// Reads the first `count` bytes of a regular file, or all if it has fewer.
std::vector<std::uint8_t> read_start(const std::filesystem::path& path, Index count);

/// Returns `text` with A to Z in lower case.
std::string lower(std::string text);

/// Returns the extension of a file name in lower case, such as ".png"; empty if there is none.
std::string ending_of(const std::filesystem::path& path);

/// Returns the text in a file's bytes, like utf8_text().
std::string_view text_of(std::span<const std::uint8_t> bytes, const std::string& path);

/// Calls f(i) for each i in [0, count) on up to `workers` threads. If calls throw, rethrows the exception of the lowest
/// i after all threads have ended, so that the message does not depend on the threads. A single thread stops at the
/// first exception.
void for_each_image(int workers, Index count, const std::function<void(Index)>& f);

}  // namespace heed::data
