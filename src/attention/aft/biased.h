// Part of AFT (aft.cpp): the sums over keys that have a position bias, in full and local.
//
//   exp(scale[t,c]) (mass[t,c], value[t,c]) = sum_s exp(k[s,c] + w[t,s]) (1, v[s,c])   over the biased keys s of t
//
// A block of queries is computed at once. If its exponents are close to each other, the sums are a matrix product,
//
//   E = exp(w - max_s w) [n, M], 0 where s has no bias for t;   F = exp(k - max_s k) (1, v) [M, 2 D];
//   exp(scale) (mass, value) = exp(max_s w + max_s k) E F    [n, 2 D],
//
// and the product itself shows whether the exponents are close (`furthest`, below). Otherwise, and with Counted, which
// counts the textbook algorithm, each query's sum is computed key by key, scaled by the query's largest exponent.
// Neither method needs an N x N x D tensor: a block holds O(n M + M D) elements.
#pragma once

#include "heed/base/math.h"

#include "bias.h"

namespace heed {

struct AftBiased {
  AftBiasMatrix w;

  template <class T>
  using Keys = kernels::KeysAndValues<T>;
  template <class T>
  using Means = kernels::WeightedMeans<T>;

  /// Scratch of a block: the bias and its gradient, unless they are prepared; F and its gradient; E F, or in the
  /// backward pass the weights (-X y, X) of the queries; max_s k.
  template <class T>
  struct Scratch {
    AftBias<T> bias, dbias;
    Matrix<T> F, dF, product, max_k;
  };
  template <class T>
  Scratch<T> scratch(MemoryLayout<T>& layout) const {
    const Index D = w.channels, keys = w.reach.band();
    Scratch<T> m;
    if (!w.prepared()) m.bias = w.memory(w.reach.block(), layout), m.dbias = w.memory(w.reach.block(), layout);
    m.F = layout.matrix(keys, 2 * D), m.dF = layout.matrix(keys, 2 * D);
    m.product = layout.matrix(w.reach.block(), 2 * D), m.max_k = layout.matrix(1, D);
    return m;
  }

  template <class T>
  void forward(const AttentionInput<T>& in, const AftBias<const T>& prepared, const kernels::ExpSums<T>& sums,
               const Scratch<T>& m) const {
    const Keys<const T> keys{in.k[0], in.v[0]};
    AftBlock with_F{};
    w.reach.for_each_block<T>([&](const AftBlock& b) {
      const AftBias<const T> bias = w.at(b, in, prepared, m.bias);
      if (w.reach.by_products_in<T>()) {
        make_F(keys, b, {}, with_F, m);
        if (multiply(bias, b, m)) return take_product(bias, m, sums.middle_rows(b.first, b.rows));
      }
      for (Index r = 0; r < b.rows; ++r) {
        const AftReach::Range seen = w.reach(b.first + r);
        kernels::exp_sums_of(keys.middle_rows(seen.first, seen.last - seen.first),
                             bias.w[r] + (seen.first - b.first_key), sums.row(b.first + r));
      }
    });
  }

  /// Computes the gradients of biased keys and of the bias. `means` [N, D]. Keys that some query sees without a bias
  /// already have a gradient from the unbiased sums.
  //
  // With products and X = exp(max w + max k - scale) G [n, D]:
  //   (A, B) = E^T (X, X y) [M, 2 D],   dv = f A,   dk = f (v A - B),   f = exp(k - max k),
  //   dE = X (f v)^T - (X y) f^T  [n, M],   v and y relative to an origin that all blocks with this F share.
  // A and B are summed over the blocks with the same F.
  template <class T>
  void backward(const AttentionInput<T>& in, const AftBias<const T>& prepared, const Means<T>& means,
                const Scratch<T>& m, const AttentionGradient<T>& gradient, const AftBias<T>& dprepared) const {
    const Keys<const T> keys{in.k[0], in.v[0]};
    AftBlock with_F{};
    bool has_dF = false;  // dF holds gradients from earlier blocks with this F
    Index touched = 0;    // keys before this one have a gradient from an earlier block
    const auto undo_F = [&] {
      if (has_dF) F_backward<T>({keys, with_F, touched, gradient}, kernels::value_origin(with_F.queries(means.y)), m);
      if (has_dF) touched = with_F.last_key();
      has_dF = false;
    };
    w.reach.for_each_block<T>([&](const AftBlock& b) {
      const AftBias<const T> bias = w.at(b, in, prepared, m.bias);
      const AftBias<T> dbias = w.gradient_at(b, gradient, dprepared, m.dbias);
      if (!b.has_keys_of(with_F)) undo_F();
      const T* const origin = w.reach.by_products_in<T>() ? make_F(keys, b, means.y, with_F, m) : nullptr;
      if (w.reach.by_products_in<T>() && weigh(bias, b, means, origin, m)) {
        products_backward(bias, b, has_dF ? Update::accumulate : Update::assign, m, dbias.E);
        has_dF = true;
      } else {
        by_keys<T>({keys, b, touched, gradient}, bias.w, means, dbias.w);
        touched = b.last_key();
      }
      if (!w.prepared()) w.make_backward(in.parameters, b, bias, dbias, gradient.parameters);
    });
    undo_F();
  }

 private:
  // Bound on the exponents: products are used if every sum is at least e^-30 exp(max w + max k). A term that underflows
  // in float is then below 1e-38 e^30 = 1e-25 of the sum, and exponents have rounding errors of up to 30 eps.
  static constexpr double furthest = 30;

  // ---- Sums as matrix products ----

  /// Computes F and max k of a block, unless the previous block has the same keys. Returns the origin of v; null
  /// without `means`.
  template <class T>
  static const T* make_F(const Keys<const T>& keys, const AftBlock& b, Matrix<const T> means, AftBlock& with_F,
                         const Scratch<T>& m) {
    const bool made = b.has_keys_of(with_F);
    if (!made) with_F = b;
    const T* const origin = means ? kernels::value_origin(with_F.queries(means)) : nullptr;
    if (!made)
      kernels::exp_of_columns(keys.middle_rows(b.first_key, b.seen), m.max_k.data, m.F.top_rows(b.seen), origin);
    return origin;
  }

  /// Computes the product E F. Returns false if a sum is too small.
  template <class T>
  bool multiply(const AftBias<const T>& bias, const AftBlock& b, const Scratch<T>& m) const {
    const Matrix<T> product = m.product.top_rows(b.rows);
    kernels::gemm(bias.E, m.F.top_rows(b.seen), product);
    return near(product);
  }

  /// Returns true if all sums of exps in a block's product [n, 2 D] are large enough (`furthest`).
  template <class T>
  bool near(Matrix<T> product) const {
    const T least = T(math::exp(-furthest));
    int lost = 0;
    for (Index r = 0; r < product.rows; ++r)
      for (const T *sum = product[r], *const end = sum + w.channels; sum < end; ++sum) lost += *sum >= least ? 0 : 1;
    return lost == 0;
  }

  /// Returns true if no sum of max w and max k is coarse (kernels/sums/exp_sums.h).
  template <class T>
  bool fine(const AftBias<const T>& bias, const Scratch<T>& m) const {
    bool all = true;
    for (Index r = 0; r < bias.max_w.rows; ++r) all &= !kernels::is_coarse(T(2) * bias.max_w(r, 0));
    for (Index c = 0; c < w.channels; ++c) all &= !kernels::is_coarse(T(2) * m.max_k(0, c));
    return all;
  }

  /// Converts the product to sums with the scale max w + max k, and corrects the sums for the scale's rounding error.
  template <class T>
  void take_product(const AftBias<const T>& bias, const Scratch<T>& m, const kernels::ExpSums<T>& sums) const {
    using kernels::exp;
    const T* const max_k = m.max_k.data;
    const auto take = [&](const auto& exponent) {
      for (Index r = 0; r < sums.scale.rows; ++r) {
        const T max_w = bias.max_w(r, 0);
        const T *const E_F = m.product[r], *const E_Fv = E_F + w.channels;
        T *const scale = sums.scale[r], *const mass = sums.mass[r], *const value = sums.value[r];
#pragma GCC ivdep
        for (Index c = 0; c < w.channels; ++c) {
          const T sum = max_w + max_k[c], rest = exp(exponent(max_k[c], max_w, sum));
          scale[c] = sum;
          mass[c] = rest * E_F[c];
          value[c] = rest * E_Fv[c];
        }
      }
    };
    if (fine(bias, m))
      take([](T k, T w, T sum) { return kernels::relative_exponent(k, w, sum, false); });
    else
      take([](T k, T w, T sum) { return kernels::relative_exponent(k, w, sum); });
  }

  /// Replaces the product by (-X y, X). Returns false if the exponents are too far apart. If exponents are coarse,
  /// repeats the forward pass's test, that all sums are large enough, on the recomputed product.
  template <class T>
  bool weigh(const AftBias<const T>& bias, const AftBlock& b, const Means<T>& means, const T* origin,
             const Scratch<T>& m) const {
    using kernels::exp;
    const T* const max_k = m.max_k.data;
    if (!fine(bias, m) && !multiply(bias, b, m)) return false;
    int far = 0;
    for (Index r = 0; r < b.rows && far == 0; ++r) {
      const T max_w = bias.max_w(r, 0);
      const T *const scale = means.scale[b.first + r], *const G = means.G[b.first + r], *const y = means.y[b.first + r];
      T *const minus_Xy = m.product[r], *const X = minus_Xy + w.channels;
#pragma GCC ivdep
      for (Index c = 0; c < w.channels; ++c) {
        const T exponent = kernels::relative_exponent(max_k[c], max_w, scale[c]), x = exp(exponent) * G[c];
        far += exponent <= T(furthest) ? 0 : 1;
        X[c] = x;
        minus_Xy[c] = -x * (y[c] - origin[c]);
      }
    }
    return far == 0;
  }

  /// Keys of a block, and their gradients.
  template <class T>
  struct BlockKeys {
    const Keys<const T>& keys;
    const AftBlock& b;
    Index touched;  ///< keys before this one already have a gradient
    const AttentionGradient<T>& gradient;
  };

  /// Computes dE += (-X y, X) F^T and, stored in dF, (-B, A) (+)= E^T (-X y, X), where F = (f, f v).
  template <class T>
  static void products_backward(const AftBias<const T>& bias, const AftBlock& b, Update update, const Scratch<T>& m,
                                Matrix<T> dE) {
    const Matrix<T> weights = m.product.top_rows(b.rows);
    kernels::gemm(weights, transposed(m.F.top_rows(b.seen)), Update::accumulate, dE);
    kernels::gemm(transposed(bias.E), weights, update, m.dF.top_rows(b.seen));
  }

  /// Computes dk and dv of F's keys from (-B, A).
  template <class T>
  void F_backward(const BlockKeys<T>& of, const T* origin, const Scratch<T>& m) const {
    const auto& [keys, b, touched, gradient] = of;
    for (Index s = b.first_key; s < b.last_key(); ++s) {
      const Update update = update_of(s, touched, gradient);
      const T *const v = keys.v[s], *const f = m.F[s - b.first_key], *const minus_B = m.dF[s - b.first_key];
      const T* const A = minus_B + w.channels;
      T *const dk = gradient.k[0][s], *const dv = gradient.v[0][s];
#pragma GCC ivdep
      for (Index c = 0; c < w.channels; ++c) {
        write(update, dv[c], f[c] * A[c]);
        write(update, dk[c], f[c] * ((v[c] - origin[c]) * A[c] + minus_B[c]));
      }
    }
  }

  // ---- Sums key by key ----

  template <class T>
  void by_keys(const BlockKeys<T>& of, Matrix<const T> bias, const Means<T>& means, Matrix<T> dw) const {
    const auto& [keys, b, before, gradient] = of;
    Index touched = before;
    const Keys<T> dkeys{gradient.k[0], gradient.v[0]};
    for (Index r = 0; r < b.rows; ++r) {
      const AftReach::Range seen = w.reach(b.first + r);
      const Means<T> mean = means.row(b.first + r);
      for (Index s = seen.first; s < seen.last; ++s)
        kernels::exp_sums_backward(keys.row(s), &bias(r, s - b.first_key), mean, update_of(s, touched, gradient),
                                   dkeys.row(s), &dw(r, s - b.first_key));
      touched = std::max(touched, seen.last);
    }
  }

  /// Returns the update for the gradient of key s: accumulate if it was already written, for an earlier query or
  /// because some query sees s without a bias.
  template <class T>
  Update update_of(Index s, Index touched, const AttentionGradient<T>& gradient) const {
    const bool fresh = s >= touched && s >= w.reach(w.reach.queries - 1).before && s < w.reach(0).after;
    return fresh ? gradient.update : Update::accumulate;
  }
};

}  // namespace heed
