// AFT-simple, by hand. Zhai et al., "An Attention Free Transformer", 2021, arXiv:2105.14103, Eq. 5. Everything is
// element-wise, with one head of all d channels:
//
//   y_c = sum_s exp(k_sc) v_sc / sum_s exp(k_sc)      [1, d], a sum over the tokens s
//   out_tc = sigma(q_tc) y_c                          [N, d]
//
// y_c is computed as sum_s p_sc v_sc with p_sc = exp(k_sc - most_c) / sum_s exp(k_sc - most_c), where most_c is the
// largest k of channel c.
#include "heed/attention/mechanism_base.h"

namespace heed {

class MyAft : public MechanismBase<MyAft> {
 public:
  static constexpr const char* mechanism_name = "my_aft";
  static constexpr const char* summary = "sigma(q) times the mean of v weighted by exp(k)";
  static constexpr const char* complexity = "time O(N d), memory O(N d)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "my_aft", .linear = true}}; }
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  void check(const AttentionShape& s) const override {
    require(s.heads == 1, "[my_aft] {} heads; expected one head of all channels", s.heads);
    require(s.width == s.value_width, "[my_aft] q has {} channels, v {}; they must match", s.width, s.value_width);
  }

  // Saved: sigma(q) and y for undoing 3, p for undoing 2 and 1.
  template <class T>
  struct Saved {
    Matrix<T> gate, p, y;  // [N, d], [M, d], [1, d]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {layout.matrix(s.queries, s.width), layout.matrix(s.keys, s.width), layout.matrix(1, s.width)};
  }

  // Scratch: dy.
  template <class T>
  Matrix<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return layout.matrix(1, s.width);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& f, Matrix<T>) const {
    using std::exp;
    const auto [N, M, d, e] = in.shape.sizes();
    const Matrix<const T> q = in.q[0], k = in.k[0], v = in.v[0];
    for (Index c = 0; c < d; ++c) {
      // 1. p
      T most = k(0, c);
      for (Index s = 1; s < M; ++s) most = k(s, c) > most ? k(s, c) : most;
      for (Index s = 0; s < M; ++s) f.p(s, c) = exp(k(s, c) - most);
      T sum = f.p(0, c);
      for (Index s = 1; s < M; ++s) sum += f.p(s, c);
      for (Index s = 0; s < M; ++s) f.p(s, c) = f.p(s, c) / sum;
      // 2. y
      T y = f.p(0, c) * v(0, c);
      for (Index s = 1; s < M; ++s) y += f.p(s, c) * v(s, c);
      f.y(0, c) = y;
      // 3. out = sigma(q) y
      for (Index t = 0; t < N; ++t) {
        f.gate(t, c) = T(1) / (T(1) + exp(-q(t, c)));
        out[0](t, c) = f.gate(t, c) * y;
      }
    }
  }

  // Undoing 3: dy = sum_t sigma(q_t) dout_t, dq_t = sigma(q_t) dout_t y (1 - sigma(q_t)).
  // Undoing 2: dv_s = p_s dy, and dp_s = v_s dy.
  // Undoing 1, a softmax over the tokens: dk_s = p_s (dp_s - sum_r p_r dp_r) = p_s dy (v_s - y).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& f, Matrix<T> dy,
                    const AttentionGradient<T>& to) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Matrix<T> dq = to.q[0], dk = to.k[0], dv = to.v[0];
    for (Index c = 0; c < d; ++c) {
      // 3.
      for (Index t = 0; t < N; ++t) {
        const T gated = f.gate(t, c) * dout[0](t, c);
        write(to.update, dq(t, c), gated * f.y(0, c) * (T(1) - f.gate(t, c)));
        write(t == 0 ? Update::assign : Update::accumulate, dy(0, c), gated);
      }
      // 2. and 1.
      for (Index s = 0; s < M; ++s) {
        const T pdy = f.p(s, c) * dy(0, c);
        write(to.update, dv(s, c), pdy);
        write(to.update, dk(s, c), pdy * (in.v[0](s, c) - f.y(0, c)));
      }
    }
  }

  // Channel by channel. Forward: 1. p; 2. y; 3. out. Backward: 3. dq and dy; 2. and 1. dv and dk.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward = d * (Counts{.add = M + M - 1, .div = M, .exp = M, .cmp = M - 1} + product_counts(1, 1, M) +
                        N * Counts{.mul = 1, .add = 1, .div = 1, .exp = 1});
    cost.backward = d * (Counts{.mul = 3 * N, .add = N + N - 1} + M * Counts{.mul = 2, .add = 1});
    cost.forward_contractions = d * M * Counts{.mul = 1, .add = 2};
    cost.backward_contractions = d * M * Counts{.mul = 2, .add = 2};
    cost.attention_exp = d * M;
    cost.left_out = {.add = -d * M, .exp = d * N};  // denominators; the gate
    return cost;
  }
};

template MechanismEntry mechanism_entry<MyAft>();

}  // namespace heed
