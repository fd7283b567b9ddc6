// A temporary directory, removed after the test.
#pragma once

#include "heed/base/error.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace heed {

/// A temporary directory, in memory if possible: syncing to disk takes longer than the tests.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((parent() / "heed-test-XXXXXX").string()) {
    require(::mkdtemp(path_.data()) != nullptr, "{}: cannot make a directory", path_);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path path() const { return path_; }

  /// Returns the path of `name` inside.
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

 private:
  static std::filesystem::path parent() {
    const bool memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
    return memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  }

  std::string path_;
};

/// Returns the message of the Error that `action` throws, without `prefix` (e.g. a path), or "no error".
template <class Action>
std::string error_of(Action action, const std::string& prefix = "") {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }
  return "no error";
}

}  // namespace heed
