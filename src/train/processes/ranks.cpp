#include "heed/train/processes/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace heed {

bool Ranks::any(bool here) {
  double number = here;
  sum(std::span(&number, 1));
  return number > 0;
}

// Only one process has a nonzero summand for each element, so the sums collect the exact values of all processes.
std::vector<std::string> Ranks::texts(const std::string& own) {
  std::vector<double> sizes(count());
  sizes[rank()] = static_cast<double>(own.size());
  sum(sizes);
  const auto start_of = [&](int process) {
    return static_cast<Index>(std::accumulate(sizes.begin(), sizes.begin() + process, 0.0));
  };
  std::vector<double> letters(start_of(count()));
  std::copy(own.begin(), own.end(), letters.begin() + start_of(rank()));
  sum(letters);
  std::vector<std::string> all;
  for (int i = 0; i < count(); ++i) all.emplace_back(letters.begin() + start_of(i), letters.begin() + start_of(i + 1));
  return all;
}

void Ranks::require_same(const std::string& own) {
  const std::vector<std::string> all = texts(own);
  for (std::size_t i = 1; i < all.size(); ++i)
    require(all[i] == all[0], "train: processes differ: process 0 has checksum {}, process {} has {}", all[0], i,
            all[i]);
}

Ranks& one_process() {
  class OneProcess : public Ranks {
    int count() const override { return 1; }
    int rank() const override { return 0; }
    void sum(std::span<float>) override {}
    void sum(std::span<double>) override {}
    void share(std::span<std::byte>) override {}
  };
  static OneProcess process;
  return process;
}

void require_shareable(const Lanes& lanes, int processes) {
  std::vector<Index> possible;
  for (Index count = 1; count <= lanes.count; count *= 2) possible.push_back(count);
  const bool fits = std::find(possible.begin(), possible.end(), processes) != possible.end();
  const Index last = possible.back();
  possible.pop_back();
  require(fits, "[train] batch = {} in microbatches of {}: expected {}{}{} process{}, found {}", lanes.examples,
          lanes.microbatch, fmt::join(possible, ", "), possible.empty() ? "" : " or ", last, last == 1 ? "" : "es",
          processes);
}

}  // namespace heed
