// Kernel attention: the map is a product of features, f_i of query i and g_j of key j.
//
//   S = sum_j g_j v_j^T            [p, e]
//   z = sum_j g_j                  [p]
//   D_i = f_i z + eps
//   out_i = f_i S / D_i            [N, e]; or f_i S, if rows are not normalised
//
// The map f_i g_j / D_i [N, M] is never stored: time O((N + M) p e), memory O(N). Blocks of keys are added to the sums,
// which blocks of queries then read; a block's features are used while they are in the cache, and recomputed in the
// backward pass. A block is processed for all heads in turn, since its heads are adjacent in memory.
//
// If causal, S and z are running sums over the keys up to the query's position. A block has keys and queries: S sums
// over the keys that all its queries see; keys that only some of them see are added by a product within the block,
//
//   P_ij = f_i g_j for j <= i, 0 beyond:      y_i = f_i S + sum_j P_ij v_j,     D_i = f_i z + sum_j P_ij + eps.
//
// A block of one query has no such keys: its sums are the running sums of the textbook algorithm. With Counted, causal
// blocks have one query. Since the causal backward pass runs through the blocks twice, the features are saved, and
// heads run sequentially.
#pragma once

#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"

namespace heed {

/// The features of a mechanism. x, dx and features have a row per query or key, from index `first` on.
template <class T>
class KernelFeatures {
 public:
  enum Side { queries, keys };

  /// Computes data that all blocks share and that the backward pass uses, too. Called before the first block of forward
  /// or map.
  virtual void start() const {}

  virtual void make(Side side, Index first, Matrix<const T> x, Matrix<T> features) const = 0;

  /// Computes dx from the gradient of the features, which may be overwritten.
  virtual void undo(Side side, Index first, Matrix<const T> x, Matrix<T> features, Matrix<T> gradient, Update update,
                    Matrix<T> dx) const = 0;

 protected:
  ~KernelFeatures() = default;
};

/// Saved for the backward pass: S, z and 1 / D; the features, unless they are recomputed.
template <class T>
struct KernelSaved {
  Heads<T> f, g;     ///< [N, p], [M, p]
  Heads<T> S, z, r;  ///< [p, e], [1, p], [N, 1]
};

/// Scratch: features of a block, and their gradients; gradients of y = f S and of D; P and its gradient; gradients of S
/// and z of each head. If causal, dg is for all keys, dy and dD are for all queries.
template <class T>
struct KernelScratch {
  Matrix<T> f, g, df, dg, dy, dD, P, dP;
  Heads<T> dS, dz;
};

/// Sizes and options for one shape.
struct KernelAttention {
  Index heads, N, M, p, e;
  bool normalised = true, causal = false;
  double eps = 0;
  bool keys_together = false;  ///< features depend on all keys: the keys form one block, their features are saved

  template <class T>
  KernelSaved<T> saved(MemoryLayout<T>& layout) const {
    const auto take = [&](Index rows, Index columns) { return lay_out_heads(heads, rows, columns, layout); };
    return {take(keeps_queries() * N, p), take(keeps_keys() * M, p), take(p, e), take(normalised, p),
            take(normalised * N, 1)};
  }
  template <class T>
  KernelScratch<T> scratch(MemoryLayout<T>& layout) const {
    const Index n = normalised, rows = std::min(block_queries(), N), keys = std::min(block_keys(), M);
    const Index within = causal * rows, all = causal ? N : rows;
    return {.f = layout.matrix(keeps_queries() ? 0 : rows, p),
            .g = layout.matrix(keeps_keys() ? 0 : keys, p),
            .df = layout.matrix(rows, p),
            .dg = layout.matrix(causal ? M : keys, p),
            .dy = layout.matrix(n * all, e),
            .dD = layout.matrix(n * all, 1),
            .P = layout.matrix(within, within),
            .dP = layout.matrix(within, within),
            .dS = lay_out_heads(heads, p, e, layout),
            .dz = lay_out_heads(heads, n, p, layout)};
  }

  template <class T>
  void forward(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<T> out,
               const KernelSaved<T>& saved, const KernelScratch<T>& scratch) const;
  template <class T>
  void backward(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<const T> out, Heads<const T> dout,
                const KernelSaved<T>& saved, const KernelScratch<T>& scratch,
                const AttentionGradient<T>& gradient) const;
  template <class T>
  void make_map(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<T> map,
                const KernelSaved<T>& saved, const KernelScratch<T>& scratch) const;

  /// Returns the cost of one head, without KernelFeatures::undo(), given the forward counts of the features of its
  /// queries and of its keys.
  Cost cost(const Counts& queries, const Counts& keys) const;

  /// Return true if the features of queries, or keys, are saved for the backward pass instead of recomputed.
  bool keeps_queries() const { return causal; }
  bool keeps_keys() const { return causal || keys_together; }

  /// Return the maximum number of queries, or of keys, per block. If causal, the product within a block of 64 queries
  /// takes about as long as the products with S; otherwise 256 rows of 64 features are 64 KB, and a few such matrices
  /// fit in an L2 cache.
  Index block_queries() const { return causal ? 64 : 256; }
  Index block_keys() const { return keys_together ? M : 256; }
};

/// Base of the kernel attention mechanisms. Derived defines, in addition to its options and cost:
///   kernel(shape)                     its sizes
///   features(shape, layout)           its features, which may lay out memory that is saved for the backward pass
template <class Derived>
class KernelMechanism : public MechanismBase<Derived>, public WithMap<Derived> {
 public:
  template <class Features, class T>
  struct Saved {
    Features features;
    KernelSaved<T> sums;
  };
  template <class T>
  auto saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    auto features = self().features(shape, layout);
    return Saved<decltype(features), T>{features, self().kernel(shape).saved(layout)};
  }
  template <class T>
  KernelScratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return self().kernel(shape).scratch(layout);
  }

  template <class T, class Saved>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved& saved,
                   const KernelScratch<T>& scratch) const {
    saved.features.start();
    self().kernel(in.shape).forward(in, saved.features, out, saved.sums, scratch);
  }
  template <class T, class Saved>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const Saved& saved,
                    const KernelScratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    self().kernel(in.shape).backward(in, saved.features, out, dout, saved.sums, scratch, gradient);
  }
  template <class T, class Saved>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved& saved, const KernelScratch<T>& scratch) const {
    saved.features.start();
    self().kernel(in.shape).make_map(in, saved.features, map, saved.sums, scratch);
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace heed
