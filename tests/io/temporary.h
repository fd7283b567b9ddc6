// A directory that is gone after the test.
#pragma once

#include "heed/check.h"

#include <unistd.h>

#include <filesystem>
#include <string>

namespace heed {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((std::filesystem::temp_directory_path() / "heed-test-XXXXXX").string()) {
    require(::mkdtemp(path_.data()) != nullptr, "{}: cannot make a directory", path_);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// The path of `name` inside.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The message of the Error that `action` throws, without `prefix` (a path, say); "no error" if it throws none.
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
