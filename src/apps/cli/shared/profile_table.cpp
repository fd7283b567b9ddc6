#include "profile_table.h"

#include "table.h"

#include <algorithm>
#include <iostream>

namespace heed::cli {

void print_profile(const Profile& profile, Index steps) {
  std::vector<Profile::Row> operations = profile.rows();
  std::sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) { return a.total() > b.total(); });
  Profile::Row sum{"all operations"};
  for (const Profile::Row& row : operations) sum.forward += row.forward, sum.backward += row.backward;
  operations.push_back(sum);
  Table table;
  table.text("operation").text("forward, ms", fixed(3)).text("backward, ms", fixed(3)).text("share", fixed(1, " %"));
  const double per_step = 1e3 / static_cast<double>(std::max<Index>(steps, 1));
  for (const Profile::Row& row : operations)
    table.add({row.operation, row.forward * per_step, row.backward * per_step,
               100 * row.total() / std::max(sum.total(), 1e-12)});
  std::cout << "\ntime of a training step by operation, all threads added up\n\n";
  table.print(std::cout);
}

}  // namespace heed::cli
