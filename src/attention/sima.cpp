// SimA. Koohpayegani, Pirsiavash, "SimA: Simple Softmax-free Attention for Vision Transformers", 2022,
// arXiv:2206.08898v2, Section 2.2 (whose equations have no numbers).
//
// Softmax lets tokens compete; here they do because each channel of q and of k is divided by its norm over the tokens:
//
//   qn = q / |q|_1,  kn = k / |k|_1      [N, d], [M, d], channel by channel over the tokens of one head
//   out = qn kn^T v                      [N, e]
//
// With no function between the products their order is free. (qn kn^T) v takes 2 N M d multiplications, which is
// less where N < d; qn (kn^T v) takes (N + M) d^2 and no more memory than its operands. No exponentials.
//
// Differs from the paper: it divides by the norm; here, as in the authors' code, by max(norm, 1e-12), a constant where
// it clamps. Other norms, and none, for its ablation. A causal form is not defined: the norm is one over all tokens.
#pragma once

#include "heed/attention/map_blocks.h"
#include "heed/kernels/gemm_by_stride.h"
#include "heed/kernels/normalize.h"

namespace heed {

class Sima : public MechanismBase<Sima> {
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
    visit("norm", norm, {"l1", "l2", "none"}, "what each channel of q and k is divided by");
    visit("order", order, {"auto", "qk_first", "kv_first"},
          "the product made first; auto: q k^T where N < d, else k^T v");
  }

  static std::vector<OptionValues> variants() {
    std::vector<OptionValues> variants;
    for (const char* norm : {"l1", "l2", "none"})
      for (const char* order : {"qk_first", "kv_first"}) variants.push_back({{"norm", norm}, {"order", order}});
    variants.push_back({});
    return variants;
  }

  // Saved, per head: qn and kn, for all products of the backward pass; the norms, for undoing the division; and, where
  // it was made, S = kn^T v, for dqn.
  Index saved(const AttentionShape& shape) const override { return shape.heads * saved_head(shape); }

  // The gradients of qn and kn, and either dS or two blocks of rows: A = qn kn^T, and dA in the backward pass.
  Index scratch(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    return (N + M) * d + (kv_first(shape) ? d * e : 2 * map_block(N) * M);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Index step = map_block(N);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Kept<T> kept = kept_of(in.shape, saved, h);
      // 1. the norm of each channel; 2. qn = q / norm, kn = k / norm
      if (norm != Norm::none) {
        kernels::normalize_channels(channel_norm(), N, d, in.q[h], in.q.row_stride, kept.qn, kept.q_norms);
        kernels::normalize_channels(channel_norm(), M, d, in.k[h], in.k.row_stride, kept.kn, kept.k_norms);
      }
      const Rows<const T> qn = normalized(in.q, h, kept.qn), kn = normalized(in.k, h, kept.kn);
      if (kv_first(in.shape)) {
        // 3. S = kn^T v
        kernels::gemm(in.products, Transpose::yes, Transpose::no, d, e, M, kn.data, kn.stride, in.v[h], in.v.row_stride,
                      Update::assign, kept.S, e);
        // 4. out = qn S
        kernels::gemm(in.products, Transpose::no, Transpose::no, N, e, d, qn.data, qn.stride, kept.S, e, Update::assign,
                      out[h], out.row_stride);
        continue;
      }
      for (Index first = 0; first < N; first += step) {
        const Index rows = std::min(step, N - first);
        // 3. A = qn kn^T
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, M, d, qn[first], qn.stride, kn.data, kn.stride,
                      Update::assign, scratch, M);
        // 4. out = A v
        kernels::gemm(in.products, Transpose::no, Transpose::no, rows, e, M, scratch, M, in.v[h], in.v.row_stride,
                      Update::assign, out[h] + first * out.row_stride, out.row_stride);
      }
    }
  }

  // k^T v first: undoing 4, dqn = dout S^T, dS = qn^T dout; undoing 3, dkn = v dS^T, dv = kn dS.
  // q k^T first: undoing 4, dA = dout v^T, dv = A^T dout; undoing 3, dqn = dA kn, dkn = dA^T qn.
  // Undoing 2 and 1, per channel: dx = (dxn - sign(x) <xn, dxn>) / |x|_1 (kernels/normalize.h). With norm=none
  // gradients of qn and kn are those of q and k.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const bool plain = norm == Norm::none;
    const Update update = plain ? gradient.update : Update::assign;
    T* const rest = scratch + (N + M) * d;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Kept<const T> kept = kept_of(in.shape, saved, h);
      const Rows<const T> qn = normalized(in.q, h, kept.qn), kn = normalized(in.k, h, kept.kn);
      const Rows<T> dqn = plain ? Rows<T>{gradient.q[h], gradient.q.row_stride} : Rows<T>{scratch, d};
      const Rows<T> dkn = plain ? Rows<T>{gradient.k[h], gradient.k.row_stride} : Rows<T>{scratch + N * d, d};
      if (kv_first(in.shape)) {
        T* const dS = rest;
        // 4.
        kernels::gemm(in.products, Transpose::no, Transpose::yes, N, d, e, dout[h], dout.row_stride, kept.S, e, update,
                      dqn.data, dqn.stride);
        kernels::gemm(in.products, Transpose::yes, Transpose::no, d, e, N, qn.data, qn.stride, dout[h], dout.row_stride,
                      Update::assign, dS, e);
        // 3.
        kernels::gemm(in.products, Transpose::no, Transpose::yes, M, d, e, in.v[h], in.v.row_stride, dS, e, update,
                      dkn.data, dkn.stride);
        kernels::gemm(in.products, Transpose::no, Transpose::no, M, e, d, kn.data, kn.stride, dS, e, gradient.update,
                      gradient.v[h], gradient.v.row_stride);
      } else {
        backward_by_rows(in, h, qn, kn, dout, rest, update, dqn, dkn, gradient);
      }
      // 2. and 1.
      if (plain) continue;
      kernels::normalize_channels_backward(channel_norm(), N, d, in.q[h], in.q.row_stride, kept.qn, kept.q_norms,
                                           dqn.data, gradient.update, gradient.q[h], gradient.q.row_stride);
      kernels::normalize_channels_backward(channel_norm(), M, d, in.k[h], in.k.row_stride, kept.kn, kept.k_norms,
                                           dkn.data, gradient.update, gradient.k[h], gradient.k.row_stride);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, T* map) const {
    const auto [N, M, d, e] = in.shape.sizes();
    std::vector<T> q(static_cast<std::size_t>(N * d)), k(static_cast<std::size_t>(M * d)),
        norms(static_cast<std::size_t>(d));
    for (Index h = 0; h < in.shape.heads; ++h, map += N * M) {
      if (norm != Norm::none) {
        kernels::normalize_channels(channel_norm(), N, d, in.q[h], in.q.row_stride, q.data(), norms.data());
        kernels::normalize_channels(channel_norm(), M, d, in.k[h], in.k.row_stride, k.data(), norms.data());
      }
      const Rows<const T> qn = normalized(in.q, h, q.data()), kn = normalized(in.k, h, k.data());
      kernels::gemm(in.products, Transpose::no, Transpose::yes, N, M, d, qn.data, qn.stride, kn.data, kn.stride,
                    Update::assign, map, M);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    // Forward: 1. norms, 2. division; 3. and 4. the products.
    // Backward: 4. and 3., two products each (and A again); 2. and 1.
    if (norm != Norm::none) {
      cost.forward = d * (norm_counts(N) + norm_counts(M));
      cost.backward = d * (norm_backward_counts(N) + norm_backward_counts(M));
    }
    if (kv_first(shape)) {
      cost.forward += product_counts(d, e, M) + product_counts(N, e, d);
      cost.backward +=
          product_counts(N, d, e) + product_counts(d, e, N) + product_counts(M, d, e) + product_counts(M, e, d);
      cost.forward_contractions = product_contractions(N + M, d, e);
      cost.backward_contractions = product_contractions(2 * (N + M), d, e);
    } else {
      cost.forward += product_counts(N, M, d) + product_counts(N, e, M);
      cost.backward += product_counts(N, M, d) + product_counts(N, M, e) + product_counts(M, e, N) +
                       product_counts(N, d, M) + product_counts(M, d, N);
      cost.forward_contractions = product_contractions(N, M, d + e);
      cost.backward_contractions = product_contractions(N, M, 2 * d + 2 * e);  // making A again is not counted
    }
    return shape.heads * cost;
  }

 private:
  bool kv_first(const AttentionShape& shape) const {
    return order == Order::automatic ? shape.queries >= shape.width : order == Order::kv_first;
  }
  ChannelNorm channel_norm() const { return norm == Norm::l1 ? ChannelNorm::l1 : ChannelNorm::l2; }

  /// qn or kn of head h: x itself where nothing is divided.
  template <class T>
  Rows<const T> normalized(const Heads<const T>& x, Index h, const T* divided) const {
    return norm == Norm::none ? Rows<const T>{x[h], x.row_stride} : Rows<const T>{divided, x.columns};
  }

  /// What is saved of one head. qn [N, d], kn [M, d], norms [d], unless norm=none; S [d, e] where k^T v comes first.
  template <class T>
  struct Kept {
    T *qn, *kn, *q_norms, *k_norms, *S;
  };
  template <class T>
  Kept<T> kept_of(const AttentionShape& shape, T* saved, Index h) const {
    const auto [N, M, d, e] = shape.sizes();
    T* const head = saved + h * saved_head(shape);
    if (norm == Norm::none) return {nullptr, nullptr, nullptr, nullptr, head};
    T* const q_norms = head + (N + M) * d;
    return {head, head + N * d, q_norms, q_norms + d, q_norms + 2 * d};
  }
  Index saved_head(const AttentionShape& shape) const {
    const auto [N, M, d, e] = shape.sizes();
    return (norm == Norm::none ? 0 : (N + M + 2) * d) + (kv_first(shape) ? d * e : 0);
  }

  /// Steps 4 and 3 undone where q k^T comes first, in blocks of queries.
  template <class T>
  void backward_by_rows(const AttentionInput<T>& in, Index h, Rows<const T> qn, Rows<const T> kn, Heads<const T> dout,
                        T* scratch, Update update, Rows<T> dqn, Rows<T> dkn,
                        const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    T* const A = scratch;
    T* const dA = A + map_block(N) * M;
    const Index step = map_block(N);
    for (Index first = 0; first < N; first += step) {
      const Index rows = std::min(step, N - first);
      const T* const dout_rows = dout[h] + first * dout.row_stride;
      // A again
      kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, M, d, qn[first], qn.stride, kn.data, kn.stride,
                    Update::assign, A, M);
      // 4.
      kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, M, e, dout_rows, dout.row_stride, in.v[h],
                    in.v.row_stride, Update::assign, dA, M);
      kernels::gemm(in.products, Transpose::yes, Transpose::no, M, e, rows, A, M, dout_rows, dout.row_stride,
                    first == 0 ? gradient.update : Update::accumulate, gradient.v[h], gradient.v.row_stride);
      // 3.
      kernels::gemm(in.products, Transpose::no, Transpose::no, rows, d, M, dA, M, kn.data, kn.stride, update,
                    dqn[first], dqn.stride);
      kernels::gemm(in.products, Transpose::yes, Transpose::no, M, d, rows, dA, M, qn[first], qn.stride,
                    first == 0 ? update : Update::accumulate, dkn.data, dkn.stride);
    }
  }

  /// Counts per channel of `rows` tokens: norm and division, and their gradient.
  Counts norm_counts(Index rows) const {
    const Counts common{.add = rows - 1, .div = rows, .cmp = 1};
    return common + (norm == Norm::l1 ? Counts{.cmp = rows} : Counts{.mul = rows, .sqrt = 1});
  }
  Counts norm_backward_counts(Index rows) const {
    const Counts common{.mul = rows, .add = 2 * rows - 1, .div = rows, .cmp = 1};
    return common + (norm == Norm::l1 ? Counts{.cmp = 2 * rows} : Counts{.mul = rows});
  }
};

}  // namespace heed
