// Mechanisms that compare each query with each key make their map in blocks of queries, and never store it.
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/softmax.h"

#include <cmath>

namespace heed {

/// How many rows of the map are made at once, out of `queries`: blocks of equal size, of 48 to 80 rows, or a single one of up to
/// 95. At 4096 keys, two of them are 2 MB of floats, about an L2 cache. (65 tokens are one block: each begins by
/// arranging all keys and values.)
inline Index map_block(Index queries) {
  const Index blocks = std::max<Index>((queries + 32) / 64, 1);
  return std::max<Index>((queries + blocks - 1) / blocks, 1);
}

/// Numbers from one row of a block to the next, so that rows begin on cache lines: vectors that straddle two lines on
/// every row take a quarter longer.
inline Index padded_row(Index columns) { return (columns + 15) / 16 * 16; }

/// How many of the keys the first `queries` queries see between them: with `causal`, query i sees keys 0 to i.
inline Index keys_seen(bool causal, Index keys, Index queries) { return causal ? std::min(keys, queries) : keys; }

/// Some queries, and the keys that they see between them: b.queries(m) and b.keys(m) are their rows of m, b.map(m) the
/// part of a matrix in which their rows of the map are made.
struct MapBlock {
  Index first, rows, seen;
  bool causal;
  bool last;  ///< no other block sees more keys: on the way back it comes first, and assigns the gradients of its keys

  /// The block's rows of a matrix with a row for each query, and of one with a row for each key.
  template <class T>
  Matrix<T> queries(Matrix<T> m) const {
    return m.middle_rows(first, rows);
  }
  template <class T>
  Matrix<T> keys(Matrix<T> m) const {
    return m.top_rows(seen);
  }

  /// The block of the map, in memory for any block; its rows begin on cache lines.
  template <class T>
  Matrix<T> map(Matrix<T> memory) const {
    return {memory.data, rows, seen, padded_row(seen)};
  }

  /// The same without gaps between its rows: for what is done to each number by itself.
  template <class T>
  Matrix<T> dense_map(Matrix<T> memory) const {
    return {memory.data, rows, seen};
  }

  /// How its rows are taken: each score times `scale`, over the keys that its query sees.
  kernels::ScoreRows scores(double scale) const { return {scale, causal, first + 1}; }

  /// How to write the gradients of its keys.
  Update update(Update update) const { return last ? update : Update::accumulate; }
};

/// Memory for a block of the map of any size, for MapBlock::map and for MapBlock::dense_map.
template <class T>
Matrix<T> carve_map_block(const AttentionShape& shape, Carver<T>& carve) {
  return carve.matrix(map_block(shape.queries), shape.keys, padded_row(shape.keys));
}
template <class T>
Matrix<T> carve_dense_map_block(const AttentionShape& shape, Carver<T>& carve) {
  return carve.matrix(map_block(shape.queries), shape.keys);
}

/// The blocks of a map, first to last on the way forward, last to first on the way back. Counting goes row by row, so
/// that a causal row costs the pairs it has and no more.
template <class T>
class MapBlocks {
 public:
  MapBlocks(const AttentionShape& shape, bool causal)
      : queries_(shape.queries),
        keys_(shape.keys),
        step_(std::is_same_v<T, Counted> ? 1 : map_block(shape.queries)),
        causal_(causal) {}

  template <class F>
  void forward(const F& f) const {
    for (Index first = 0; first < queries_; first += step_) f(at(first));
  }
  template <class F>
  void backward(const F& f) const {
    for (Index first = (queries_ - 1) / step_ * step_; first >= 0; first -= step_) f(at(first));
  }

 private:
  MapBlock at(Index first) const {
    const Index rows = std::min(step_, queries_ - first);
    return {first, rows, keys_seen(causal_, keys_, first + rows), causal_, first + rows == queries_};
  }

  Index queries_, keys_, step_;
  bool causal_;
};

/// The whole map as one block, for run_map.
inline MapBlock whole_map(const AttentionShape& shape, bool causal) {
  return {0, shape.queries, shape.keys, causal, true};
}

/// What products with a map cost: it has `pairs` pairs of a query and a key that it sees, and `seen` of the keys are
/// seen by any query.
struct MapPairs {
  Index queries, seen, pairs;

  MapPairs(const AttentionShape& shape, bool causal)
      : queries(shape.queries), seen(keys_seen(causal, shape.keys, shape.queries)), pairs(queries * shape.keys) {
    if (causal) pairs = seen * (seen + 1) / 2 + (queries - seen) * shape.keys;
  }

  /// S = q k^T, or dA = dout v^T: a number for each pair, of so many channels.
  Counts scores(Index channels) const { return product_counts(pairs, 1, channels); }
  /// out = A v or dq = dS k, a row for each query; dv = A^T dout or dk = dS^T q, a row for each key that is seen.
  Counts to_queries(Index channels) const { return {.mul = pairs * channels, .add = (pairs - queries) * channels}; }
  Counts to_keys(Index channels) const { return {.mul = pairs * channels, .add = (pairs - seen) * channels}; }
  /// Any of these as papers count.
  Counts contraction(Index channels) const { return product_contractions(pairs, 1, channels); }
};

/// Gradients of the keys and values of head h that no query sees.
template <class T>
void clear_unseen_keys(bool causal, const AttentionShape& shape, Index h, const AttentionGradient<T>& gradient) {
  if (gradient.update == Update::accumulate) return;
  const Index seen = keys_seen(causal, shape.keys, shape.queries), unseen = shape.keys - seen;
  fill(gradient.k[h].middle_rows(seen, unseen), T(0));
  fill(gradient.v[h].middle_rows(seen, unseen), T(0));
}

}  // namespace heed
