// Efficient attention. Shen, Zhang, Zhao, Yi, Li, "Efficient Attention: Attention with Linear Complexities", 2018,
// arXiv:1812.01243v10, Section 3.2 with softmax as its normalisation (Eq. 3 and 4).
//
//   qn = softmax(q) over the channels of each token      [N, d]
//   kn = softmax(k) over the tokens of each channel      [M, d]
//   out = qn (kn^T v)                                    [N, e]
//
// Each of the d channels is one map over all tokens, a row of kn^T, by which values are averaged once for all queries;
// a query mixes these averages with weights that add up to one, as do the rows of qn kn^T. Time (N + M) d e products,
// and an exponential for each number of q and k.
#include "kernel_attention.h"

#include "heed/kernels/softmax.h"
#include "heed/kernels/softmax_columns.h"

namespace heed {

class Efficient : public MechanismBase<Efficient> {
 public:
  static constexpr const char* mechanism_name = "efficient";
  static constexpr const char* summary = "softmax of q over channels times softmax of k over tokens, times v";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  template <class Visitor>
  void options(Visitor&) {}

  MechanismTraits traits() const override { return {.cross = true}; }

  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "efficient", .linear = true}}; }

  // qn and kn are the features f and g.
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
    for (Index h = 0; h < in.shape.heads; ++h)
      kernel.head(h, in, saved, scratch).forward(over_channels(in.q[h]), over_tokens(in.k[h]), out[h]);
  }

  // With p = softmax(x), dx = p (dp - sum p dp), by rows for q and by columns for k; all else is undone in
  // kernel_attention.h.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const KernelSaved<T>& saved,
                    const KernelScratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const KernelAttention kernel = this->kernel(in.shape);
    const Update update = gradient.update;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> dq = gradient.q[h], dk = gradient.k[h];
      const auto undo_qn = [update, dq](Index first, Matrix<T> qn, Matrix<T> dqn) {
        kernels::attention_softmax_backward({1.0}, qn, dqn);
        for (Index i = 0; i < qn.rows; ++i)
          for (Index c = 0; c < qn.columns; ++c) write(update, dq(first + i, c), dqn(i, c));
      };
      const auto undo_kn = [update, dk](Index, Matrix<T> kn, Matrix<T> dkn) {
        kernels::softmax_columns_backward(kn, dkn, update, dk);
      };
      kernel.head(h, in, saved, scratch).backward(out[h], dout[h], update, undo_qn, undo_kn, gradient.v[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const KernelSaved<T>& saved,
               const KernelScratch<T>& scratch) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h)
      kernel.head(h, in, saved, scratch).make_map(over_channels(in.q[h]), over_tokens(in.k[h]), map[h]);
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost = kernel(shape).cost();
    cost.forward += kernels::softmax_counts(N, N * d) + kernels::softmax_columns_counts(M, d);
    cost.backward +=
        kernels::attention_softmax_backward_counts(N, N * d) + kernels::softmax_columns_backward_counts(M, d);
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  KernelAttention kernel(const AttentionShape& s) const {
    return {.heads = s.heads,
            .N = s.queries,
            .M = s.keys,
            .p = s.width,
            .e = s.value_width,
            .normalised = false,
            .keys_together = true};
  }

  /// Make rows of qn, and all of kn.
  template <class T>
  static auto over_channels(Matrix<const T> q) {
    return [q](Index first, Matrix<T> qn) {
      for (Index i = 0; i < qn.rows; ++i) std::copy_n(q[first + i], qn.columns, qn[i]);
      kernels::softmax_rows(qn);
    };
  }
  template <class T>
  static auto over_tokens(Matrix<const T> k) {
    return [k](Index, Matrix<T> kn) { kernels::softmax_columns(k, kn); };
  }
};

template MechanismEntry mechanism_entry<Efficient>();

}  // namespace heed
