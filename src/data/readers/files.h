// Files and threads as the readers use them.
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

/// Returns the limit of memory for one file (one split of CIFAR) in bytes: 512 MiB, or $HEED_READ_LIMIT.
Index read_limit();

/// Returns the end of an error caused by the limit.
inline constexpr const char* raising_read_limit = "HEED_READ_LIMIT in the environment allows more";

/// Length of a regular file in bytes. Throws Error if there is none.
Index file_length(const std::filesystem::path& path);

/// The bytes of a regular file, which must have at most `limit`, what is left of read_limit().
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, Index limit);

/// The first `count` bytes of a regular file, or all if it has fewer.
std::vector<std::uint8_t> read_start(const std::filesystem::path& path, Index count);

/// The text in a file's bytes, without a byte order mark. Throws Error, which says how to convert it, for UTF-16.
std::string_view text_of(std::span<const std::uint8_t> bytes, const std::string& path);

/// Calls f(i) for each i in [0, count) on up to `workers` threads. If some throw, the exception of the lowest i
/// is rethrown after all have ended, so that the message does not depend on the threads.
void for_each_image(int workers, Index count, const std::function<void(Index)>& f);

}  // namespace heed::data
