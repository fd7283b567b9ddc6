// Lines for the user about input that was left out, or used in another way than it says.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace heed {

/// Adds a line to the warnings, unless the program has added the same before. For use by the main thread.
void warn(const std::string& line);

/// Returns the warnings since the last call.
std::vector<std::string> take_warnings();

/// Work that takes long before a command has anything to show: f(what, done, all) is called as it advances.
using ProgressShown = std::function<void(const char* what, long done, long all)>;
void show_progress(ProgressShown f);

/// The work while it is done. Several threads may advance it.
class ReadingProgress {
 public:
  ReadingProgress(const char* what, long all) : what_(what), all_(all) {}
  void advance() const;

 private:
  const char* what_;
  long all_;
  mutable std::atomic<long> done_{0};
};

}  // namespace heed
