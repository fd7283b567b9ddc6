#include "profile_table.h"

#include "cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

void print_profile(const Profile& profile, Index steps) {
  std::vector<Profile::Row> operations = profile.rows();
  std::sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) { return a.total() > b.total(); });
  Profile::Row sum{"all operations"};
  for (const Profile::Row& row : operations) sum.forward += row.forward, sum.backward += row.backward;
  operations.push_back(sum);
  std::vector<std::vector<std::string>> table{{"operation", "forward, ms", "backward, ms", "share"}};
  const double per_step = 1e3 / static_cast<double>(std::max<Index>(steps, 1));
  for (const Profile::Row& row : operations)
    table.push_back({row.operation, fmt::format("{:.3f}", row.forward * per_step),
                     fmt::format("{:.3f}", row.backward * per_step),
                     fmt::format("{:.1f} %", 100 * row.total() / std::max(sum.total(), 1e-12))});
  std::cout << "\ntime of a training step by operation, all threads added up\n\n";
  print_table(std::cout, table);
}

}  // namespace heed::cli
