// Checks that heed and OpenBLAS use the CPU's widest vectors.
#pragma once

#include <string>
#include <vector>

namespace heed::bench {

/// A line for each part, OpenBLAS' kernels and heed itself, that uses narrower vectors than this CPU has, and what to
/// do about it. Empty on other than x86 CPUs.
std::vector<std::string> narrow_parts();

}  // namespace heed::bench
