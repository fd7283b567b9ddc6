// Differences between two tensors that should be equal: positions, number and size.
#pragma once

#include "heed/base/tensor.h"
#include "heed/io/safetensors.h"

#include <optional>

namespace heed {

/// A pair of elements, a and b, at one position.
struct ElementDifference {
  Index element = 0;
  double a = 0, b = 0;
  double absolute = 0;  ///< |a - b|; infinite if a and b differ and one of them is NaN or infinite
  double relative = 0;  ///< |a - b| / max(|a|, |b|, 1e-3 of the largest finite magnitude in either tensor)
  double ulps = 0;      ///< |a - b| in units in the last place of the larger one
};

/// The differences between two tensors of the same shape.
struct TensorDifference {
  Index elements = 0;
  Index unequal = 0;                         ///< elements whose bits differ, such as 0 and -0
  Index beyond = 0;                          ///< elements whose relative difference exceeds the tolerance
  std::optional<ElementDifference> first{};  ///< the first element beyond the tolerance
  std::optional<ElementDifference> worst{};  ///< the element of the largest relative difference; none if all are 0
  double largest = 0;                        ///< largest finite magnitude in either tensor
  bool rounding = true;                      ///< no difference exceeds rounding_error() times `largest`
};

/// Compares tensors of the same shape element by element; the difference of two NaNs is 0. Units in the last place are
/// those of `type`.
TensorDifference difference_of(View<const double> a, View<const double> b, DType type, double tolerance);

/// Returns the coarser of two number types. Integers count as F64.
DType coarser(DType a, DType b);

/// Returns the distance from |x| to the next larger number of a type; F64's for integers.
double unit_in_last_place(double x, DType type);

/// Returns an upper bound on a pass's rounding errors relative to a tensor's largest element: 1000 units in the last
/// place of 1, or 4 for F16 and BF16, to which tensors are rounded only after a pass.
double rounding_error(DType type);

}  // namespace heed
