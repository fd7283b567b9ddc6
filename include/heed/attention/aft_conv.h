// AFT-conv: position biases that depend on the relative place of query and key on the image's grid only.
//
// Per head: q, v [N, d], k [N, 1], w [s, s] (one number per place in the window around a query; [s] with dims=1),
// gain and bias, a number each.
//
//   w'   = gain (w - mean w) / sqrt(mean (w - mean w)^2 + 1e-5) + bias                      Eq. 8
//   out  = sigma(q) (sum_s f e^k[s] v[s]) / (sum_s f e^k[s])                                Eq. 6
//          f = exp(w'[place of s seen from t]) in the window around t, 1 outside (0 with `masked`)
//
// Differs: Eq. 6 writes K for exp(K) in the denominator, and sums (exp(w') - 1) over the window and 1 over the whole
// image, which cancels where w' < 0; here the two parts are disjoint (kernels/neighbourhood.h). Eq. 8 prints no
// epsilon.
//
// Sparser variants (Appendix): `entropy` adds coef sum_heads H(softmax(w')) to the training loss; `gumbel` puts w' z in
// the place of w', z a sample softmax((w' + noise) / tau) in training and one-hot at the largest w' in evaluation.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/kernels/gate.h"
#include "heed/kernels/neighbourhood.h"
#include "heed/kernels/softmax.h"

namespace heed {

struct AftConv {
  enum class Sparsity { none, entropy, gumbel };

  Index size = 3, dims = 2;
  bool masked = false, query = true, reparam = true;
  Sparsity sparsity = Sparsity::none;
  double coefficient = 0.001, tau = 0.5;

  static constexpr double epsilon = 1e-5;

  Index places() const { return dims == 2 ? size * size : size; }

  // Saved per head: scale and mass of the sums of each query, which make the weights again, and y for dq and dk.
  Index saved(const AttentionShape& s) const { return s.heads * s.queries * (s.value_width + 2); }

  // The biases on their way from w, and their gradient; the gradients of the sums of a head, as queries and as keys.
  Index scratch(const AttentionShape& s) const {
    return 5 * places() + 3 * s.queries * (s.value_width + 2) +
           kernels::neighbourhood_scratch(grid(s), s.value_width, !masked);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const Index N = in.shape.queries, d = in.shape.value_width;
    for (Index h = 0; h < in.shape.heads; ++h, saved += N * (d + 2)) {
      const kernels::NeighbourSums<T> sums{saved, saved + N, saved + 2 * N};
      // 1. w' of this head
      const Bias<T> bias = make_bias(in, h, scratch);
      // 2. the sums of each query
      kernels::neighbourhood_sums(grid(in.shape), keys(in, h), bias.used, false, !masked, sums, scratch + 5 * places());
      for (Index t = 0; t < N; ++t) {
        // 3. y = value / mass
        T* const y = sums.value + t * d;
        for (Index c = 0; c < d; ++c) y[c] = y[c] / sums.mass[t];
        // 4. out = sigma(q) y
        if (query)
          kernels::gate_forward(d, in.q[h] + t * in.q.row_stride, y, out[h] + t * out.row_stride);
        else
          std::copy(y, y + d, out[h] + t * out.row_stride);
      }
    }
  }

  // With p[t,s] = f e^k[s] / den[t], the weight of key s, G = dy / den [N, d] and b = <G, y> [N]:
  // Undoing 4: dy = sigma(q) dout, dq = sigma'(q) y dout.
  // Undoing 3, 2: y is a weighted mean, so dv[s] = sum_t p dy[t] and the exponent x = k + w' has
  //     dx[t,s] = p <dy[t], v[s] - y[t]> = f e^(k[s] - scale[t]) <G[t], v[s] - y[t]>.
  //   So with the sums over queries (B, A)[s] = sum_t f e^-scale[t] (b[t], G[t]), over the same window seen from the
  //   key,
  //     dv[s] = e^k[s] A[s],   dk[s] = e^k[s] (<A[s], v[s]> - B[s]),   dw'[place] = sum of dx over the pairs there.
  // Undoing 1: see bias_backward.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    using kernels::exp;
    const Index N = in.shape.queries, d = in.shape.value_width;
    T* const memory = scratch + 5 * places();
    T *const negative = memory, *const b = memory + N, *const G = memory + 2 * N;  // G [N, d]
    const kernels::NeighbourSums<T> to_keys{G + N * d, G + N * d + N, G + N * d + 2 * N};
    T* const rest = to_keys.value + N * d;
    for (Index h = 0; h < in.shape.heads; ++h, saved += N * (d + 2)) {
      const T *const scale = saved, *const mass = saved + N, *const y = saved + 2 * N;
      const Bias<T> bias = make_bias(in, h, scratch);
      for (Index t = 0; t < N; ++t) {
        // 4.
        T *const dy = G + t * d, *const dq = gradient.q[h] + t * gradient.q.row_stride;
        const T* const dout_row = dout[h] + t * dout.row_stride;
        if (query) {
          kernels::gate_backward(d, in.q[h] + t * in.q.row_stride, y + t * d, dout_row, gradient.update, dq, dy);
        } else {
          std::copy(dout_row, dout_row + d, dy);
          if (gradient.update == Update::assign) std::fill(dq, dq + d, T(0));
        }
        // 3.
        for (Index c = 0; c < d; ++c) dy[c] = dy[c] / mass[t];
        negative[t] = -scale[t];
      }
      kernels::row_dots(N, d, G, d, y, d, b);
      // 2.
      kernels::neighbourhood_sums(grid(in.shape), {d, negative, 1, b, G, d}, bias.used, true, !masked, to_keys, rest);
      T* const dots = b;  // <A[s], v[s]>
      kernels::row_dots(N, d, to_keys.value, d, in.v[h], in.v.row_stride, dots);
      for (Index s = 0; s < N; ++s) {
        const T* const A = to_keys.value + s * d;
        const T e = exp(in.k[h][s * in.k.row_stride] + to_keys.scale[s]);
        T* const dv = gradient.v[h] + s * gradient.v.row_stride;
        for (Index c = 0; c < d; ++c) write(gradient.update, dv[c], e * A[c]);
        write(gradient.update, gradient.k[h][s * gradient.k.row_stride], e * (dots[s] - to_keys.mass[s]));
      }
      kernels::neighbourhood_bias_gradient(grid(in.shape), keys(in, h), bias.used, scale, y, G, bias.gradient);
      // 1.
      bias_backward(in, h, bias, gradient);
    }
  }

  /// coef sum_heads H(softmax(w')), H(p) = -sum p log p, the entropy (Eq. 9). Adds its gradient times `factor` to
  /// `gradient`, if given:  dH/dw' = -p (log p + H).
  template <class T>
  T run_penalty(const AttentionShape& shape, std::span<const View<const T>> parameters, T factor,
                std::span<const View<T>> gradient, T* scratch) const {
    using std::log;
    const Index P = places();
    const AttentionInput<T> in{.shape = shape, .q = {}, .k = {}, .v = {}, .parameters = parameters};
    T total(0);
    for (Index h = 0; h < shape.heads; ++h) {
      const Bias<T> bias = make_bias(in, h, scratch);
      T *const p = bias.sample, *const log_p = bias.gradient, kept[2]{};
      std::copy(bias.plain, bias.plain + P, p);
      kernels::softmax_rows(1, P, P, p, kept);
      const T log_sum = log(kept[1]);
      for (Index i = 0; i < P; ++i) log_p[i] = (bias.plain[i] - kept[0]) - log_sum;
      T entropy = -p[0] * log_p[0];
      for (Index i = 1; i < P; ++i) entropy -= p[i] * log_p[i];
      total = h == 0 ? entropy : total + entropy;
      if (gradient.empty()) continue;
      for (Index i = 0; i < P; ++i) bias.gradient[i] = -(factor * T(coefficient)) * (p[i] * (log_p[i] + entropy));
      bias_backward(in, h, bias, AttentionGradient<T>{.q = {}, .k = {}, .v = {}, .parameters = gradient});
    }
    return T(coefficient) * total;
  }

  /// Forward: w', softmax, logarithms, entropies, their sum. Backward: all of it again, and the gradient.
  Cost penalty_cost(const AttentionShape& shape) const {
    const Index P = places();
    Cost cost;
    cost.forward =
        shape.heads * (bias_counts() + Counts{.mul = P, .add = 5 * P - 2, .div = P, .exp = P, .log = 1, .cmp = P - 1}) +
        Counts{.mul = 1, .add = shape.heads - 1};
    cost.backward = cost.forward + shape.heads * (P * Counts{.mul = 3, .add = 1} + bias_backward_counts());
    return cost;
  }

  Cost cost(const AttentionShape& s) const {
    const Index N = s.queries, d = s.value_width;
    const kernels::Neighbourhood g = grid(s);
    const kernels::NeighbourPairs pairs = kernels::neighbour_pairs(g, !masked);
    Cost cost;
    // Forward: 1. w'; 2. sums; 3. y; 4. gate.
    cost.forward = bias_counts() + kernels::neighbourhood_counts(g, d, false, !masked) + N * d * Counts{.div = 1} +
                   (query ? N * d : 0) * Counts{.mul = 1, .add = 1, .div = 1, .exp = 1};
    // Backward: w' again; 4.; 3. with b; 2. sums, dv and dk, dw'; 1.
    cost.backward = bias_counts() + (query ? N * d : 0) * Counts{.mul = 3, .add = 2, .div = 1, .exp = 1} +
                    N * (Counts{.mul = d, .add = d - 1, .div = d}) +
                    kernels::neighbourhood_counts(g, d, true, !masked) +
                    N * Counts{.mul = 2 * d + 1, .add = d + 1, .exp = 1} + kernels::neighbourhood_bias_counts(g, d) +
                    bias_backward_counts();
    // Numerator and denominator of each pair in the window, and of each cell for what lies outside; dv, dk and dw.
    const Index outside = pairs.outside > 0 ? N : 0;
    cost.forward_contractions = (pairs.inside + outside) * Counts{.mul = d, .add = d + 1};
    cost.backward_contractions =
        pairs.inside * Counts{.mul = 2 * d + 1, .add = 2 * d + 2} + outside * Counts{.mul = d + 1, .add = d + 1};
    cost.attention_exp = cost.forward.exp - (query ? N * d : 0);  // without the gate's
    return s.heads * cost;
  }

 private:
  kernels::Neighbourhood grid(const AttentionShape& s) const {
    if (dims == 1) return {1, s.queries, 0, size / 2};
    return {s.grid_height, s.grid_width, size / 2, size / 2};
  }

  template <class T>
  static kernels::NeighbourTerms<T> keys(const AttentionInput<T>& in, Index h) {
    return {in.shape.value_width, in.k[h], in.k.row_stride, nullptr, in.v[h], in.v.row_stride};
  }

  /// The biases of a head: w normalised, w', what gumbel multiplies it by, the biases used, and their gradient.
  template <class T>
  struct Bias {
    T *normal, *plain, *sample, *used, *gradient;
    T deviation{};
  };

  template <class T>
  Bias<T> make_bias(const AttentionInput<T>& in, Index h, T* memory) const {
    using std::sqrt;
    const Index P = places();
    const T* const w = in.parameters[0].data() + h * P;
    Bias<T> b{memory, memory + P, memory + 2 * P, memory + 3 * P, memory + 4 * P};
    if (reparam) {
      const T mean = sum(P, [&](Index i) { return w[i]; }) / T(static_cast<double>(P));
      for (Index i = 0; i < P; ++i) b.normal[i] = w[i] - mean;
      const T variance = sum(P, [&](Index i) { return b.normal[i] * b.normal[i]; }) / T(static_cast<double>(P));
      b.deviation = sqrt(variance + T(epsilon));
      for (Index i = 0; i < P; ++i) {
        b.normal[i] = b.normal[i] / b.deviation;
        b.plain[i] = in.parameters[1][h] * b.normal[i] + in.parameters[2][h];
      }
    } else {
      std::copy(w, w + P, b.plain);
    }
    if (sparsity != Sparsity::gumbel) {
      b.used = b.plain;
      return b;
    }
    if (in.training) {
      for (Index i = 0; i < P; ++i) b.sample[i] = (b.plain[i] + in.noise[h * P + i]) / T(tau);
      kernels::softmax_rows(1, P, P, b.sample, static_cast<T*>(nullptr));
    } else {
      Index largest = 0;
      for (Index i = 1; i < P; ++i)
        if (b.plain[i] > b.plain[largest]) largest = i;
      for (Index i = 0; i < P; ++i) b.sample[i] = T(i == largest ? 1 : 0);
    }
    for (Index i = 0; i < P; ++i) b.used[i] = b.sample[i] * b.plain[i];
    return b;
  }

  // b.gradient holds d(loss)/d(used). With z = softmax(l), l = (w' + noise) / tau, used = z w':
  //   dw' = z dused + z (w' dused - sum z w' dused) / tau;   evaluation: z is constant, dw' = z dused.
  // With n = (w - mean) / deviation, w' = gain n + bias:
  //   dgain = sum dw' n,  dbias = sum dw',  dw = gain / deviation (dw' - mean dw' - n mean(dw' n)).
  template <class T>
  void bias_backward(const AttentionInput<T>& in, Index h, const Bias<T>& b,
                     const AttentionGradient<T>& gradient) const {
    const Index P = places();
    T* const dw = gradient.parameters[0].data() + h * P;
    T* const dplain = b.gradient;
    if (sparsity == Sparsity::gumbel && !in.training) {
      for (Index i = 0; i < P; ++i) dplain[i] = b.sample[i] * dplain[i];
    } else if (sparsity == Sparsity::gumbel) {
      const T dot = sum(P, [&](Index i) { return b.used[i] * dplain[i]; });
      for (Index i = 0; i < P; ++i) dplain[i] = b.sample[i] * (dplain[i] + (b.plain[i] * dplain[i] - dot) / T(tau));
    }
    if (!reparam) {
      for (Index i = 0; i < P; ++i) dw[i] += dplain[i];
      return;
    }
    const T dgain = sum(P, [&](Index i) { return dplain[i] * b.normal[i]; });
    const T dbias = sum(P, [&](Index i) { return dplain[i]; });
    gradient.parameters[1][h] += dgain;
    gradient.parameters[2][h] += dbias;
    const T mean = dbias / T(static_cast<double>(P)), along = dgain / T(static_cast<double>(P));
    const T factor = in.parameters[1][h] / b.deviation;
    for (Index i = 0; i < P; ++i) dw[i] += factor * (dplain[i] - mean - b.normal[i] * along);
  }

  /// Sum of n terms.
  template <class F>
  static auto sum(Index n, const F& term) {
    auto total = term(0);
    for (Index i = 1; i < n; ++i) total += term(i);
    return total;
  }

  Counts bias_counts() const {
    const Index P = places();
    Counts counts;
    if (reparam) counts += {.mul = 2 * P, .add = 4 * P - 1, .div = P + 2, .sqrt = 1};
    if (sparsity == Sparsity::gumbel) counts += {.mul = P, .add = 3 * P - 1, .div = 2 * P, .exp = P, .cmp = P - 1};
    return counts;
  }
  Counts bias_backward_counts() const {
    const Index P = places();
    Counts counts = reparam ? Counts{.mul = 3 * P, .add = 5 * P, .div = 3} : Counts{.add = P};
    if (sparsity == Sparsity::gumbel) counts += {.mul = 3 * P, .add = 3 * P - 1, .div = P};
    return counts;
  }
};

}  // namespace heed
