// Blocks of the attention map, for mechanisms that compare every query with every key without storing the whole map.
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/attention/steps.h"
#include "heed/kernels/products/packed_weight.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

/// Returns the number of query rows per block: all of them for up to 95 queries, and 48 to 80 for more (the last block
/// may be smaller). Every block packs keys or values for its products, so a few rows more than 64 are not worth a
/// second block.
inline Index map_block(Index queries) {
  const Index blocks = std::max<Index>((queries + 32) / 64, 1);
  return std::max<Index>((queries + blocks - 1) / blocks, 1);
}

/// Returns the row stride of a block of `columns` columns, rounded up to whole cache lines: rows whose vectors straddle
/// two lines take a quarter longer than aligned rows.
inline Index padded_row(Index columns) { return (columns + 15) / 16 * 16; }

/// Returns true if the map is saved for the backward pass instead of recomputed: if it has no more elements than q, k,
/// v and out together, which are saved anyway (for N = M and d = e, up to N = 4 d). Memory thus stays O(N). Reading an
/// element, even from L3, takes a quarter of the time of recomputing a score of 16 channels.
inline bool keeps_map(const AttentionShape& s) {
  return s.queries * s.keys <= (s.queries + s.keys) * (s.width + s.value_width);
}

/// Returns the maximum number of keys per block: the largest multiple of 64, the tile width of products, for which k,
/// v, their gradients and two map blocks of 64 rows fit in half of an L2 cache of 1 MB; at least 64, at most all keys.
/// Rows with more keys are split across blocks.
inline Index key_part(const AttentionShape& s) {
  const Index fit = (1 << 17) / (2 * (s.width + s.value_width + 64));
  return std::min(s.keys, std::max<Index>(fit / 64, 1) * 64);
}

/// Returns the number of keys visible to any of the first `queries` queries; with `causal`, query i sees keys 0 to i.
inline Index keys_seen(bool causal, Index keys, Index queries) { return causal ? std::min(keys, queries) : keys; }

/// Queries [first, first + rows) and keys [first_key, first_key + seen). queries(m) and keys(m) return these rows of m.
struct QueriesAndKeys {
  Index first, rows, first_key, seen;

  template <class T>
  Matrix<T> queries(Matrix<T> m) const {
    return m.middle_rows(first, rows);
  }
  template <class T>
  Matrix<T> keys(Matrix<T> m) const {
    return m.middle_rows(first_key, seen);
  }
};

/// A block of the map.
struct MapBlock : QueriesAndKeys {
  bool causal;
  /// True for the block of the last queries, visited first among blocks with these keys. It sees the most keys.
  bool last;
  Index next_rows = 0;  ///< rows of the next block, which ends at `first`; 0: none to prefetch

  /// Returns memory for this block of the map; its rows begin on cache lines.
  template <class T>
  Matrix<T> map(Matrix<T> memory) const {
    return {memory.data, rows, seen, padded_row(seen)};
  }

  /// Returns memory for this block without gaps between rows, for element-wise kernels.
  template <class T>
  Matrix<T> dense_map(Matrix<T> memory) const {
    return {memory.data, rows, seen};
  }

  /// Returns the block within the whole map of a head.
  template <class T>
  Matrix<T> part(Matrix<T> whole) const {
    return whole.middle_rows(first, rows).middle_columns(first_key, seen);
  }

  /// Returns the scaling and masking of the block's rows: scores times `scale`, over the keys visible to each query.
  kernels::ScoreRows scores(double scale) const { return {scale, causal, first + 1 - first_key}; }

  /// Return the updates for the gradients of the block's keys, and of its queries. The first block that contributes to
  /// a gradient uses `update`, later ones accumulate.
  Update update(Update update) const { return last ? update : Update::accumulate; }
  Update query_update(Update update) const { return first_key == 0 ? update : Update::accumulate; }
};

/// Reports a block of the map as a step (attention/steps.h), if the block is the whole map.
template <class T>
void report_map_step(const char* name, Index head, const AttentionShape& shape, const MapBlock& b, Matrix<T> values) {
  if (b.rows == shape.queries && b.seen == shape.keys) report_step(name, head, values);
}

/// Prefetches the next block's query rows. They are short and far apart, and each would otherwise stall a product.
template <class... M>
[[gnu::always_inline]] inline void prefetch_next_block(const MapBlock& b, const M&... matrices) {
  (fetch(matrices.middle_rows(b.first - b.next_rows, b.next_rows)), ...);
}

/// Lay out memory for a block with up to `keys` keys, for MapBlock::map and for MapBlock::dense_map.
template <class T>
Matrix<T> lay_out_map_block(const AttentionShape& shape, Index keys, MemoryLayout<T>& layout) {
  return layout.matrix(map_block(shape.queries), keys, padded_row(keys));
}
template <class T>
Matrix<T> lay_out_dense_map_block(const AttentionShape& shape, Index keys, MemoryLayout<T>& layout) {
  return layout.matrix(map_block(shape.queries), keys);
}

/// Memory saved for the backward pass of softmax, for all heads: the maps A, with rows aligned to cache lines; or, if
/// keeps_map() is false, the maximum and the sum of exps of each row, from which A is recomputed.
template <class T>
struct SavedSoftmax {
  Heads<T> maps, rows;

  /// Returns the memory for a block of head h's map: part of the saved map if there is one, otherwise `memory`.
  Matrix<T> map(const MapBlock& b, Index h, Matrix<T> memory) const {
    return maps.count > 0 ? b.part(maps[h]) : b.map(memory);
  }
  /// Returns the maximum and the sum of exps of each row of the block; empty if the maps are saved.
  Matrix<T> row_sums(const MapBlock& b, Index h) const { return maps.count > 0 ? Matrix<T>() : b.queries(rows[h]); }
};
template <class T>
SavedSoftmax<T> lay_out_saved_softmax(const AttentionShape& s, MemoryLayout<T>& layout) {
  if (!keeps_map(s)) return {{}, lay_out_heads(s.heads, s.queries, 2, layout)};
  const Matrix<T> all = layout.matrix(s.heads * s.queries, s.keys, padded_row(s.keys));
  return {{all.top_rows(s.queries), s.heads, s.queries * all.stride}, {}};
}

/// The blocks of a map. by_queries() visits blocks of queries with all keys, from the last to the first. by_keys()
/// visits blocks of keys in order, each with all blocks of queries that see any of them (Dao, "FlashAttention-2", 2023,
/// arXiv:2307.08691, Section 3.1): the keys and values, their gradients and the map blocks stay in the L2 cache for all
/// queries. With Counted, a block of queries is a single row, so that a causal row is counted with exactly its visible
/// pairs.
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
  void by_queries(const F& f) const {
    run(keys_, f);
  }
  template <class F>
  void by_keys(const F& f) const {
    run(part_, f);
  }
  /// Returns true if by_keys() splits rows across blocks.
  bool splits_rows() const { return part_ < keys_; }

  /// Sets `operand`, shared by the products of the keys of b with all blocks of queries, if b is the first of these
  /// blocks; otherwise does nothing.
  void share(kernels::SharedOperand<T>& operand, const MapBlock& b, const kernels::Gemm& gemm,
             const OperandFor<T>& values) const {
    if (b.last) operand.set(gemm.products, values, step_ < queries_);
  }

 private:
  MapBlock at(Index first) const {
    const Index rows = std::min(step_, queries_ - first);
    return {{first, rows, 0, keys_seen(causal_, keys_, first + rows)}, causal_, first + rows == queries_};
  }

  template <class F>
  void run(Index most_keys, const F& f) const {
    const Index last = (queries_ - 1) / step_ * step_, seen = at(last).seen;
    const Index parts = (seen + most_keys - 1) / most_keys;
    const Index width = parts > 1 ? (seen + 64 * parts - 1) / (64 * parts) * 64 : seen;
    for (Index first_key = 0; first_key < seen; first_key += width)
      for (Index first = last; first >= 0; first -= step_) {
        MapBlock b = at(first);
        if (b.seen <= first_key) break;
        b.first_key = first_key;
        b.seen = std::min(b.seen - first_key, width);
        b.next_rows = parts > 1 && first > 0 ? step_ : 0;
        f(b);
      }
  }

  Index queries_, keys_, part_, step_;
  bool causal_;
};

/// Returns the whole map as one block, for run_map.
inline MapBlock whole_map(const AttentionShape& shape, bool causal) {
  return {{0, shape.queries, 0, shape.keys}, causal, true};
}

/// Costs of products with a map of `pairs` (query, visible key) pairs; `seen` keys are visible to at least one query.
struct MapPairs {
  Index queries, seen, pairs;

  MapPairs(const AttentionShape& shape, bool causal)
      : queries(shape.queries), seen(keys_seen(causal, shape.keys, shape.queries)), pairs(queries * shape.keys) {
    if (causal) pairs = seen * (seen + 1) / 2 + (queries - seen) * shape.keys;
  }

  /// Returns the counts of S = q k^T or dA = dout v^T: an inner product of `channels` channels per pair.
  Counts scores(Index channels) const { return product_counts(pairs, 1, channels); }
  /// Return the counts of out = A v or dq = dS k, a row per query, and of dv = A^T dout or dk = dS^T q, a row per
  /// visible key.
  Counts to_queries(Index channels) const { return {.mul = pairs * channels, .add = (pairs - queries) * channels}; }
  Counts to_keys(Index channels) const { return {.mul = pairs * channels, .add = (pairs - seen) * channels}; }
  /// Returns the counts of scores(), to_queries() or to_keys() in the papers' convention.
  Counts contraction(Index channels) const { return product_contractions(pairs, 1, channels); }
};

/// Zeroes the gradients of head h's keys and values that are visible to no query, unless gradients are accumulated.
template <class T>
void clear_unseen_keys(bool causal, const AttentionShape& shape, Index h, const AttentionGradient<T>& gradient) {
  if (gradient.update == Update::accumulate) return;
  const Index seen = keys_seen(causal, shape.keys, shape.queries), unseen = shape.keys - seen;
  fill(gradient.k[h].middle_rows(seen, unseen), T(0));
  fill(gradient.v[h].middle_rows(seen, unseen), T(0));
}

}  // namespace heed
