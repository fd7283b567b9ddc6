// Check of whether heed and OpenBLAS use the CPU's widest vectors.
#pragma once

#include <string>
#include <vector>

namespace heed::bench {

/// Returns one line, with a remedy, for each of OpenBLAS and heed that uses narrower vectors than the CPU supports.
/// Empty on CPUs other than x86.
std::vector<std::string> narrow_parts();

}  // namespace heed::bench
