// Mechanisms that compare each query with each key make their map in blocks of queries, and never store it.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Rows of the map made at once for so many queries: blocks of equal size, of 48 to 80 rows, or of up to 95 where there
/// is one. At 4096 keys, two of them are 2 MB of floats, about an L2 cache. (65 tokens are one block: each begins by
/// arranging all keys and values.)
inline Index map_block(Index queries) {
  const Index blocks = std::max<Index>((queries + 32) / 64, 1);
  return std::max<Index>((queries + blocks - 1) / blocks, 1);
}

/// The same where a query may see the keys up to its own position only. Counting goes row by row, so that such a row
/// costs the pairs it has and no more.
template <class T>
Index map_rows_at_once(Index queries) {
  return std::is_same_v<T, Counted> ? 1 : map_block(queries);
}

/// Numbers from one row of a block to the next, so that rows begin on cache lines: vectors that straddle two lines on
/// every row take a quarter longer.
inline Index padded_row(Index columns) { return (columns + 15) / 16 * 16; }

/// How many of the keys the first `queries` queries see between them: with `causal`, query i sees keys 0 to i.
inline Index keys_seen(bool causal, Index keys, Index queries) { return causal ? std::min(keys, queries) : keys; }

/// Pairs of a query and a key that it sees.
inline Index pairs_seen(bool causal, Index keys, Index queries) {
  const Index seen = keys_seen(causal, keys, queries);
  return causal ? seen * (seen + 1) / 2 + (queries - seen) * keys : queries * keys;
}

/// Gradients of the keys and values of head h that no query sees.
template <class T>
void clear_unseen_keys(bool causal, const AttentionShape& shape, Index h, const AttentionGradient<T>& gradient) {
  if (gradient.update == Update::accumulate) return;
  for (Index j = keys_seen(causal, shape.keys, shape.queries); j < shape.keys; ++j) {
    std::fill_n(gradient.k[h] + j * gradient.k.row_stride, shape.width, T(0));
    std::fill_n(gradient.v[h] + j * gradient.v.row_stride, shape.value_width, T(0));
  }
}

}  // namespace heed
