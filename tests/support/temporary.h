// A temporary directory, removed after the test, and temporary values of environment variables.
#pragma once

#include "heed/base/error.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace heed {

/// A temporary directory, in memory if possible: syncing to disk takes longer than the tests. /dev/shm is not used if
/// TMPDIR is set, nor if it has less than 1 GB or forbids execution, as in some containers, since tests fill hundreds
/// of megabytes, run scripts and load plugins.
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
    struct statvfs shared {};
    const bool memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0 &&
                        ::statvfs("/dev/shm", &shared) == 0 && (shared.f_flag & ST_NOEXEC) == 0 &&
                        shared.f_bavail * shared.f_frsize >= 1'000'000'000;
    return memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  }

  std::string path_;
};

/// An environment variable, set during its lifetime, or removed if there is no value; its former value is restored.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() { set(before_); }

  void set(const std::optional<std::string>& value) const {
    value ? setenv(name_, value->c_str(), 1) : unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
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
