#include "heed/base/warnings.h"

#include <set>
#include <utility>

namespace heed {

namespace {

struct Warnings {
  std::set<std::string> added;
  std::vector<std::string> waiting;
  ProgressShown progress;
};

Warnings& all() {
  static Warnings warnings;
  return warnings;
}

}  // namespace

void warn(const std::string& line) {
  if (all().added.insert(line).second) all().waiting.push_back(line);
}

void show_progress(ProgressShown f) { all().progress = std::move(f); }

void ReadingProgress::advance() const {
  const long done = ++done_;
  if (all().progress) all().progress(what_, done, all_);
}

std::vector<std::string> take_warnings() { return std::exchange(all().waiting, {}); }

}  // namespace heed
