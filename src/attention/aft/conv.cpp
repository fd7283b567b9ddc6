// Part of AFT (aft.cpp): conv, whose position biases depend only on the relative position of query and key on the grid.
//
// Per head: q, v [N, d], k [N, 1], w [s, s] (one element per position in the window around a query; [s] with dims=1),
// gain and bias, one element each.
//
//   w'   = gain (w - mean w) / sqrt(mean (w - mean w)^2 + 1e-5) + bias                      Eq. 8
//   out  = sigma(q) (sum_s f e^k[s] v[s]) / (sum_s f e^k[s])                                Eq. 6
//          f = exp(w'[position of s relative to t]) in the window around t, 1 outside (0 with `masked`)
//
// Differences from the paper: its Eq. 6 has K instead of exp(K) in the denominator. It adds a sum over the window, with
// the factor exp(w') - 1, to a sum over the whole image; where w' < 0, the two cancel. Here one sum is over the window
// and the other over the keys outside it (kernels/grids/neighbourhood.h). The paper's Eq. 8 has no epsilon.
//
// Sparser variants (Appendix), and the computation of w', are in conv_bias.h.
#include "conv_bias.h"
#include "options.h"
#include "pictures.h"

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/elements/gate.h"
#include "heed/kernels/grids/neighbourhood.h"

#include <limits>

namespace heed {

namespace {

/// Divides each row by its mass; `to` may be `from`.
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

/// Returns exp(k + scale). One key's weight is at most the sum of all weights, so the result is at most 1, or exp(32)
/// if all cells share one scale (kernels/grids/neighbourhood.h). With a coarse k (kernels/sums/exp_sums.h), rounding
/// errors could make exp overflow, so positive exponents are replaced by 0.
template <class T>
T weight(T k, T scale) {
  using kernels::exp;
  const T exponent = k + scale;
  return exp(kernels::is_coarse(k) && exponent > T(0) ? T(0) : exponent);
}

/// Computes dv (+)= e A,  dk (+)= e (<A, v> - B),  e = exp(k + scale), from the sums exp(scale) (B, A) at the keys.
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

/// Computes dots[r] = <a[r], b[r] - origin>.
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

class AftConv : public MechanismBase<AftConv>,
                public WithPreparation<AftConv>,
                public WithPenalty<AftConv>,
                public PicturesCapability {
 public:
  static constexpr const char* mechanism_name = "aft";

  explicit AftConv(const AftOptions& options) : options_(options) {}

  MechanismTraits traits() const override { return {.qk_norm = false}; }
  AttentionLayout layout(Index dim, Index heads) const override { return {heads, dim / heads, 1, dim / heads}; }
  void check(const AttentionShape& shape) const override { options_.check(shape); }
  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    const auto w = tensors.find("w");
    if (w != tensors.end() && w->second.rank() == options_.dims + 1) options_.size = w->second[1];
  }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    if (!options_.reparam) return {{"w", w_shape(s), Initial::normal(1)}};
    return {{"w", w_shape(s), Initial::normal(1)},
            {"gain", {s.heads}, Initial::constant(0), false},
            {"bias", {s.heads}, Initial::constant(0), false}};
  }

  // Prepared: the biases of all heads.
  template <class T>
  using Bias = AftConvBias::Memory<T>;
  template <class T>
  Bias<T> prepared(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return biases().memory(s.heads, layout);
  }

  // Saved for each head: scale and mass of the sums of each query, from which the weights are recomputed, and y.
  template <class T>
  struct Saved {
    Heads<T> scale, mass, y;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, s.queries, 1, layout), lay_out_heads(s.heads, s.queries, 1, layout),
            lay_out_heads(s.heads, s.queries, s.value_width, layout)};
  }

  // Scratch: memory for the sums; for the gradients of a head, sums per query and per key.
  template <class T>
  struct Scratch {
    kernels::NeighbourhoodScratch<T> sums;
    kernels::ExpSums<T> queries, keys;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const auto sums = [&] { return kernels::lay_out_exp_sums(s.queries, 1, s.value_width, layout); };
    return {kernels::lay_out_neighbourhood(grid(s), s.value_width, layout), sums(), sums()};
  }

  Shape noise(const AttentionShape& s) const override {
    return options_.sparsity == AftOptions::Sparsity::gumbel ? w_shape(s) : Shape{0};
  }
  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, const Bias<T>& bias) const {
    // 1. w' of all heads
    for (Index h = 0; h < of.shape.heads; ++h) biases().make(of, h, bias);
  }
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, const Bias<T>& bias, const Bias<T>& dbias,
                            std::span<const View<T>> gradient) const {
    for (Index h = 0; h < of.shape.heads; ++h) biases().make_backward<T>(of, h, bias, dbias.used[h], gradient);
  }

  Cost preparation_cost(const AttentionShape& s) const override { return biases().cost(s.heads); }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const Bias<const T> bias = prepared_of(in.shape, in.prepared);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> mass = saved.mass[h], y = saved.y[h], out = outs[h];
      const kernels::ExpSums<T> sums{saved.scale[h], mass, y};
      // 2. the sums of each query
      kernels::neighbourhood_sums(grid(in.shape), keys(in, h), bias.used[h], false, scratch.sums, sums);
      // Processes a few rows at a time, which stay in the cache from one step to the next.
      constexpr Index at_once = 16;
      for (Index first = 0; first < y.rows; first += at_once) {
        const auto rows = [=](const auto& m) { return m.middle_rows(first, std::min(at_once, y.rows - first)); };
        // 3. y = value / mass
        divide_rows<T>(rows(sums.value), rows(mass), rows(y));
        // 4. out = sigma(q) y
        if (options_.query)
          kernels::gate_forward(rows(in.q[h]), rows(y), rows(out));
        else
          for (Index t = first; t < std::min(first + at_once, y.rows); ++t) std::copy_n(y[t], y.columns, out[t]);
      }
    }
  }

  // With p[t,s] = f e^k[s] / den[t], the weight of key s, den = e^scale mass, G = dy / mass [N, d] and b = <G, y> [N]:
  // Undoing 4: dy = sigma(q) dout, dq = sigma'(q) y dout.
  // Undoing 3, 2: y is a weighted mean, so dv[s] = sum_t p dy[t] and the exponent x = k + w' has
  //     dx[t,s] = p <dy[t], v[s] - y[t]> = f e^(k[s] - scale[t]) <G[t], v[s] - y[t]>.
  //   With the sums over queries (B, A)[s] = sum_t f e^-scale[t] (b[t], G[t]), over the mirrored window around key s,
  //     dv[s] = e^k[s] A[s],   dk[s] = e^k[s] (<A[s], v[s]> - B[s]),   dw'[position] = sum of dx over its pairs,
  //   where y in b and v in dk are relative to the same origin.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const Bias<const T> bias = prepared_of(in.shape, in.prepared);
    const Bias<T> dbias = prepared_of(in.shape, gradient.prepared);
    const kernels::Neighbourhood g = grid(in.shape);
    const Index N = in.shape.queries, d = in.shape.value_width;
    const Matrix<T> minus_scale = scratch.queries.scale, b = scratch.queries.mass, G = scratch.queries.value;
    const Matrix<T> A = scratch.keys.value, dy = G;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> scale = saved.scale[h], mass = saved.mass[h], y = saved.y[h];
      const Matrix<const T> k = in.k[h], v = in.v[h], dout = douts[h];
      const Matrix<T> dq = gradient.q[h], dk = gradient.k[h], dv = gradient.v[h];
      // 4.
      if (options_.query) {
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

  Cost cost(const AttentionShape& s) const override {
    const Index N = s.queries, d = s.value_width, gated = options_.query ? N * d : 0;
    const kernels::Neighbourhood g = grid(s);
    Cost cost;
    // Forward: 2. sums; 3. y; 4. gate.
    cost.forward = kernels::neighbourhood_sums_counts(g, d, false) + divide_rows_counts(N, d) +
                   kernels::gate_forward_counts(gated);
    // Backward: 4.; 3. with b; 2. sums, <A, v>, dv and dk, dw'.
    cost.backward = kernels::gate_backward_counts(gated, Update::assign) + divide_rows_counts(N, d) +
                    kernels::row_dots_counts(N, d) + kernels::neighbourhood_sums_counts(g, d, true) +
                    kernels::row_dots_counts(N, d) + at_keys_counts(N, d) +
                    kernels::neighbourhood_bias_gradient_counts(g, d);
    cost.forward_contractions = kernels::neighbourhood_sums_contractions(g, d, false);
    cost.backward_contractions =
        kernels::neighbourhood_sums_contractions(g, d, true) + kernels::neighbourhood_bias_gradient_contractions(g, d);
    cost.left_out = {.exp = gated};  // the gate
    cost.bounded = true;             // running sums outside windows need fewer contractions than the textbook's
    cost.attention_exp = cost.forward.exp - gated;
    return s.heads * cost;
  }

  const PenaltyCapability* penalty_term() const override {
    return options_.sparsity == AftOptions::Sparsity::entropy ? this : nullptr;
  }
  template <class T>
  T run_penalty(const AttentionPenalty<T>& call) const {
    return biases().run_penalty(call);
  }
  Cost penalty_cost(const AttentionShape& s) const override { return biases().penalty_cost(s.heads); }

  std::vector<PictureInfo> picture_infos() const override {
    std::vector<PictureInfo> list = AftPictures::infos("head");
    list.push_back({"biases", "AFT's position biases in the window around a query", PictureAxes::matrix});
    return list;
  }
  Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const override {
    const AftPictures pictures{in.k};
    const Bias<const float> bias = prepared_of(in.shape, in.prepared);
    if (name == "keys") return pictures.keys();
    return name == "biases" ? windows(in.shape, bias) : pictures.weights(biases_of_pairs(in.shape, bias));
  }

 private:
  /// Returns the biases of all pairs, [heads, N, N]: outside the windows 0, or -inf if masked.
  Tensor<float> biases_of_pairs(const AttentionShape& s, const Bias<const float>& bias) const {
    const kernels::Neighbourhood cells = grid(s);
    const Index N = cells.cells();
    Tensor<float> pairs(Shape{s.heads, N, N});
    std::fill(pairs.begin(), pairs.end(), options_.masked() ? -std::numeric_limits<float>::infinity() : 0);
    for (Index h = 0; h < s.heads; ++h)
      for (Index t = 0; t < N; ++t) {
        const Index y = t / cells.width, x = t % cells.width;
        const kernels::Neighbourhood::Window near = cells.around(y, x);
        for (Index row = near.top; row < near.bottom; ++row)
          for (Index column = near.left; column < near.right; ++column)
            pairs[(h * N + t) * N + row * cells.width + column] = bias.used(h, cells.place(row - y, column - x));
      }
    return pairs;
  }

  /// Returns the biases of each head as a window, [heads, s, s] or [heads, 1, s].
  Tensor<float> windows(const AttentionShape& s, const Bias<const float>& bias) const {
    Tensor<float> windows(Shape{s.heads, options_.dims == 2 ? options_.size : 1, options_.size});
    for (Index h = 0; h < s.heads; ++h) std::copy_n(bias.used[h], places(), windows.data() + h * places());
    return windows;
  }

  Index places() const { return options_.dims == 2 ? options_.size * options_.size : options_.size; }
  Shape w_shape(const AttentionShape& s) const {
    return options_.dims == 2 ? Shape{s.heads, options_.size, options_.size} : Shape{s.heads, options_.size};
  }
  AftConvBias biases() const {
    return {places(), options_.reparam, options_.sparsity, options_.coefficient, options_.tau};
  }
  kernels::Neighbourhood grid(const AttentionShape& s) const {
    const Index reach = options_.size / 2;
    if (options_.dims == 1) return {1, s.queries, 0, reach, !options_.masked()};
    return {s.grid_height, s.grid_width, reach, reach, !options_.masked()};
  }

  AftOptions options_;
};

std::unique_ptr<Mechanism> make_aft_conv(const AftOptions& options) { return std::make_unique<AftConv>(options); }

}  // namespace heed
