// Classifiers of features that need no gradient descent: nearest neighbours and ridge regression.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// Features of examples, [count, width], and their classes.
template <class T>
struct Features {
  Tensor<T> values;
  std::vector<int> labels;

  Index count() const { return values.shape()[0]; }
  Index width() const { return values.shape()[1]; }
};

/// Returns the largest label plus one.
Index classes_of(const std::vector<int>& labels);

/// Returns the index of the first maximum of each row of scores [m, classes].
std::vector<int> answers_of(const Tensor<double>& scores);

/// Weighted nearest neighbours: Wu, Xiong, Yu, Lin, "Unsupervised feature learning via non-parametric instance
/// discrimination", arXiv:1805.01978v1, Section 3.4, as used in DINO (arXiv:2104.14294).
struct NeighbourRule {
  Index k = 20;
  double temperature = 0.07;
};

/// Nearest-neighbour classifier: features of labelled training images ("teachers") and the rule.
template <class T>
class Neighbours {
 public:
  /// Throws Error unless k is from 1 to the number of teachers, the temperature is positive, and T can hold the largest
  /// possible score, k exp(1 / temperature).
  Neighbours(Features<T> teachers, Index classes, const NeighbourRule& rule);

  /// Returns scores [m, classes] of the rows of `test` [m, width]: the sum of exp(s / temperature) over the teachers of
  /// the class among a row's k nearest. s is the cosine similarity of the row and the teacher, whose lengths count as
  /// at least 1e-12; on ties, earlier teachers are nearer.
  Tensor<double> scores(Tensor<T> test) const;

 private:
  Features<T> teachers_;  ///< normalised to unit length
  Index classes_;
  NeighbourRule rule_;
};

/// Ridge regression of class indicators: big_vision's 10-shot probe, used by Wortsman et al., arXiv:2309.08586.
struct RidgeRule {
  double l2 = 1024;   ///< penalty on the weights, including the bias column's
  double bias = 100;  ///< value of the column appended to the features
};

/// Returns scores x W [m, classes] of the rows of `test` [m, width]. For a row of features f, x is
/// (f - mu) / (sd + 1e-5) with `bias` appended, where mu and sd are the mean and standard deviation (divisor n) of each
/// feature over the n teachers. The rows of X are the x of the teachers. Targets Y are 1 for a teacher's class and -1
/// for the others. Then
///
///   W = (X^T X + l2 I)^-1 X^T Y = X^T (X X^T + l2 I)^-1 Y.
///
/// Solves the form with the smaller system, in double. Throws Error if the system is singular, as it may be for l2 = 0,
/// if l2 is negative, or if l2 or bias is not finite.
template <class T>
Tensor<double> ridge_scores(const Features<T>& teachers, const Tensor<T>& test, Index classes, const RidgeRule& rule);

}  // namespace heed
