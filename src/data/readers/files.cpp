#include "files.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#ifndef HEED_NO_TBB
#include "fork_join.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>

namespace heed::data {

Index read_limit() {
  const char* const given = std::getenv("HEED_READ_LIMIT");
  if (given == nullptr) return Index{1} << 29;
  Index limit = 0;
  require(parse_number(given, limit) && limit > 0, "HEED_READ_LIMIT is {}; expected a number of bytes",
          in_quotes(given));
  return limit;
}

Index file_length(const std::filesystem::path& path) {
  std::error_code error;
  require(std::filesystem::exists(path, error), "{}: the file does not exist", path.string());
  require(std::filesystem::is_regular_file(path, error), "{}: not a regular file", path.string());
  const auto length = std::filesystem::file_size(path, error);
  require(!error, "{}: {}", path.string(), error.message());
  return static_cast<Index>(length);
}

std::vector<std::uint8_t> read_start(const std::filesystem::path& path, Index count) {
  count = std::min(count, file_length(path));
  std::vector<std::uint8_t> bytes(count);
  InputFile(path.string()).read(0, bytes.data(), bytes.size());
  return bytes;
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, Index limit) {
  const Index length = file_length(path);
  require(length <= limit, "{}: the file has {} bytes, more than {}; {}", path.string(), length, limit,
          raising_read_limit);
  return read_start(path, length);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string ending_of(const std::filesystem::path& path) { return lower(path.extension().string()); }

std::string_view text_of(std::span<const std::uint8_t> bytes, const std::string& path) {
  return utf8_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

#ifdef HEED_NO_TBB

void for_each_image(int, Index count, const std::function<void(Index)>& f) {
  for (Index i = 0; i < count; ++i) f(i);
}

#else

void for_each_image(int workers, Index count, const std::function<void(Index)>& f) {
  workers = std::min(workers, oneapi::tbb::info::default_concurrency());  // oneTBB warns about more threads than cores
  std::mutex mutex;
  std::exception_ptr error;
  Index failed = count;
  ForkJoin work;
  // Excluded from ThreadSanitizer, which reports races on oneTBB's operands.
  const auto guarded = [&](Index i) __attribute__((no_sanitize("thread"))) {
    work.begin();
    try {
      f(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        error = std::current_exception();
      }
    }
    work.end();
  };
  if (workers == 1) {
    for (Index i = 0; i < count && !error; ++i) guarded(i);
  } else {
    oneapi::tbb::task_arena arena(workers);
    arena.execute([&] { oneapi::tbb::parallel_for(Index{0}, count, guarded); });
  }
  work.join();
  if (error) std::rethrow_exception(error);
}

#endif

}  // namespace heed::data
