// Comparison of two tensor files, for heed diff.
#pragma once

#include "heed/checks/tensor_difference.h"

#include <ostream>
#include <string>
#include <vector>

namespace heed::cli {

/// A tensor that both files have, with the same shape.
struct ComparedTensor {
  std::string name;
  Shape shape;
  DType type;  ///< the coarser type of the two
  TensorDifference found;
};

struct FilesDifference {
  std::vector<ComparedTensor> tensors;      ///< in the order of A or, if only B is a trace, of B
  std::vector<std::string> only_a, only_b;  ///< names in only one of the files
  std::vector<std::string> other_shapes;    ///< tensors whose shapes differ: "x [2, 3] and [3, 2]"

  /// Returns true if all tensors are within the tolerance. With `common`, ignores tensors that only one file has, or
  /// whose shapes differ.
  bool equal(bool common) const;
};

/// Reads and compares the tensors of two files. Throws Error if no tensor has the same name and shape in both.
FilesDifference compare_files(const SafetensorsFile& a, const SafetensorsFile& b, double tolerance);

/// Prints the first and the worst difference, the kind of error in the first tensor that differs by more than rounding,
/// and counts of tensors. Returns the closing sentence, such as "3 of 12 common tensors differ, first x at [0, 1];
/// --tolerance 1.0e-06 allows them".
std::string print_difference(std::ostream& out, const FilesDifference& found, const SafetensorsFile& a,
                             const SafetensorsFile& b, double tolerance);

/// Returns ", step 600", the training step of a checkpoint or of a trace's weights; empty for other files.
std::string step_of(const SafetensorsFile& file);

}  // namespace heed::cli
