// Shared by mechanisms that decode a sequence token by token: stored keys and values, and sums.
#pragma once

#include "heed/attention/capabilities/decoding.h"
#include "heed/kernels/products/gemm.h"

#include <algorithm>

namespace heed {

/// Lays out rows of the last `room` tokens, for each head; the row of token t is at index t modulo `room`.
template <class T>
Heads<T> kept_rows(Index heads, Index room, Index width, MemoryLayout<T>& layout) {
  return {{layout.numbers(heads * room * width), room, width}, heads, room * width};
}

/// Stores the row of token t.
template <class T>
void keep_row(Heads<const T> row, Index t, const Heads<T>& kept) {
  for (Index h = 0; h < kept.count; ++h) std::copy_n(row[h][0], kept.first.columns, kept[h][t % kept.first.rows]);
}

/// Decodes a token by computing its row of the map, A = to_row(scores), from the stored keys and values of all tokens
/// up to it.
template <class T, class F>
void decode_by_row(const AttentionDecoding<T>& call, const F& to_row) {
  const auto& [in, t, out, state, sums, scratch] = call;
  MemoryLayout<T> layout(state);
  const Heads<T> K = kept_rows(in.shape.heads, in.shape.longest, in.shape.width, layout),
                 V = kept_rows(in.shape.heads, in.shape.longest, in.shape.value_width, layout);
  keep_row(in.k, t, K), keep_row(in.v, t, V);
  const Matrix<T> A(scratch, 1, t + 1);
  for (Index h = 0; h < in.shape.heads; ++h) {
    kernels::gemm(in.q[h], transposed(K[h].top_rows(t + 1)), A);
    to_row(A);
    kernels::gemm(A, V[h].top_rows(t + 1), out[h]);
  }
}
inline AttentionStateSize row_state_size(const AttentionShape& s, Index tokens) {
  return {.state = s.heads * tokens * (s.width + s.value_width), .scratch = s.longest};
}

/// Sums over the tokens so far, where f [m] are the features of a token's key and v [e] is its value:
///   P = sum f v^T  [m, e],   p = sum f  [m]
class StateSums {
 public:
  StateSums(Index m, Index e, MemoryLayout<double>& layout) : P_(layout.matrix(m, e)), p_(layout.numbers(m)) {}

  static Index size(Index m, Index e) { return m * (e + 1); }

  void clear() const {
    fill(P_, 0.0);
    std::fill_n(p_, P_.rows, 0.0);
  }
  void scale(double factor) const {
    for (double *s = P_.data, *const end = s + P_.size(); s < end; ++s) *s *= factor;
    for (Index r = 0; r < P_.rows; ++r) p_[r] *= factor;
  }

  template <class T>
  void add(const T* f, const T* v) const {
    for (Index r = 0; r < P_.rows; ++r) {
      const double weight = f[r];
      double* const sums = P_[r];
      for (Index c = 0; c < P_.columns; ++c) sums[c] += weight * v[c];
      p_[r] += weight;
    }
  }

  /// Computes out [e] = f P. Returns <f, p>.
  template <class T>
  double read(const T* f, T* out) const {
    std::fill_n(out, P_.columns, T(0));
    double sum = 0;
    for (Index r = 0; r < P_.rows; ++r) {
      const double* const sums = P_[r];
      for (Index c = 0; c < P_.columns; ++c) out[c] += static_cast<T>(f[r] * sums[c]);
      sum += f[r] * p_[r];
    }
    return sum;
  }

 private:
  Matrix<double> P_;
  double* p_;
};

}  // namespace heed
