// Singular values and equivalent rank of attention maps. Shu et al., "Adder attention for vision transformer", NeurIPS
// 2021, Section 3.2.2.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// Singular values s_1 >= s_2 >= ... of a matrix, min(rows, columns) of them, and the paper's measures.
struct Spectrum {
  std::vector<double> values;
  std::vector<double> cumulative;  ///< f(r) = (s_1 + ... + s_r) / (s_1 + ... + s_N), Eq. 21; all 1 if all values are 0
  Index rank = 0;                  ///< equivalent rank: the first r with f(r) >= 0.9; 0 if all values are 0
};

/// Returns the spectrum of `matrix` [rows, any number of columns]. Throws Error for non-finite elements.
Spectrum spectrum_of(std::vector<double> matrix, Index rows);

}  // namespace heed
