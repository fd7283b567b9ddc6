// Checks whether heed and OpenBLAS use the CPU's widest vectors.
#pragma once

#include <string>
#include <vector>

namespace heed::bench {

/// Returns one line, with a remedy, for each of OpenBLAS and heed that uses narrower vectors than the CPU supports.
/// Empty on CPUs other than x86.
std::vector<std::string> narrow_parts();

/// Returns the vector width in bits of OpenBLAS's kernels for a core, as openblas_get_corename() names it; 128 for
/// unlisted names.
int bits_of_blas(const std::string& core);

}  // namespace heed::bench
