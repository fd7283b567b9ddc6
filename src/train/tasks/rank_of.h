// Ranks of labels among logits.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>

namespace heed {

/// Returns the index of the first largest of n values.
template <class T>
Index largest_of(const T* values, Index n) {
  return std::max_element(values, values + n) - values;
}

/// Returns log sum exp(logits) - logits[label].
template <class T>
double cross_entropy_of(const T* logits, Index classes, Index label) {
  const double maximum = static_cast<double>(logits[largest_of(logits, classes)]);
  double sum = 0;
  for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - maximum);
  return maximum + std::log(sum) - static_cast<double>(logits[label]);
}

/// Returns the number of classes ranked before `label`; ties go to the lower class. If a logit is NaN, no label has
/// rank 0.
template <class T>
Index rank_of(const T* logits, Index classes, Index label) {
  if (std::any_of(logits, logits + classes, [](T x) { return std::isnan(x); })) return classes;
  Index before = 0;
  for (Index c = 0; c < classes; ++c) before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
  return before;
}

}  // namespace heed
