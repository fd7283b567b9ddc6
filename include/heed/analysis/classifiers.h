// Classifiers of features that some examples teach and nothing is trained for: nearest neighbours, and ridge
// regression.
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

/// The largest label and one.
Index classes_of(const std::vector<int>& labels);

/// For each row of scores [m, classes] the first largest.
std::vector<int> answers_of(const Tensor<double>& scores);

/// Weighted nearest neighbours: Wu, Xiong, Yu, Lin, "Unsupervised feature learning via non-parametric instance
/// discrimination", arXiv:1805.01978v1, Section 3.4, as DINO has them (arXiv:2104.14294).
struct NeighbourRule {
  Index k = 20;
  double temperature = 0.07;
};

template <class T>
class Neighbours {
 public:
  /// Throws Error where there are fewer than k teachers, or k exp(1 / temperature), the largest score, is no finite T.
  Neighbours(Features<T> teachers, Index classes, const NeighbourRule& rule);

  /// Scores [m, classes] of the rows of `test` [m, width]: the sum of exp(s / temperature) over those of a row's k
  /// nearest teachers that are of the class. s is the cosine of two rows, each divided by max(|x|, 1e-12); of teachers
  /// equally near, earlier ones are nearer.
  Tensor<double> scores(Tensor<T> test) const;

 private:
  Features<T> teachers_;  ///< normalised to length 1
  Index classes_;
  NeighbourRule rule_;
};

/// Ridge regression on the classes: the 10-shot probe of big_vision, by which the ReLU paper judges.
struct RidgeRule {
  double l2 = 1024;   ///< penalty of the weights, that of the bias column included
  double bias = 100;  ///< the column that is added to the features
};

/// Scores x W [m, classes] of the rows of `test` [m, width]. With mu and sd the mean and the deviation (divisor n) of
/// each feature over the n teachers, x is (x - mu) / (sd + 1e-5), and behind it `bias`. Targets Y are 1 for a teacher's
/// class, -1 for the others;
///
///   W = (X^T X + l2 I)^-1 X^T Y = X^T (X X^T + l2 I)^-1 Y,
///
/// of which the smaller system is solved, in double. Throws Error where it has no solution: for l2 = 0, perhaps.
template <class T>
Tensor<double> ridge_scores(const Features<T>& teachers, const Tensor<T>& test, Index classes, const RidgeRule& rule);

}  // namespace heed
