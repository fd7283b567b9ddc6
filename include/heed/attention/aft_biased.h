// Part of AFT (aft.h): the sums over keys that have a position bias, in full and local.
//
//   exp(scale[t,c]) (mass[t,c], value[t,c]) = sum_s exp(k[s,c] + w[t,s]) (1, v[s,c])   over the biased keys s of t
//
// Blocks of queries are taken together. Where their exponents do not lie too far apart this is a matrix product,
//
//   E = exp(w - max_s w) [n, M], 0 where t does not see s;   F = exp(k - max_s k) (1, v) [M, 2 D];
//   exp(scale) (mass, value) = exp(max_s w + max_s k) E F    [n, 2 D],
//
// and the product itself shows whether they did (`furthest`, below). Otherwise, and when counting, which is about the
// textbook's algorithm, the sum goes key by key with the maximum over the keys of its own query. Neither way is there
// an N x N x D tensor: a block holds O(n M + M D) numbers.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/kernels/exp_sums.h"
#include "heed/kernels/gemm_by_stride.h"

namespace heed {

/// Which keys a query sees, and which of them have a bias.
struct AftReach {
  Index window = 0;  ///< keys with |t - s| < window have a bias
  bool masked = false, causal = false;
  Index keys = 0;  ///< M

  /// Query t sees keys [first, last) with a bias, [0, before) and [after, M) without. All four grow with t.
  struct Range {
    Index first, last, before, after;
  };
  Range operator()(Index t) const {
    const Index seen = causal ? t + 1 : keys;
    if (window == 0) return {seen, seen, seen, keys};
    const Index first = std::max<Index>(t - window + 1, 0), last = std::min(seen, t + window);
    return {first, last, masked ? 0 : first, masked || causal ? keys : last};
  }
};

struct AftBiased {
  AftReach reach;
  Index queries = 0, channels = 0;
  Index rank = 0;  ///< w = u p^T with u [N, rank], p [M, rank]; 0: w [N, M] itself

  /// w, E and dw of a block; F and its gradient; the sums of a block; the maxima.
  Index scratch() const { return 3 * block * band() + 4 * band() * channels + 2 * block * channels + block + channels; }

  template <class T>
  void forward(const AttentionInput<T>& in, kernels::ExpSums<T> sums, T* scratch) const {
    const Index D = channels;
    const Memory<T> m = divide(scratch);
    Index first_made = -1, last_made = -1;  // the keys that F is there for
    for (Block b = block_at<T>(0); b.rows > 0; b = block_at<T>(b.first + b.rows)) {
      const Bias<T> w = bias(in, b, m.w);
      const kernels::ExpSums<T> block_sums = sums.at(b.first * D);
      if (by_products<T>()) {
        if (b.key != first_made || b.last != last_made) make_F(in, b, m);
        first_made = b.key, last_made = b.last;
        make_E(b, w, m);
        kernels::gemm(Transpose::no, Transpose::no, b.rows, 2 * D, b.keys(), m.E, b.keys(), m.F, 2 * D, Update::assign,
                      m.block, 2 * D);
        if (near(b, m.block)) {
          take_product(b, m, block_sums);
          continue;
        }
      }
      for (Index r = 0; r < b.rows; ++r) {
        const AftReach::Range seen = reach(b.first + r);
        kernels::exp_sums_of(seen.last - seen.first, D, in.k[0] + seen.first * in.k.row_stride, in.k.row_stride,
                             in.v[0] + seen.first * in.v.row_stride, in.v.row_stride, w.row(r) + (seen.first - b.key),
                             block_sums.at(r * D));
      }
    }
  }

  /// scale, y, and dy_by_mass = dy / mass are those of all queries, [N, D]; keys that lie outside the window of some
  /// query have gradients already.
  //
  // By products, with X = exp(max w + max k - scale) dy / mass [n, D]:
  //   (A, B) = E^T (X, X y) [M, 2 D],   dv = exp(k - max k) A,   dk = exp(k - max k) (v A - B),
  //   dw = E * (X (F v)^T - (X y) F^T)  [n, M], element-wise times E.
  template <class T>
  void backward(const AttentionInput<T>& in, const T* scale, const T* dy_by_mass, const T* y, T* scratch,
                const AttentionGradient<T>& gradient) const {
    const Memory<T> m = divide(scratch);
    Index first_made = -1, last_made = -1, touched = 0;  // touched: keys before have a gradient from a block before
    for (Block b = block_at<T>(0); b.rows > 0; touched = b.last, b = block_at<T>(b.first + b.rows)) {
      const Bias<T> w = bias(in, b, m.w);
      bool done = false;
      if (by_products<T>()) {
        if (b.key != first_made || b.last != last_made) make_F(in, b, m);
        first_made = b.key, last_made = b.last;
        make_E(b, w, m);
        done = weigh(b, m, scale, dy_by_mass, y);
        if (done) backward_by_products(in, b, m, touched, gradient);
      }
      if (!done) backward_by_keys(in, b, w, m, scale, dy_by_mass, y, touched, gradient);
      add_bias_gradient(in, b, m.dw, gradient);
    }
  }

 private:
  // Queries of a block: at M = 4096 keys its w, E and dw are 3 MB of floats. Counting goes query by query, so that a
  // causal or local row costs the pairs it has and no more.
  static constexpr Index block = 64;

  // A product of exponentials is used where the largest term of every sum is at least e^-30 of exp(max w + max k). What
  // float loses to underflow is then below 1e-38 e^30 = 1e-25 of the sum, and exponents are rounded to 30 eps.
  static constexpr double furthest = 30;

  // With a narrower window the product over a block, 62 + 2 window keys, would be more than nine tenths zeros.
  static constexpr Index narrowest = 4;

  template <class T>
  bool by_products() const {
    return !std::is_same_v<T, Counted> && reach.window >= narrowest;
  }

  /// Queries [first, first + rows) and keys [key, last), those that any of them has a bias for.
  struct Block {
    Index first, rows, key, last;
    Index keys() const { return last - key; }
  };
  template <class T>
  Block block_at(Index first) const {
    const Index rows = std::min(std::is_same_v<T, Counted> ? 1 : block, queries - first);
    return rows <= 0 ? Block{first, 0, 0, 0} : Block{first, rows, reach(first).first, reach(first + rows - 1).last};
  }
  Index band() const { return std::min(reach.keys, block + 2 * std::min(reach.window, reach.keys)); }

  template <class T>
  struct Memory {
    T *w, *E, *dw, *F, *dF, *block, *max_w, *max_k;
  };
  template <class T>
  Memory<T> divide(T* scratch) const {
    const Index map = block * band(), columns = 2 * band() * channels;
    T* const F = scratch + 3 * map;
    T* const sums = F + 2 * columns;
    return {scratch,     scratch + map, scratch + 2 * map,           F,
            F + columns, sums,          sums + 2 * block * channels, sums + 2 * block * channels + block};
  }

  /// Rows of w for a block, from its first key on.
  template <class T>
  struct Bias {
    const T* data;
    Index stride;
    const T* row(Index r) const { return data + r * stride; }
  };
  template <class T>
  Bias<T> bias(const AttentionInput<T>& in, const Block& b, T* w) const {
    if (rank == 0) return {in.parameters[0].data() + b.first * reach.keys + b.key, reach.keys};
    kernels::gemm(Transpose::no, Transpose::yes, b.rows, b.keys(), rank, in.parameters[0].data() + b.first * rank, rank,
                  in.parameters[1].data() + b.key * rank, rank, Update::assign, w, b.keys());
    return {w, b.keys()};
  }

  /// F and max k.
  template <class T>
  void make_F(const AttentionInput<T>& in, const Block& b, const Memory<T>& m) const {
    kernels::exp_of_columns(b.keys(), channels, in.k[0] + b.key * in.k.row_stride, in.k.row_stride,
                            in.v[0] + b.key * in.v.row_stride, in.v.row_stride, m.max_k, m.F);
  }

  /// E and max w.
  template <class T>
  void make_E(const Block& b, const Bias<T>& w, const Memory<T>& m) const {
    for (Index r = 0; r < b.rows; ++r) {
      const AftReach::Range seen = reach(b.first + r);
      m.max_w[r] = kernels::exp_of_row(b.keys(), seen.first - b.key, seen.last - b.key, w.row(r), m.E + r * b.keys());
    }
  }

  /// Has no sum of a block [n, 2 D] lost its largest term?
  template <class T>
  bool near(const Block& b, const T* product) const {
    const T least = T(std::exp(-furthest));
    bool all = true;
    for (Index r = 0; r < b.rows; ++r)
      for (Index c = 0; c < channels; ++c) all &= product[r * 2 * channels + c] >= least;
    return all;
  }

  /// The product as sums whose scale is max w + max k, rounded; exp of what the rounding lost goes into mass and value.
  template <class T>
  void take_product(const Block& b, const Memory<T>& m, kernels::ExpSums<T> sums) const {
    using kernels::exp;
    for (Index r = 0; r < b.rows; ++r)
      for (Index c = 0; c < channels; ++c) {
        const T scale = m.max_w[r] + m.max_k[c], rest = exp((m.max_k[c] - scale) + m.max_w[r]);
        sums.scale[r * channels + c] = scale;
        sums.mass[r * channels + c] = rest * m.block[r * 2 * channels + c];
        sums.value[r * channels + c] = rest * m.block[(r * 2 + 1) * channels + c];
      }
  }

  /// The block becomes (-X y, X); false if the exponents lie too far apart.
  template <class T>
  bool weigh(const Block& b, const Memory<T>& m, const T* scale, const T* dy_by_mass, const T* y) const {
    using kernels::exp;
    bool all = true;
    for (Index r = 0; r < b.rows; ++r)
      for (Index c = 0; c < channels; ++c) {
        const Index i = (b.first + r) * channels + c;
        const T exponent = (m.max_k[c] - scale[i]) + m.max_w[r], X = exp(exponent) * dy_by_mass[i];
        all &= exponent <= T(furthest);
        m.block[r * 2 * channels + c] = -X * y[i];
        m.block[(r * 2 + 1) * channels + c] = X;
      }
    return all;
  }

  template <class T>
  void backward_by_products(const AttentionInput<T>& in, const Block& b, const Memory<T>& m, Index touched,
                            const AttentionGradient<T>& gradient) const {
    const Index D = channels, keys = b.keys();
    // With F = (f, f v): dw = E * ((-X y, X) F^T), and (-B, A) = E^T (-X y, X).
    kernels::gemm(Transpose::no, Transpose::yes, b.rows, keys, 2 * D, m.block, 2 * D, m.F, 2 * D, Update::assign, m.dw,
                  keys);
    for (Index i = 0; i < b.rows * keys; ++i) m.dw[i] *= m.E[i];
    kernels::gemm(Transpose::yes, Transpose::no, keys, 2 * D, b.rows, m.E, keys, m.block, 2 * D, Update::assign, m.dF,
                  2 * D);
    for (Index s = b.key; s < b.last; ++s) {
      const Update update = update_of(s, touched, gradient);
      const T *const v = in.v[0] + s * in.v.row_stride, *const f = m.F + (s - b.key) * 2 * D;
      const T *const B = m.dF + (s - b.key) * 2 * D, *const A = B + D;
      T *const dk = gradient.k[0] + s * gradient.k.row_stride, *const dv = gradient.v[0] + s * gradient.v.row_stride;
      for (Index c = 0; c < D; ++c) {
        write(update, dv[c], f[c] * A[c]);
        write(update, dk[c], f[c] * (v[c] * A[c] + B[c]));
      }
    }
  }

  template <class T>
  void backward_by_keys(const AttentionInput<T>& in, const Block& b, const Bias<T>& w, const Memory<T>& m,
                        const T* scale, const T* dy_by_mass, const T* y, Index touched,
                        const AttentionGradient<T>& gradient) const {
    const Index D = channels;
    std::fill(m.dw, m.dw + b.rows * b.keys(), T(0));
    for (Index r = 0; r < b.rows; ++r) {
      const AftReach::Range seen = reach(b.first + r);
      const Index row = (b.first + r) * D;
      for (Index s = seen.first; s < seen.last; ++s)
        kernels::exp_sums_backward(1, D, in.k[0] + s * in.k.row_stride, in.k.row_stride, in.v[0] + s * in.v.row_stride,
                                   in.v.row_stride, w.row(r) + (s - b.key), scale + row, dy_by_mass + row, y + row,
                                   update_of(s, touched, gradient), gradient.k[0] + s * gradient.k.row_stride,
                                   gradient.k.row_stride, gradient.v[0] + s * gradient.v.row_stride,
                                   gradient.v.row_stride, m.dw + r * b.keys() + (s - b.key));
      touched = std::max(touched, seen.last);
    }
  }

  /// Has key s a gradient yet: from a query before, or as a key outside some window?
  template <class T>
  Update update_of(Index s, Index touched, const AttentionGradient<T>& gradient) const {
    const bool fresh = s >= touched && s >= reach(queries - 1).before && s < reach(0).after;
    return fresh ? gradient.update : Update::accumulate;
  }

  template <class T>
  void add_bias_gradient(const AttentionInput<T>& in, const Block& b, const T* dw,
                         const AttentionGradient<T>& gradient) const {
    const Index keys = b.keys();
    if (rank == 0) {
      T* const target = gradient.parameters[0].data() + b.first * reach.keys + b.key;
      for (Index r = 0; r < b.rows; ++r)
        for (Index s = 0; s < keys; ++s) target[r * reach.keys + s] += dw[r * keys + s];
      return;
    }
    const T *const u = in.parameters[0].data() + b.first * rank, *const p = in.parameters[1].data() + b.key * rank;
    kernels::gemm(Transpose::no, Transpose::no, b.rows, rank, keys, dw, keys, p, rank, Update::accumulate,
                  gradient.parameters[0].data() + b.first * rank, rank);
    kernels::gemm(Transpose::yes, Transpose::no, keys, rank, b.rows, dw, keys, u, rank, Update::accumulate,
                  gradient.parameters[1].data() + b.key * rank, rank);
  }
};

}  // namespace heed
