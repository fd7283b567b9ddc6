#include "conv.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/elements/gate.h"

namespace heed {

namespace {

/// Each row divided by its mass; `to` may be `from`.
template <class T>
void divide_rows(Matrix<const T> from, Matrix<const T> mass, Matrix<T> to) {
  for (Index t = 0; t < from.rows; ++t) {
    const T divisor = mass(t, 0);
    const T* const x = from[t];
    T* const y = to[t];
    for (Index c = 0; c < from.columns; ++c) y[c] = x[c] / divisor;
  }
}
Counts divide_rows_counts(Index rows, Index n) { return rows * n * Counts{.div = 1}; }

/// exp(k + scale). A key weighs no more than all, so it is at most 1, or exp(32) where one scale serves all cells. Both
/// are rounded, which where they are coarse exp would not bear.
template <class T>
T weight(T k, T scale) {
  using kernels::exp;
  const T exponent = k + scale;
  return exp(kernels::is_coarse(k) && exponent > T(0) ? T(0) : exponent);
}

/// dv (+)= e A,  dk (+)= e (<A, v> - B),  e = exp(k + scale), of the sums exp(scale) (B, A) at the keys.
template <class T>
void at_keys(Matrix<const T> k, const kernels::ExpSums<T>& sums, Matrix<const T> A_v, Update update, Matrix<T> dk,
             Matrix<T> dv) {
  for (Index s = 0; s < k.rows; ++s) {
    const T e = weight(k(s, 0), sums.scale(s, 0));
    for (Index c = 0; c < dv.columns; ++c) write(update, dv(s, c), e * sums.value(s, c));
    write(update, dk(s, 0), e * (A_v(s, 0) - sums.mass(s, 0)));
  }
}
Counts at_keys_counts(Index keys, Index n) { return keys * Counts{.mul = n + 1, .add = 2, .exp = 1}; }

/// dots[r] = <a[r], b[r] - origin>
template <class T>
void dots(MatrixFor<T> a, MatrixFor<T> b, const T* origin, Matrix<T> dots) {
  if (!origin) return kernels::row_dots(a, b, dots.data);
  constexpr Index most = 64;
  kernels::RowTriple<T> rows[most];
  for (Index first = 0; first < a.rows; first += most) {
    const Index count = std::min(most, a.rows - first);
    for (Index r = 0; r < count; ++r) rows[r] = {a[first + r], b[first + r], origin};
    kernels::row_dots_of_differences(count, a.columns, rows, &dots(first, 0));
  }
}

template <class T>
kernels::ExpSums<const T> keys(const AttentionInput<T>& in, Index h) {
  return {in.k[h], {}, in.v[h]};
}

}  // namespace

template <class T>
void AftConv::run_forward(const AttentionInput<T>& in, Heads<T> outs, const Bias<const T>& bias, const Saved<T>& saved,
                          const Scratch<T>& scratch) const {
  for (Index h = 0; h < in.shape.heads; ++h) {
    const Matrix<T> mass = saved.mass[h], y = saved.y[h], out = outs[h];
    const kernels::ExpSums<T> sums{saved.scale[h], mass, y};
    // 2. the sums of each query
    kernels::neighbourhood_sums(grid(in.shape), keys(in, h), bias.used[h], false, scratch.sums, sums);
    // Some rows at a time, which are in cache from one step to the next.
    constexpr Index at_once = 16;
    for (Index first = 0; first < y.rows; first += at_once) {
      const auto rows = [=](const auto& m) { return m.middle_rows(first, std::min(at_once, y.rows - first)); };
      // 3. y = value / mass
      divide_rows<T>(rows(sums.value), rows(mass), rows(y));
      // 4. out = sigma(q) y
      if (query)
        kernels::gate_forward(rows(in.q[h]), rows(y), rows(out));
      else
        for (Index t = first; t < std::min(first + at_once, y.rows); ++t) std::copy_n(y[t], y.columns, out[t]);
    }
  }
}

// With p[t,s] = f e^k[s] / den[t], the weight of key s, G = dy / den [N, d] and b = <G, y> [N]:
// Undoing 4: dy = sigma(q) dout, dq = sigma'(q) y dout.
// Undoing 3, 2: y is a weighted mean, so dv[s] = sum_t p dy[t] and the exponent x = k + w' has
//     dx[t,s] = p <dy[t], v[s] - y[t]> = f e^(k[s] - scale[t]) <G[t], v[s] - y[t]>.
//   So with the sums over queries (B, A)[s] = sum_t f e^-scale[t] (b[t], G[t]), over the same window seen from the
//   key,
//     dv[s] = e^k[s] A[s],   dk[s] = e^k[s] (<A[s], v[s]> - B[s]),   dw'[place] = sum of dx over the pairs there,
//   where y in b and v in dk are measured from the same origin.
template <class T>
void AftConv::run_backward(const AttentionInput<T>& in, Heads<const T> douts, const Bias<const T>& bias,
                           const Saved<T>& saved, const Scratch<T>& scratch, const AttentionGradient<T>& gradient,
                           const Bias<T>& dbias) const {
  const kernels::Neighbourhood g = grid(in.shape);
  const Index N = in.shape.queries, d = in.shape.value_width;
  const Matrix<T> minus_scale = scratch.queries.scale, b = scratch.queries.mass, G = scratch.queries.value;
  const Matrix<T> A = scratch.keys.value, dy = G;
  for (Index h = 0; h < in.shape.heads; ++h) {
    const Matrix<const T> scale = saved.scale[h], mass = saved.mass[h], y = saved.y[h];
    const Matrix<const T> k = in.k[h], v = in.v[h], dout = douts[h];
    const Matrix<T> dq = gradient.q[h], dk = gradient.k[h], dv = gradient.v[h];
    // 4.
    if (query) {
      kernels::gate_backward(in.q[h], y, dout, gradient.update, dq, dy);
    } else {
      for (Index t = 0; t < N; ++t) std::copy_n(dout[t], d, dy[t]);
      if (gradient.update == Update::assign) fill(dq, T(0));
    }
    // 3.
    divide_rows<T>(dy, mass, G);
    for (Index t = 0; t < N; ++t) minus_scale(t, 0) = -scale(t, 0);
    const T* const origin = kernels::value_origin<T>(y);
    dots(G, y, origin, b);
    // 2.
    kernels::neighbourhood_sums(g, scratch.queries, bias.used[h], true, scratch.sums, scratch.keys);
    const Matrix<T> A_v = b;  // <A[s], v[s]>
    dots(A, v, origin, A_v);
    at_keys<T>(k, scratch.keys, A_v, gradient.update, dk, dv);
    kernels::neighbourhood_bias_gradient(g, keys(in, h), bias.used[h], {scale, y, G}, dbias.used[h]);
  }
}

Cost AftConv::cost(const AttentionShape& s) const {
  const Index N = s.queries, d = s.value_width, gated = query ? N * d : 0;
  const kernels::Neighbourhood g = grid(s);
  Cost cost;
  // Forward: 2. sums; 3. y; 4. gate.
  cost.forward =
      kernels::neighbourhood_sums_counts(g, d, false) + divide_rows_counts(N, d) + kernels::gate_forward_counts(gated);
  // Backward: 4.; 3. with b; 2. sums, <A, v>, dv and dk, dw'.
  cost.backward = kernels::gate_backward_counts(gated, Update::assign) + divide_rows_counts(N, d) +
                  kernels::row_dots_counts(N, d) + kernels::neighbourhood_sums_counts(g, d, true) +
                  kernels::row_dots_counts(N, d) + at_keys_counts(N, d) +
                  kernels::neighbourhood_bias_gradient_counts(g, d);
  cost.forward_contractions = kernels::neighbourhood_sums_contractions(g, d, false);
  cost.backward_contractions =
      kernels::neighbourhood_sums_contractions(g, d, true) + kernels::neighbourhood_bias_gradient_contractions(g, d);
  cost.attention_exp = cost.forward.exp - gated;  // without the gate's
  return s.heads * cost;
}

#define INSTANTIATE(T)                                                                                                 \
  template void AftConv::run_forward(const AttentionInput<T>&, Heads<T>, const Bias<const T>&, const Saved<T>&,        \
                                     const Scratch<T>&) const;                                                         \
  template void AftConv::run_backward(const AttentionInput<T>&, Heads<const T>, const Bias<const T>&, const Saved<T>&, \
                                      const Scratch<T>&, const AttentionGradient<T>&, const Bias<T>&) const;
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
