// Operations on token sequences: embedding, pooling, pairs, and the cross entropy of one label per row.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Tokens of a sequence, and the rows [first, first + count) of its embedding.
struct TokenRows {
  const int* tokens = nullptr;
  Index first = 0, count = 0;
};

/// Computes y = weight[token] + position for each token of each sequence: weight [V, D]; position [1, P, D], optional,
/// whose first rows are added to each sequence. With `front` [1, 1, D], a sequence of n rows is `front` and n - 1
/// tokens. y is [1, rows, D] if the pass has segments, else [sequences, rows of each, D]. Tokens must be in 0..V-1.
///
///   dweight[token] += dy of its rows;  dfront += dy of first rows;  dposition += sum of dy over sequences
///
/// Lookups and their gradients are not counted as operations.
template <class T>
Var<T> embed_sequences(std::span<const TokenRows> sequences, Var<T> weight, Var<T> front, Var<T> position);

/// Pooling of a sequence's rows into one.
enum class SequencePool { first, last, mean };

/// Computes y[i] = the first, last or mean row of sequence i of the pass's segments: x [1, rows, D], y [sequences, D].
template <class T>
Var<T> pool_sequences(Var<T> x, SequencePool pool);

/// Computes y[b] = [x0, x1, x0 x1, x0 - x1] (arXiv:1512.08849, Section 3.3) or, without `products`, [x0, x1]. x0 and x1
/// are rows 2b and 2b + 1 of x [2B, D]; y is [B, 4D] or [B, 2D].
///
///   dx0 += dy0 + x1 dy2 + dy3,  dx1 += dy1 + x0 dy2 - dy3
template <class T>
Var<T> pair_features(Var<T> x, bool products);

/// Computes loss = -1 / divisor sum over rows r of log softmax(logits[r])[labels[r]], a scalar; skips rows whose label
/// is -1. logits [..., V]; one label per row. The labels must outlive the pass.
///
///   dlogits += (softmax(logits) - onehot(label)) dloss / divisor, and 0 in skipped rows
template <class T>
Var<T> label_cross_entropy(Var<T> logits, const int* labels, Index divisor);

}  // namespace heed
