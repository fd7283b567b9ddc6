// Linear attention. Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs: Fast autoregressive transformers with
// linear attention", 2020, arXiv:2006.16236v3.
//
//   f(x) = elu(x) + 1                                    element by element, positive          Eq. 7
//   out_i = f(q_i) S / (f(q_i) z + 1e-6)                 [N, e]                                Eq. 5
//   S = sum_j f(k_j) v_j^T,  z = sum_j f(k_j)            [d, e], [d]; causal over j <= i       Eq. 10 and 11
//
// A softmax with exp(q_i k_j) replaced by f(q_i) f(k_j): the sums over keys are the same for all queries. The products
// of features are in kernel_attention.cpp, forward and backward. Time 2 (N + M) d e, and an exp per element of q and k.
//
// Differs from the paper, which has no 1e-6: it is added as in the authors' code.
#include "src/attention/shared/decoding.h"
#include "src/attention/shared/kernel_attention.h"

#include "heed/kernels/elements/elu.h"

namespace heed {

namespace {

template <class T>
struct EluFeatures final : KernelFeatures<T> {
  using typename KernelFeatures<T>::Side;

  void make(Side, Index, Matrix<const T> x, Matrix<T> f) const override {
    for (Index i = 0; i < f.rows; ++i) kernels::elu_plus_1_forward(f.columns, x[i], f[i]);
  }
  // Computes dx = df f'(x).
  void undo(Side, Index, Matrix<const T>, Matrix<T> f, Matrix<T> df, Update update, Matrix<T> dx) const override {
    for (Index i = 0; i < f.rows; ++i) kernels::elu_plus_1_backward(f.columns, f[i], df[i], update, dx[i]);
  }
};

}  // namespace

class Linear : public KernelMechanism<Linear>, public WithDecoding<Linear> {
 public:
  static constexpr const char* mechanism_name = "linear";
  static constexpr const char* summary = "f(q) f(k)^T v with rows divided by their sums, f = elu + 1";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  MechanismTraits traits() const override { return {.cross = !causal, .independent_heads = true}; }

  static std::vector<OptionValues> variants() { return {{}, {{"causal", "true"}}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "linear", .linear = true}}; }

  template <class T>
  EluFeatures<T> features(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  KernelAttention kernel(const AttentionShape& s) const {
    return {
        .heads = s.heads, .N = s.queries, .M = s.keys, .p = s.width, .e = s.value_width, .causal = causal, .eps = 1e-6};
  }

  // The state is S and z of each head: its size and the time per token do not depend on the position.
  AttentionStateSize state_size(const AttentionShape& s, Index) const override {
    return {.sums = s.heads * StateSums::size(s.width, s.value_width), .scratch = 2 * s.width};
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    const auto& [in, t, out, unused, memory, scratch] = call;
    const Index d = in.shape.width, e = in.shape.value_width;
    MemoryLayout<double> layout(memory);
    T *const f = scratch, *const g = scratch + d;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const StateSums sums(d, e, layout);
      if (t == 0) sums.clear();
      kernels::elu_plus_1_forward(d, in.q[h][0], f);
      kernels::elu_plus_1_forward(d, in.k[h][0], g);
      sums.add(g, in.v[h][0]);
      const double divisor = sums.read(f, out[h][0]) + 1e-6;
      for (Index c = 0; c < e; ++c) out[h](0, c) = static_cast<T>(out[h](0, c) / divisor);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index of_queries = shape.queries * shape.width, of_keys = shape.keys * shape.width;
    Cost cost =
        kernel(shape).cost(kernels::elu_plus_1_forward_counts(of_queries), kernels::elu_plus_1_forward_counts(of_keys));
    cost.backward += kernels::elu_plus_1_backward_counts(of_queries + of_keys);
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<Linear>();

}  // namespace heed
