// Mechanisms that compare each query with each key make their map in blocks of queries, and never store it.
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/rows/softmax.h"

#include <cmath>

namespace heed {

/// How many rows of the map are made at once, out of `queries`: blocks of equal size, of 48 to 80 rows, or a single one
/// of up to 95. (65 tokens are one block: each begins by arranging all keys and values.)
inline Index map_block(Index queries) {
  const Index blocks = std::max<Index>((queries + 32) / 64, 1);
  return std::max<Index>((queries + blocks - 1) / blocks, 1);
}

/// Numbers from one row of a block to the next, so that rows begin on cache lines: vectors that straddle two lines on
/// every row take a quarter longer.
inline Index padded_row(Index columns) { return (columns + 15) / 16 * 16; }

/// Is the map kept for the backward pass, which otherwise makes it again? It is where it takes no more room than q, k,
/// v and out, which are kept anyway: with as many keys as queries and one width d, up to 4 d of them. So memory stays
/// O(N). To read a number of it takes a quarter of the time of making a score of 16 channels again, even from L3.
inline bool keeps_map(const AttentionShape& s) {
  return s.queries * s.keys <= (s.queries + s.keys) * (s.width + s.value_width);
}

/// Of how many keys, at most, blocks are that are taken part by part: k, v, their gradients and two blocks of 64 rows
/// take half of an L2 cache of 1 MB. Tiles of products take 64 keys together.
inline Index key_part(const AttentionShape& s) {
  const Index fit = (1 << 17) / (2 * (s.width + s.value_width + 64));
  return std::min(s.keys, std::max<Index>(fit / 64, 1) * 64);
}

/// How many of the keys the first `queries` queries see between them: with `causal`, query i sees keys 0 to i.
inline Index keys_seen(bool causal, Index keys, Index queries) { return causal ? std::min(keys, queries) : keys; }

/// Some queries, and keys that they see between them: b.queries(m) and b.keys(m) are their rows of m, b.map(m) the part
/// of a matrix in which their rows of the map are made.
struct MapBlock {
  Index first, rows, seen;
  bool causal;
  bool last;  ///< none sees more keys: on the way back it comes before others with the same keys
  Index first_key = 0;
  Index coming = 0;  ///< that many queries before `first` come next

  /// The block's rows of a matrix with a row for each query, and of one with a row for each key.
  template <class T>
  Matrix<T> queries(Matrix<T> m) const {
    return m.middle_rows(first, rows);
  }
  template <class T>
  Matrix<T> keys(Matrix<T> m) const {
    return m.middle_rows(first_key, seen);
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

  /// The block within the whole map of a head.
  template <class T>
  Matrix<T> part(Matrix<T> whole) const {
    return whole.middle_rows(first, rows).middle_columns(first_key, seen);
  }

  /// How its rows are taken: each score times `scale`, over the keys that its query sees.
  kernels::ScoreRows scores(double scale) const { return {scale, causal, first + 1 - first_key}; }

  /// How to write the gradients of its keys, and of its queries, so that all blocks are added up.
  Update update(Update update) const { return last ? update : Update::accumulate; }
  Update query_update(Update update) const { return first_key == 0 ? update : Update::accumulate; }
};

/// Has the rows of the coming queries brought near meanwhile: short rows that lie far apart, each of which a product
/// would wait for.
template <class... M>
[[gnu::always_inline]] inline void fetch_coming(const MapBlock& b, const M&... matrices) {
  (fetch(matrices.middle_rows(b.first - b.coming, b.coming)), ...);
}

/// Memory for a block of the map of any size, or of at most `keys` keys, for MapBlock::map and for MapBlock::dense_map.
template <class T>
Matrix<T> carve_map_block(const AttentionShape& shape, Index keys, Carver<T>& carve) {
  return carve.matrix(map_block(shape.queries), keys, padded_row(keys));
}
template <class T>
Matrix<T> carve_map_block(const AttentionShape& shape, Carver<T>& carve) {
  return carve_map_block(shape, shape.keys, carve);
}
template <class T>
Matrix<T> carve_dense_map_block(const AttentionShape& shape, Index keys, Carver<T>& carve) {
  return carve.matrix(map_block(shape.queries), keys);
}
template <class T>
Matrix<T> carve_dense_map_block(const AttentionShape& shape, Carver<T>& carve) {
  return carve_dense_map_block(shape, shape.keys, carve);
}

/// What is saved of the softmax of all heads' scores: the maps A, their rows on cache lines; or, where keeps_map() says
/// no, the maximum and the sum of each row, from which it is made again.
template <class T>
struct SavedSoftmax {
  Heads<T> maps, rows;

  /// Where a block of head h's map is made: in its place, or in `memory`.
  Matrix<T> map(const MapBlock& b, Index h, Matrix<T> memory) const {
    return maps.count > 0 ? b.part(maps[h]) : b.map(memory);
  }
  /// Maximum and sum of its rows; empty where they are not saved.
  Matrix<T> of_rows(const MapBlock& b, Index h) const { return maps.count > 0 ? Matrix<T>() : b.queries(rows[h]); }
};
template <class T>
SavedSoftmax<T> carve_saved_softmax(const AttentionShape& s, Carver<T>& carve) {
  if (!keeps_map(s)) return {{}, carve_heads(s.heads, s.queries, 2, carve)};
  const Matrix<T> all = carve.matrix(s.heads * s.queries, s.keys, padded_row(s.keys));
  return {{all.top_rows(s.queries), s.heads, s.queries * all.stride}, {}};
}

/// The blocks of a map: some queries and all keys, first to last on the way forward, last to first on the way back. Or,
/// on the way back, one part of the keys after the other (Dao, "FlashAttention-2", 2023, arXiv:2307.08691,
/// Section 3.1): keys, values, their gradients and blocks stay in the L2 cache while all queries go by. Counting goes
/// row by row, so that a causal row costs the pairs it has and no more.
template <class T>
class MapBlocks {
 public:
  MapBlocks(const AttentionShape& shape, bool causal)
      : queries_(shape.queries),
        keys_(shape.keys),
        part_(std::is_same_v<T, Counted> ? shape.keys : key_part(shape)),
        step_(std::is_same_v<T, Counted> ? 1 : map_block(shape.queries)),
        causal_(causal) {}

  template <class F>
  void forward(const F& f) const {
    for (Index first = 0; first < queries_; first += step_) f(at(first));
  }
  template <class F>
  void backward(const F& f) const {
    back(keys_, f);
  }
  template <class F>
  void backward_by_keys(const F& f) const {
    back(part_, f);
  }
  /// Are there several parts then, so that no block has whole rows?
  bool parted() const { return part_ < keys_; }

 private:
  MapBlock at(Index first) const {
    const Index rows = std::min(step_, queries_ - first);
    return {first, rows, keys_seen(causal_, keys_, first + rows), causal_, first + rows == queries_};
  }

  template <class F>
  void back(Index most_keys, const F& f) const {
    const Index last = (queries_ - 1) / step_ * step_, seen = at(last).seen;
    const Index parts = (seen + most_keys - 1) / most_keys;
    const Index width = parts > 1 ? (seen + 64 * parts - 1) / (64 * parts) * 64 : seen;
    for (Index first_key = 0; first_key < seen; first_key += width)
      for (Index first = last; first >= 0; first -= step_) {
        MapBlock b = at(first);
        if (b.seen <= first_key) break;
        b.first_key = first_key;
        b.seen = std::min(b.seen - first_key, width);
        b.coming = parts > 1 && first > 0 ? step_ : 0;
        f(b);
      }
  }

  Index queries_, keys_, part_, step_;
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
