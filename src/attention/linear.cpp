// Linear attention. Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs: Fast autoregressive transformers with
// linear attention", 2020, arXiv:2006.16236v3.
//
//   f(x) = elu(x) + 1                                    element by element, positive          Eq. 7
//   out_i = f(q_i) S / (f(q_i) z + 1e-6)                 [N, e]                                Eq. 5
//   S = sum_j f(k_j) v_j^T,  z = sum_j f(k_j)            [d, e], [d]; causal over j <= i       Eq. 10 and 11
//
// A softmax whose exp(q_i k_j) is replaced by f(q_i) f(k_j): the sums over keys are the same for all queries. Time
// 2 (N + M) d e, and an exponential for each number of q and k.
//
// Differs: the 1e-6 is the authors' code's, the paper has none.
#include "kernel_attention.h"

#include "heed/kernels/elu.h"

namespace heed {

class Linear : public MechanismBase<Linear> {
 public:
  static constexpr const char* mechanism_name = "linear";
  static constexpr const char* summary = "f(q) f(k)^T v with rows divided by their sums, f = elu + 1";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  static std::vector<OptionValues> variants() { return {{}, {{"causal", "true"}}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "linear", .linear = true}}; }

  template <class T>
  KernelSaved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    return kernel(shape).saved(carve);
  }
  template <class T>
  KernelScratch<T> scratch(const AttentionShape& shape, Carver<T>& carve) const {
    return kernel(shape).scratch(carve);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const KernelSaved<T>& saved,
                   const KernelScratch<T>& scratch) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. f(q), f(k)
      features(in.q[h], saved.f[h]);
      features(in.k[h], saved.g[h]);
      // 2. S, z and out
      kernel.head(h, in, saved, scratch).forward(out[h]);
    }
  }

  // Undoing 2: kernel_attention.h. Undoing 1: dx = df(x) f'(x).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const KernelSaved<T>& saved,
                    const KernelScratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 2.
      kernel.head(h, in, saved, scratch).backward(out[h], dout[h], gradient.update, gradient.v[h]);
      // 1.
      features_backward<T>(saved.f[h], scratch.df, gradient.update, gradient.q[h]);
      features_backward<T>(saved.g[h], scratch.dg, gradient.update, gradient.k[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const KernelSaved<T>& saved,
               const KernelScratch<T>& scratch) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      features(in.q[h], saved.f[h]);
      features(in.k[h], saved.g[h]);
      kernel.head(h, in, saved, scratch).make_map(map[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index numbers = (shape.queries + shape.keys) * shape.width;
    Cost cost = kernel(shape).cost();
    cost.forward += kernels::elu_plus_1_forward_counts(numbers);
    cost.backward += kernels::elu_plus_1_backward_counts(numbers);
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  KernelAttention kernel(const AttentionShape& s) const {
    return {
        .heads = s.heads, .N = s.queries, .M = s.keys, .p = s.width, .e = s.value_width, .causal = causal, .eps = 1e-6};
  }

  template <class T>
  static void features(Matrix<const T> x, Matrix<T> f) {
    for (Index i = 0; i < x.rows; ++i) kernels::elu_plus_1_forward(x.columns, x[i], f[i]);
  }
  template <class T>
  static void features_backward(Matrix<const T> f, Matrix<const T> df, Update update, Matrix<T> dx) {
    for (Index i = 0; i < dx.rows; ++i) kernels::elu_plus_1_backward(dx.columns, f[i], df[i], update, dx[i]);
  }
};

template MechanismEntry mechanism_entry<Linear>();

}  // namespace heed
