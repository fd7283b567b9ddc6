// Messages for the user: warnings about input that is ignored or not used as written, and progress of reading many
// files.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace heed {

/// Adds a line to the warnings, unless the program has already added it. Main thread only.
void warn(const std::string& line);

/// Returns the warnings since the last call.
std::vector<std::string> take_warnings();

/// Callback for the progress of reading many files before a command's first output: f(what, done, all).
using ProgressShown = std::function<void(const char* what, long done, long all)>;

/// Sets the callback for progress.
void show_progress(ProgressShown f);

/// Progress of reading many files, reported to the callback. advance() may be called by several threads.
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
