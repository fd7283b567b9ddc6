// Rank of a label among a row of logits, and the score of rows of logits with labels.
#pragma once

#include "heed/base/math.h"
#include "heed/train/tasks/task.h"

#include <algorithm>
#include <cmath>

namespace heed {

/// Returns the index of the largest of n values, the first on ties.
template <class T>
Index largest_of(const T* values, Index n) {
  return std::max_element(values, values + n) - values;
}

/// Returns log sum exp(logits) - logits[label].
template <class T>
double cross_entropy_of(const T* logits, Index classes, Index label) {
  const double maximum = static_cast<double>(logits[largest_of(logits, classes)]);
  double sum = 0;
  for (Index c = 0; c < classes; ++c) sum += math::exp(static_cast<double>(logits[c]) - maximum);
  return maximum + math::log(sum) - static_cast<double>(logits[label]);
}

/// Returns the number of classes ranked before `label`; on ties the lower class ranks first. If a logit is NaN, no
/// label has rank 0.
template <class T>
Index rank_of(const T* logits, Index classes, Index label) {
  if (std::any_of(logits, logits + classes, [](T x) { return std::isnan(x); })) return classes;
  Index before = 0;
  for (Index c = 0; c < classes; ++c) before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
  return before;
}

/// Returns the number of rows of logits [..., classes] whose label has rank 0; rows with a negative label do not count.
template <class T>
Index correct_rows(View<const T> logits, const int* labels) {
  const Index classes = logits.shape().row_size();
  Index correct = 0;
  for (Index r = 0; r < logits.shape().rows(); ++r)
    correct += labels[r] >= 0 && rank_of(logits.data() + r * classes, classes, labels[r]) == 0;
  return correct;
}

/// Scores the rows of logits [..., classes] that have a label. Calls count(label, answer, rank of the label) for each.
template <class T, class Count>
Score score_rows(View<const T> logits, const int* labels, const Count& count) {
  const Index classes = logits.shape().row_size();
  Score score;
  for (Index r = 0; r < logits.shape().rows(); ++r) {
    if (labels[r] < 0) continue;
    const T* const row = logits.data() + r * classes;
    const Index label = labels[r], rank = rank_of(row, classes, label);
    score = score + Score{1, cross_entropy_of(row, classes, label), rank == 0 ? 1.0 : 0.0};
    count(label, largest_of(row, classes), rank);
  }
  return score;
}

}  // namespace heed
