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
  static constexpr const char* complexity = "not yet";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.cross = true}; }

  // Saved: qn, kn, and the norms of q and k, for undoing 1. Add whatever else your backward pass needs.
  template <class T>
  struct Saved {
    Heads<T> qn, kn;            // [N, d], [M, d]
    Heads<T> q_norms, k_norms;  // [1, d]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, s.queries, s.width, layout), lay_out_heads(s.heads, s.keys, s.width, layout),
            lay_out_heads(s.heads, 1, s.width, layout), lay_out_heads(s.heads, 1, s.width, layout)};
  }

  // Scratch: gradients of qn and kn, for one head. Add whatever else you need.
  template <class T>
  struct Scratch {
    Matrix<T> dqn, dkn;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {layout.matrix(s.queries, s.width), layout.matrix(s.keys, s.width)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>&) const {
    fail("not yet");
  }

  // Write your equations here, in lines like `// Undoing 3: ...`.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    fail("not yet");
  }

  // normalize_counts(tokens, channels) is the cost of normalize; product_counts(m, n, k) that of a product of an m x k
  // and a k x n matrix; product_contractions its cost as counted in papers.
  Cost cost(const AttentionShape& shape) const override {
    [[maybe_unused]] const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    fail("not yet");
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

  /// Computes dx from dxn. Use write(update, dx(i, c), value), which assigns or adds.
  template <class T>
  static void normalize_backward(Matrix<const T> x, Matrix<const T> xn, Matrix<const T> norms, Matrix<const T> dxn,
                                 Update update, Matrix<T> dx) {
    fail("not yet");
  }
};

template MechanismEntry mechanism_entry<MySima>();

}  // namespace heed
