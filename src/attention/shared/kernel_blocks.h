// Part of kernel attention (kernel_attention.h): the blocks of keys and queries.
#pragma once

#include "kernel_attention.h"

#include "heed/attention/map_blocks.h"

namespace heed {

/// A block of queries; the keys that all of them see and that no earlier block added to the sums; and the `later` keys
/// after these, of which query r of the block sees the first r. A block may have no queries, or no keys.
struct KernelBlock : QueriesAndKeys {
  Index later;

  template <class T>
  Matrix<T> within(Matrix<T> m) const {
    return m.middle_rows(first_key + seen, later);
  }
};

/// The blocks of a call, first to last.
template <class T>
struct KernelBlocks {
  const KernelAttention& of;

  Index count() const {
    return of.causal ? parts(of.N, causal_queries()) : key_blocks() + parts(of.N, of.block_queries());
  }
  KernelBlock operator[](Index i) const {
    if (of.causal) {
      const Index step = causal_queries(), first = i * step, rows = std::min(step, of.N - first);
      const Index before = i == 0 ? 0 : std::min(first - step + 1, of.M), all = std::min(first + 1, of.M);
      return {{first, rows, before, all - before}, std::min(first + rows, of.M) - all};
    }
    if (const Index key = i * of.block_keys(); key < of.M)
      return {{0, 0, key, std::min(of.block_keys(), of.M - key)}, 0};
    const Index first = (i - key_blocks()) * of.block_queries();
    return {{first, std::min(of.block_queries(), of.N - first), of.M, 0}, 0};
  }

 private:
  static Index parts(Index whole, Index part) { return (whole + part - 1) / part; }
  Index key_blocks() const { return parts(of.M, of.block_keys()); }
  /// Returns the maximum number of queries per causal block; with Counted, one.
  Index causal_queries() const { return std::is_same_v<T, Counted> ? 1 : of.block_queries(); }
};

}  // namespace heed
