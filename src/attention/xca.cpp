// XCA, cross-covariance attention. El-Nouby, Touvron, Caron, Bojanowski, Douze, Joulin, Laptev, Neverova, Synnaeve,
// Verbeek, Jegou, "XCiT: Cross-Covariance Image Transformers", 2021, arXiv:2106.09681v2, Section 3.2.
//
// Attention among channels instead of tokens: a channel is a vector of N elements, one of each token.
//
//   qn = q / |q|_2,  kn = k / |k|_2      [N, d], channel by channel over the tokens of one head
//   S = qn^T kn                          [d, d], cosines between channels of q and of k
//   A = softmax(tau S)                   row by row; tau is trained, one for each head
//   out = v A^T                          [N, d]: channel a of out is a mean of v's channels, weighted by row a of A
//
// Time 4 N d^2 and d^2 exps (for any N): linear in the tokens.
//
// Differs from the paper, which divides S by tau: here, as in the authors' code, S is multiplied by tau. A norm below
// 1e-12 is replaced by 1e-12, as in that code. There is no causal form: the norms are over all tokens.
#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/sums/normalize.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

class Xca : public MechanismBase<Xca>, public WithMap<Xca> {
 public:
  static constexpr const char* mechanism_name = "xca";
  static constexpr const char* summary =
      "v softmax(tau q^T k)^T among channels, each divided by its norm over the tokens";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d + d^2)";

  template <class Visitor>
  void options(Visitor&) {}

  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "xca", .linear = true}}; }

  MapTraits map_traits() const override { return {.axes = MapAxes::channels}; }

  void check(const AttentionShape& shape) const override {
    require(
        shape.queries == shape.keys,
        "[xca] there are {} queries and {} keys; the numbers must be equal, since channels are compared token by token",
        shape.queries, shape.keys);
    require(shape.width == shape.value_width, "[xca] k has {} channels, v {}; they must match", shape.width,
            shape.value_width);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return {{"temperature", {shape.heads}, Initial::constant(1), false}};
  }

  // Saved: qn and kn, for undoing 2 and 1; the norms of q and k, for undoing 1; S, for the gradient of tau; A, for
  // undoing 4 and 3.
  template <class T>
  struct Saved {
    Heads<T> qn, kn;  ///< [N, d]
    Heads<T> norms;   ///< [2, d]: of q, of k
    Heads<T> S, A;    ///< [d, d]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    const Index H = shape.heads;
    return {lay_out_heads(H, N, d, layout), lay_out_heads(H, N, d, layout), lay_out_heads(H, 2, d, layout),
            lay_out_heads(H, d, d, layout), lay_out_heads(H, d, d, layout)};
  }

  // Scratch: the gradient of A, overwritten by that of S, and the gradient of qn, then of kn.
  template <class T>
  struct Scratch {
    Matrix<T> dA, dxn;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {layout.matrix(shape.width, shape.width), layout.matrix(shape.queries, shape.width)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. to 3.
      make_map(in, h, saved, saved.A[h]);
      // 4. out = v A^T
      kernels::gemm(in.v[h], transposed(saved.A[h]), out[h]);
    }
  }

  // Undoing 4: dv = dout A, dA = dout^T v.
  // Undoing 3: dS' = A (dA - sum_b A dA), row by row, is the gradient of S' = tau S, hence
  //            dtau = sum_ab dS'_ab S_ab,  dS = tau dS'.
  // Undoing 2: dqn = kn dS^T, dkn = qn dS.
  // Undoing 1: dx = (dxn - xn <xn, dxn>) / |x|, channel by channel (kernels/sums/normalize.h).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> qn = saved.qn[h], kn = saved.kn[h], A = saved.A[h], dout = douts[h];
      const Matrix<T> dA = scratch.dA, dS = dA, dxn = scratch.dxn;
      // 4.
      kernels::gemm(dout, A, gradient.update, gradient.v[h]);
      kernels::gemm(transposed(dout), in.v[h], dA);
      // 3. overwrites dA
      kernels::attention_softmax_backward({1.0}, A, dS);
      T dtau;
      kernels::row_dots(dS.joined(), saved.S[h].joined(), &dtau);
      gradient.parameters[0][h] += dtau;
      const T tau = in.parameters[0][h];
      for (T *x = dS.data, *const end = x + dS.size(); x < end; ++x) *x *= tau;
      // 2. and 1.
      const T *const q_norms = saved.norms[h][0], *const k_norms = saved.norms[h][1];
      kernels::gemm(kn, transposed(dS), dxn);
      kernels::normalize_channels_backward(norm, {in.q[h], qn, q_norms}, dxn, gradient.update, gradient.q[h]);
      kernels::gemm(qn, dS, dxn);
      kernels::normalize_channels_backward(norm, {in.k[h], kn, k_norms}, dxn, gradient.update, gradient.k[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) make_map(in, h, saved, map[h]);
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index N = shape.queries, d = shape.width;
    const Counts product = product_counts(d, d, N), back = product_counts(N, d, d);
    Cost cost;
    // Forward: 1. qn and kn; 2. S; 3. A; 4. out.
    cost.forward = 2 * kernels::normalize_channels_counts(norm, N, d) + product +
                   kernels::attention_softmax_counts(d, d * d) + back;
    // Backward: 4. dv and dA; 3. dS', dtau, dS; 2. dqn and dkn; 1.
    cost.backward = back + product + kernels::attention_softmax_backward_counts(d, d * d) +
                    kernels::row_dots_counts(1, d * d) + Counts{.mul = d * d, .add = 1} + 2 * back +
                    2 * kernels::normalize_channels_backward_counts(norm, N, d);
    cost.forward_contractions = 2 * product_contractions(N, d, d);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.left_out = 2 * product_contractions(N, d, 1);  // norms
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  static constexpr ChannelNorm norm = ChannelNorm::l2;

  template <class T>
  void make_map(const AttentionInput<T>& in, Index h, const Saved<T>& saved, Matrix<T> A) const {
    // 1. the norm of each channel, and qn = q / norm, kn = k / norm
    kernels::normalize_channels(norm, in.q[h], saved.qn[h], saved.norms[h][0]);
    kernels::normalize_channels(norm, in.k[h], saved.kn[h], saved.norms[h][1]);
    // 2. S = qn^T kn
    const Matrix<T> S = saved.S[h];
    kernels::gemm(transposed(saved.qn[h]), saved.kn[h], S);
    // 3. A = softmax(tau S)
    for (Index a = 0; a < S.rows; ++a) std::copy_n(S[a], S.columns, A[a]);
    kernels::attention_softmax({static_cast<double>(in.parameters[0][h])}, A);
  }
};

template MechanismEntry mechanism_entry<Xca>();

}  // namespace heed
