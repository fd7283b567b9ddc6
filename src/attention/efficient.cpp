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
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. qn, kn
      normalise(in, h, saved);
      // 2. S = kn^T v, out = qn S
      kernel.head(h, in, saved, scratch).forward(out[h]);
    }
  }

  // Undoing 2: kernel_attention.h. Undoing 1: with p = softmax(x), dx = p (dp - sum p dp), by rows and by columns.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const KernelSaved<T>& saved,
                    const KernelScratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 2.
      kernel.head(h, in, saved, scratch).backward(out[h], dout[h], gradient.update, gradient.v[h]);
      // 1.
      kernels::attention_softmax_backward({1.0}, saved.f[h], scratch.df);
      const Matrix<T> dq = gradient.q[h];
      for (Index i = 0; i < dq.rows; ++i)
        for (Index c = 0; c < dq.columns; ++c) write(gradient.update, dq(i, c), scratch.df(i, c));
      kernels::softmax_columns_backward(saved.g[h], scratch.dg, gradient.update, gradient.k[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const KernelSaved<T>& saved,
               const KernelScratch<T>& scratch) const {
    const KernelAttention kernel = this->kernel(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      normalise(in, h, saved);
      kernel.head(h, in, saved, scratch).make_map(map[h]);
    }
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
    return {.heads = s.heads, .N = s.queries, .M = s.keys, .p = s.width, .e = s.value_width, .normalised = false};
  }

  template <class T>
  static void normalise(const AttentionInput<T>& in, Index h, const KernelSaved<T>& saved) {
    const Matrix<const T> q = in.q[h];
    const Matrix<T> qn = saved.f[h];
    for (Index i = 0; i < q.rows; ++i) std::copy_n(q[i], q.columns, qn[i]);
    kernels::softmax_rows(qn);
    kernels::softmax_columns(in.k[h], saved.g[h]);
  }
};

template MechanismEntry mechanism_entry<Efficient>();

}  // namespace heed
