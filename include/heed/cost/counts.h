// Costs of operations: closed forms beside each operation's code, verified by running that code on the counting number
// type (cost/counted.h).
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Floating-point operations by kind.
struct Counts {
  Index mul = 0;
  Index add = 0;  ///< additions and subtractions
  Index div = 0;
  Index sqrt = 0;
  Index exp = 0;
  Index log = 0;
  Index erf = 0;
  Index other = 0;  ///< other functions: tanh, pow
  Index cmp = 0;    ///< maximum, minimum, absolute value, sign, clamp: one per comparison

  friend bool operator==(const Counts&, const Counts&) = default;

  Counts& operator+=(const Counts& b) {
    mul += b.mul, add += b.add, div += b.div, sqrt += b.sqrt, exp += b.exp;
    log += b.log, erf += b.erf, other += b.other, cmp += b.cmp;
    return *this;
  }
  friend Counts operator+(Counts a, const Counts& b) { return a += b; }
  friend Counts operator*(Index n, const Counts& b) {
    return {n * b.mul, n * b.add, n * b.div, n * b.sqrt, n * b.exp, n * b.log, n * b.erf, n * b.other, n * b.cmp};
  }
};

/// Cost of one operation in both conventions. `forward` and `backward` count every floating-point operation of the
/// textbook algorithm: a sum of n terms is n - 1 additions, a maximum n - 1 comparisons. The counts of the backward
/// pass assume that it assigns each gradient. If a tensor has several uses, the tape sums their gradients: an operation
/// that accumulates into an existing gradient executes `joins` more additions. `*_contractions` use the papers'
/// convention: they count only matrix products, convolutions, distances and weighted sums; a product added to a sum is
/// one multiplication and one addition.
struct Cost {
  Counts forward, backward;
  Counts forward_contractions, backward_contractions;
  Index attention_exp = 0;  ///< exp evaluations of an attention mechanism's forward pass
  /// Contractions that a mechanism executes minus forward_contractions (mul, add), and exps that it executes minus
  /// attention_exp (exp), for checks/costcheck.h. Positive: executed but not counted, such as squares of norms and exps
  /// of gates; negative: counted although not a sum of products, such as the additions of denominators.
  Counts left_out{};
  /// True if the code executes an algorithm other than the textbook's. The stated contractions, the textbook's, must be
  /// at least an eighth of the executed contractions and at most all executed operations.
  bool bounded = false;
  Index distances = 0;  ///< terms |a - b| of l1 distances in the forward pass
  Index joins = -1;     ///< of a single operation: additions to accumulate an operand's gradient into an existing one,
                        ///< beyond those in `backward`; -1: one per element, also in sums and multiples of costs

  Cost& operator+=(const Cost& b) {
    forward += b.forward, backward += b.backward;
    forward_contractions += b.forward_contractions, backward_contractions += b.backward_contractions;
    attention_exp += b.attention_exp, left_out += b.left_out, bounded |= b.bounded, distances += b.distances;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator*(Index n, const Cost& b) {
    return {n * b.forward,
            n * b.backward,
            n * b.forward_contractions,
            n * b.backward_contractions,
            n * b.attention_exp,
            n * b.left_out,
            b.bounded,
            n * b.distances};
  }
};

/// Returns the counts of the product of an m x k and a k x n matrix.
inline Counts product_counts(Index m, Index n, Index k) {
  return {.mul = m * n * k, .add = m * n * std::max<Index>(k - 1, 0)};
}

/// Returns the counts of the product of an m x k and a k x n matrix in the papers' convention.
inline Counts product_contractions(Index m, Index n, Index k) { return {.mul = m * n * k, .add = m * n * k}; }

/// Returns the counts of a sum of n terms.
inline Counts sum_counts(Index n) { return {.add = std::max<Index>(n - 1, 0)}; }

}  // namespace heed
