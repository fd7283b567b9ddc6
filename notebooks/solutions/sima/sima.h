// SimA, by hand. Koohpayegani, Pirsiavash, "SimA: Simple Softmax-free Attention for Vision Transformers", 2022,
// arXiv:2206.08898, Section 2.2.
//
//   qn = q / |q|_1,  kn = k / |k|_1      [N, d], [M, d], channel by channel: |x|_1 is the sum of |x| over the tokens
//   out = qn kn^T v                      [N, e]
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

class MySima : public MechanismBase<MySima> {
 public:
  static constexpr const char* mechanism_name = "my_sima";
  static constexpr const char* summary = "q k^T v, each channel of q and k divided by its l1 norm over the tokens";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "my_sima", .linear = true}}; }
  MechanismTraits traits() const override { return {.cross = true}; }

  // Saved: qn, kn, and the norms of q and k, for undoing 1; S, for undoing 3.
  template <class T>
  struct Saved {
    Heads<T> qn, kn;            // [N, d], [M, d]
    Heads<T> q_norms, k_norms;  // [1, d]
    Heads<T> S;                 // [d, e]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, s.queries, s.width, layout), lay_out_heads(s.heads, s.keys, s.width, layout),
            lay_out_heads(s.heads, 1, s.width, layout), lay_out_heads(s.heads, 1, s.width, layout),
            lay_out_heads(s.heads, s.width, s.value_width, layout)};
  }

  // Scratch: gradients of qn, kn and S, for one head.
  template <class T>
  struct Scratch {
    Matrix<T> dqn, dkn, dS;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {layout.matrix(s.queries, s.width), layout.matrix(s.keys, s.width), layout.matrix(s.width, s.value_width)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. qn = q / |q|_1, kn = k / |k|_1
      normalize(in.q[h], saved.qn[h], saved.q_norms[h]);
      normalize(in.k[h], saved.kn[h], saved.k_norms[h]);
      // 2. S = kn^T v
      kernels::gemm(transposed(saved.kn[h]), in.v[h], saved.S[h]);
      // 3. out = qn S
      kernels::gemm(saved.qn[h], saved.S[h], out[h]);
    }
  }

  // Undoing 3: dqn = dout S^T, dS = qn^T dout.
  // Undoing 2: dkn = v dS^T, dv = kn dS.
  // Undoing 1: dx = (dxn - sign(x) <xn, dxn>) / |x|_1, channel by channel, for x = q and k.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 3.
      kernels::gemm(dout[h], transposed(saved.S[h]), scratch.dqn);
      kernels::gemm(transposed(saved.qn[h]), dout[h], scratch.dS);
      // 2.
      kernels::gemm(in.v[h], transposed(scratch.dS), scratch.dkn);
      kernels::gemm(saved.kn[h], scratch.dS, to.update, to.v[h]);
      // 1.
      normalize_backward<T>(in.q[h], saved.qn[h], saved.q_norms[h], scratch.dqn, to.update, to.q[h]);
      normalize_backward<T>(in.k[h], saved.kn[h], saved.k_norms[h], scratch.dkn, to.update, to.k[h]);
    }
  }

  // Forward: 1. norms and divisions; 2. S; 3. out. Backward: 3. dqn and dS; 2. dkn and dv; 1. dq and dk.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward = normalize_counts(N, d) + normalize_counts(M, d) + product_counts(d, e, M) + product_counts(N, e, d);
    cost.backward = product_counts(N, d, e) + product_counts(d, e, N) + product_counts(M, d, e) +
                    product_counts(M, e, d) + normalize_backward_counts(N, d) + normalize_backward_counts(M, d);
    cost.forward_contractions = product_contractions(N + M, d, e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    return shape.heads * cost;
  }

 private:
  /// xn = x / max(|x|_1, 1e-12), channel by channel.
  template <class T>
  static void normalize(Matrix<const T> x, Matrix<T> xn, Matrix<T> norms) {
    using std::abs;
    for (Index c = 0; c < x.columns; ++c) {
      T norm = abs(x(0, c));
      for (Index i = 1; i < x.rows; ++i) norm += abs(x(i, c));
      norms(0, c) = norm > T(1e-12) ? norm : T(1e-12);
      for (Index i = 0; i < x.rows; ++i) xn(i, c) = x(i, c) / norms(0, c);
    }
  }
  /// Per channel: a magnitude for each token, their sum, the comparison with 1e-12, and the divisions.
  static Counts normalize_counts(Index tokens, Index channels) {
    return channels * Counts{.add = tokens - 1, .div = tokens, .cmp = tokens + 1};
  }

  /// Computes dx from dxn. sign(0) counts as 1.
  template <class T>
  static void normalize_backward(Matrix<const T> x, Matrix<const T> xn, Matrix<const T> norms, Matrix<const T> dxn,
                                 Update update, Matrix<T> dx) {
    for (Index c = 0; c < x.columns; ++c) {
      T inner = xn(0, c) * dxn(0, c);
      for (Index i = 1; i < x.rows; ++i) inner += xn(i, c) * dxn(i, c);
      for (Index i = 0; i < x.rows; ++i)
        write(update, dx(i, c), (x(i, c) < T(0) ? dxn(i, c) + inner : dxn(i, c) - inner) / norms(0, c));
    }
  }
  /// Per channel: an inner product, and for each token a sign, a subtraction and a division.
  static Counts normalize_backward_counts(Index tokens, Index channels) {
    return channels * Counts{.mul = tokens, .add = 2 * tokens - 1, .div = tokens, .cmp = tokens};
  }
};

template MechanismEntry mechanism_entry<MySima>();

}  // namespace heed
