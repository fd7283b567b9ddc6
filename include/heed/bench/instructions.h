// Whether what multiplies is as wide as the CPU's vector registers.
#pragma once

#include <string>
#include <vector>

namespace heed::bench {

/// A line for each part, OpenBLAS' kernels and heed itself, that uses narrower vectors than this CPU has, and what to
/// do about it. Empty on other than x86 CPUs.
std::vector<std::string> narrow_parts();

}  // namespace heed::bench
