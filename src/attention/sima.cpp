// SimA. Koohpayegani, Pirsiavash, "SimA: Simple Softmax-free Attention for Vision Transformers", 2022,
// arXiv:2206.08898v2, Section 2.2 (whose equations have no numbers).
//
// Softmax makes tokens compete; here, dividing each channel of q and of k by its norm over the tokens has this effect:
//
//   qn = q / |q|_1,  kn = k / |k|_1      [N, d], [M, d], channel by channel over the tokens of one head
//   out = qn kn^T v                      [N, e]
//
// With no function between the products, their order is free: (qn kn^T) v takes 2 N M d multiplications, qn (kn^T v)
// takes (N + M) d^2. If N = M < d, the first order takes fewer; if N = M > d, the second, and kn^T v is then smaller
// than v. No exps.
//
// Differs from the paper, which divides by the norm: here, as in the authors' code, the divisor is max(norm, 1e-12),
// which passes no gradient to a smaller norm. norm=l2 and norm=none are for the paper's ablation. There is no causal
// form: norms are over all tokens.
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/pictures.h"
#include "heed/attention/map_blocks.h"
#include "heed/kernels/sums/normalize.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

class Sima : public MechanismBase<Sima>, public WithMap<Sima>, public PicturesCapability {
 public:
  static constexpr const char* mechanism_name = "sima";
  static constexpr const char* summary = "q k^T v, each channel of q and k divided by its norm over the tokens";
  static constexpr const char* complexity = "time O(N d min(N, d)), memory O(N)";

  enum class Norm { l1, l2, none };
  enum class Order { automatic, qk_first, kv_first };
  Norm norm = Norm::l1;
  Order order = Order::automatic;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("norm", norm, {"l1", "l2", "none"}, "norm that divides each channel of q and k");
    visit("order", order, {"auto", "qk_first", "kv_first"},
          "the product computed first; auto: q k^T if N < d, else k^T v");
  }

  MechanismTraits traits() const override { return {.cross = true, .independent_heads = true}; }

  static std::vector<OptionValues> variants() {
    std::vector<OptionValues> variants;
    for (const char* norm : {"l1", "l2", "none"})
      for (const char* order : {"qk_first", "kv_first"}) variants.push_back({{"norm", norm}, {"order", order}});
    variants.push_back({});
    return variants;
  }

  static std::vector<MechanismSetting> settings() { return {{.label = "sima", .linear = true}}; }

  // Saved: unless norm=none, qn and kn for the products and the division in the backward pass, and the norms for the
  // division; if k^T v is computed first, S = kn^T v for dqn.
  template <class T>
  struct Saved {
    Heads<T> qn, kn;  ///< [N, d], [M, d]
    Heads<T> norms;   ///< [2, d]: of q, of k
    Heads<T> S;       ///< [d, e]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    const bool divided = norm != Norm::none;
    const Index H = shape.heads;
    return {lay_out_heads(H, divided ? N : 0, d, layout), lay_out_heads(H, divided ? M : 0, d, layout),
            lay_out_heads(H, divided ? 2 : 0, d, layout), lay_out_heads(H, kv_first(shape) ? d : 0, e, layout)};
  }

  // Scratch: gradients of qn and kn, and either dS or two blocks of rows: A = qn kn^T, and dA in the backward pass.
  template <class T>
  struct Scratch {
    Matrix<T> dqn, dkn, dS, A, dA;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    const Matrix<T> dqn = layout.matrix(N, d), dkn = layout.matrix(M, d);
    if (kv_first(shape)) return {dqn, dkn, layout.matrix(d, e), {}, {}};
    return {dqn, dkn, {}, lay_out_dense_map_block(shape, M, layout), lay_out_dense_map_block(shape, M, layout)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. the norm of each channel; 2. qn = q / norm, kn = k / norm
      const Matrix<const T> qn = normalize(in.q[h], saved.qn[h], saved.norms[h][0]);
      const Matrix<const T> kn = normalize(in.k[h], saved.kn[h], saved.norms[h][1]);
      if (kv_first(in.shape)) {
        // 3. S = kn^T v
        gemm(transposed(kn), in.v[h], saved.S[h]);
        // 4. out = qn S
        gemm(qn, saved.S[h], out[h]);
        continue;
      }
      MapBlocks<T>(in.shape, false).by_queries([&](const MapBlock& b) {
        const Matrix<T> A = b.dense_map(scratch.A);
        // 3. A = qn kn^T
        gemm(b.queries(qn), transposed(kn), A);
        // 4. out = A v
        gemm(A, in.v[h], b.queries(out[h]));
      });
    }
  }

  // k^T v first: undoing 4, dqn = dout S^T, dS = qn^T dout; undoing 3, dkn = v dS^T, dv = kn dS.
  // q k^T first: undoing 4, dA = dout v^T, dv = A^T dout; undoing 3, dqn = dA kn, dkn = dA^T qn.
  // Undoing 2 and 1, per channel: dx = (dxn - sign(x) <xn, dxn>) / |x|_1, or for l2 (dxn - xn <xn, dxn>) / |x|_2
  // (kernels/sums/normalize.h). With norm=none, the gradients of qn and kn are the gradients of q and k.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const kernels::Gemm gemm{in.products};
    const bool divided = norm != Norm::none;
    const Update update = divided ? Update::assign : gradient.update;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> v = in.v[h];
      const Matrix<const T> qn = divided ? saved.qn[h] : in.q[h], kn = divided ? saved.kn[h] : in.k[h];
      const Matrix<T> dqn = divided ? scratch.dqn : gradient.q[h], dkn = divided ? scratch.dkn : gradient.k[h];
      const Matrix<T> dv = gradient.v[h];
      if (kv_first(in.shape)) {
        const Matrix<T> S = saved.S[h], dS = scratch.dS;
        // 4.
        gemm(dout[h], transposed(S), update, dqn);
        gemm(transposed(qn), dout[h], dS);
        // 3.
        gemm(v, transposed(dS), update, dkn);
        gemm(kn, dS, gradient.update, dv);
      } else {
        MapBlocks<T>(in.shape, false).by_queries([&](const MapBlock& b) {
          const Matrix<T> A = b.dense_map(scratch.A), dA = b.dense_map(scratch.dA);
          // recompute A
          gemm(b.queries(qn), transposed(kn), A);
          // 4.
          gemm(b.queries(dout[h]), transposed(v), dA);
          gemm(transposed(A), b.queries(dout[h]), b.update(gradient.update), dv);
          // 3.
          gemm(dA, kn, update, b.queries(dqn));
          gemm(transposed(dA), b.queries(qn), b.update(update), dkn);
        });
      }
      // 2. and 1.
      if (!divided) continue;
      const T *const q_norms = saved.norms[h][0], *const k_norms = saved.norms[h][1];
      kernels::normalize_channels_backward(channel_norm(), {in.q[h], qn, q_norms}, dqn, gradient.update, gradient.q[h]);
      kernels::normalize_channels_backward(channel_norm(), {in.k[h], kn, k_norms}, dkn, gradient.update, gradient.k[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> qn = normalize(in.q[h], saved.qn[h], saved.norms[h][0]);
      const Matrix<const T> kn = normalize(in.k[h], saved.kn[h], saved.norms[h][1]);
      kernels::Gemm{in.products}(qn, transposed(kn), map[h]);
    }
  }

  // As in the paper's Figures 3 and 4: a token with a long vector has a large weight in qn kn^T.
  std::vector<PictureInfo> picture_infos() const override {
    return {{"queries", "Importance of each query: its norm after channel normalisation", PictureAxes::tokens},
            {"keys", "Importance of each key: its norm after channel normalisation", PictureAxes::tokens}};
  }
  Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const override {
    const Heads<const float>& x = name == "keys" ? in.k : in.q;
    const Index tokens = x.first.rows, d = x.first.columns;
    Tensor<float> lengths(Shape{x.count, tokens}), xn(Shape{tokens, d}), norms(Shape{d});
    for (Index h = 0; h < x.count; ++h) {
      const Matrix<const float> rows = normalize(x[h], Matrix<float>(xn.data(), tokens, d), norms.data());
      kernels::row_dots(rows, rows, lengths.data() + h * tokens);
    }
    for (float& length : lengths) length = std::sqrt(length);
    return lengths;
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    // 1. and 2.
    if (norm != Norm::none) {
      cost.forward = kernels::normalize_channels_counts(channel_norm(), N, d) +
                     kernels::normalize_channels_counts(channel_norm(), M, d);
      cost.backward = kernels::normalize_channels_backward_counts(channel_norm(), N, d) +
                      kernels::normalize_channels_backward_counts(channel_norm(), M, d);
    }
    // Forward: 3. and 4. Backward: if k^T v is first, dqn, dS, dkn, dv; otherwise A recomputed, dA, dv, dqn, dkn.
    if (kv_first(shape)) {
      cost.forward += product_counts(d, e, M) + product_counts(N, e, d);
      cost.backward +=
          product_counts(N, d, e) + product_counts(d, e, N) + product_counts(M, d, e) + product_counts(M, e, d);
      cost.forward_contractions = product_contractions(N + M, d, e);
      cost.backward_contractions = 2 * cost.forward_contractions;
    } else {
      const MapPairs map(shape, false);
      cost.forward += map.scores(d) + map.to_queries(e);
      cost.backward += map.scores(d) + map.scores(e) + map.to_keys(e) + map.to_queries(d) + map.to_keys(d);
      cost.forward_contractions = map.contraction(d + e);
      cost.backward_contractions = 2 * cost.forward_contractions;  // recomputing A is not counted
    }
    if (norm == Norm::l2) cost.left_out = product_contractions(N + M, d, 1);
    return shape.heads * cost;
  }

 private:
  bool kv_first(const AttentionShape& shape) const {
    return order == Order::automatic ? shape.queries >= shape.width : order == Order::kv_first;
  }
  ChannelNorm channel_norm() const { return norm == Norm::l1 ? ChannelNorm::l1 : ChannelNorm::l2; }

  /// Computes qn or kn and returns it; returns x itself for norm=none.
  template <class T>
  Matrix<const T> normalize(Matrix<const T> x, Matrix<T> xn, T* norms) const {
    if (norm == Norm::none) return x;
    kernels::normalize_channels(channel_norm(), x, xn, norms);
    return xn;
  }
};

template MechanismEntry mechanism_entry<Sima>();

}  // namespace heed
