// Efficient attention. Shen, Zhang, Zhao, Yi, Li, "Efficient Attention: Attention with Linear Complexities", 2018,
// arXiv:1812.01243v10, Section 3.2 with softmax as its normalisation (Eq. 3 and 4).
//
//   qn = softmax(q) over the channels of each token      [N, d]
//   kn = softmax(k) over the tokens of each channel      [M, d]
//   out = qn (kn^T v)                                    [N, e]
//
// Each of the d rows of kn^T holds weights of all tokens, with which the values are averaged once for all queries. A
// query mixes these averages with weights that sum to one, so the rows of qn kn^T sum to one, too. qn and kn are
// features; their products are in kernel_attention.cpp, forward and backward. Time 2 (N + M) d e, and an exp per
// element of q and k.
#include "src/attention/shared/kernel_attention.h"

#include "heed/kernels/rows/softmax.h"
#include "heed/kernels/sums/softmax_columns.h"

namespace heed {

namespace {

/// qn and kn are the features f and g; kn is computed for all keys at once.
template <class T>
struct SoftmaxFeatures final : KernelFeatures<T> {
  using typename KernelFeatures<T>::Side;

  void make(Side side, Index, Matrix<const T> x, Matrix<T> p) const override {
    if (side == KernelFeatures<T>::keys) return kernels::softmax_columns(x, p);
    for (Index i = 0; i < p.rows; ++i) std::copy_n(x[i], p.columns, p[i]);
    kernels::softmax_rows(p);
  }
  // Computes dx = p (dp - sum p dp) for p = softmax(x), by rows for q and by columns for k.
  void undo(Side side, Index, Matrix<const T>, Matrix<T> p, Matrix<T> dp, Update update, Matrix<T> dx) const override {
    if (side == KernelFeatures<T>::keys) return kernels::softmax_columns_backward(p, dp, update, dx);
    kernels::attention_softmax_backward({1.0}, p, dp);
    for (Index i = 0; i < p.rows; ++i)
      for (Index c = 0; c < p.columns; ++c) write(update, dx(i, c), dp(i, c));
  }
};

}  // namespace

class Efficient : public KernelMechanism<Efficient> {
 public:
  static constexpr const char* mechanism_name = "efficient";
  static constexpr const char* summary = "softmax of q over channels times softmax of k over tokens, times v";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  template <class Visitor>
  void options(Visitor&) {}

  MechanismTraits traits() const override { return {.cross = true, .independent_heads = true}; }

  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "efficient", .linear = true}}; }

  template <class T>
  SoftmaxFeatures<T> features(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  KernelAttention kernel(const AttentionShape& s) const {
    return {.heads = s.heads,
            .N = s.queries,
            .M = s.keys,
            .p = s.width,
            .e = s.value_width,
            .normalised = false,
            .keys_together = true};
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost = kernel(shape).cost(kernels::softmax_counts(N, N * d), kernels::softmax_columns_counts(M, d));
    cost.backward +=
        kernels::attention_softmax_backward_counts(N, N * d) + kernels::softmax_columns_backward_counts(M, d);
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<Efficient>();

}  // namespace heed
