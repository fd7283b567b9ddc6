// Part of AFT (aft.cpp): full, local and simple, which differ only in which keys have a bias.
//
// One head; channels c are independent. A query t sees two kinds of keys s:
//   biased:  |t - s| < window, with the exponent k[s,c] + w[t,s];
//   others:  w = 0, with the exponent k[s,c] (Eq. 4), or left out (`masked`, the ablation of Section 5.3).
// In full all keys are biased, in simple none is (Eq. 5). If causal, t sees only the keys s <= t.
//
//   den[t,c] = sum_s exp(k[s,c] + w[t,s])               [N, D]
//   y[t,c]   = sum_s exp(k[s,c] + w[t,s]) v[s,c] / den  [N, D]
//   out      = sigma(q) y                               [N, D]     Eq. 2
//
// Biased keys cost O(D) for each pair (t, s) (biased.h), other keys O(N D) for all queries (unbiased.h). Every sum has
// a scale (kernels/sums/exp_sums.h), so that exponents of very different sizes do not give 0 / 0.
#include "biased.h"
#include "decoding.h"
#include "options.h"
#include "pictures.h"
#include "unbiased.h"

#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/elements/gate.h"

#include <limits>

namespace heed {

class AftFull : public MechanismBase<AftFull>,
                public WithPreparation<AftFull>,
                public WithDecoding<AftFull>,
                public PicturesCapability {
 public:
  static constexpr const char* mechanism_name = "aft";

  template <class T>
  using ExpSums = kernels::ExpSums<T>;

  explicit AftFull(const AftOptions& options) : options_(options) {}

  MechanismTraits traits() const override { return {.qk_norm = false}; }
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  void check(const AttentionShape& shape) const override { options_.check(shape); }
  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    if (const auto u = tensors.find("u"); u != tensors.end() && u->second.rank() == 2) options_.rank = u->second[1];
  }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    if (options_.variant == Variant::simple) return {};
    if (rank() == 0) return {{"w", {s.queries, s.keys}, Initial::normal(0.1)}};
    return {{"u", {s.queries, rank()}, Initial::normal(0.1)}, {"p", {s.keys, rank()}, Initial::normal(0.1)}};
  }

  // Prepared: the bias, E and max_s w.
  template <class T>
  AftBias<T> prepared(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const AftBiasMatrix w = bias(sizes(shape));
    return w.prepared() ? w.memory(shape.queries, layout) : AftBias<T>{};
  }

  // Saved: scale and mass of each query's sums, from which the weights are recomputed; and y, for dq, dk and dw, stored
  // in place of the sums' value.
  template <class T>
  ExpSums<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const Sizes z = sizes(shape);
    return kernels::lay_out_exp_sums(z.rows, z.D, z.D, layout);
  }

  // Scratch: running sums; in the backward pass -scale, dy / mass, y dy / mass per query; scratch of biased keys.
  template <class T>
  struct Scratch {
    ExpSums<T> running, queries;
    AftBiased::Scratch<T> biased;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const Sizes z = sizes(shape);
    Scratch<T> scratch{
        kernels::lay_out_exp_sums(1, z.D, z.D, layout), kernels::lay_out_exp_sums(z.rows, z.D, z.D, layout), {}};
    if (window() > 0) scratch.biased = biased(z).scratch(layout);
    return scratch;
  }

  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, const AftBias<T>& prepared) const {
    bias(sizes(of.shape)).prepare(of.parameters, prepared);
  }
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, const AftBias<T>& prepared, const AftBias<T>& dprepared,
                            std::span<const View<T>> gradient) const {
    bias(sizes(of.shape)).prepare_backward(of.parameters, prepared, dprepared, gradient);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const ExpSums<T>& sums,
                   const Scratch<T>& scratch) const {
    const Sizes z = sizes(in.shape);
    const AftBias<const T> prepared = prepared_of(in.shape, in.prepared);
    const Matrix<T> y = sums.value, out = outs[0];
    // 1. sums over the biased keys
    if (window() > 0) biased(z).forward(in, prepared, sums, scratch.biased);
    // 2. sums over the keys before and after the biased keys
    unbiased(z).forward(in, sums, scratch.running);
    // 3. y = value / mass
    means(sums, y);
    // 4. out = sigma(q) y
    if (options_.query) return kernels::gate_forward(in.q[0], z.of_queries(y), out);
    for (Index t = 0; t < z.N; ++t) std::copy_n(z.of_queries(y)[t], z.D, out[t]);
  }

  // With p[t,s,c] = exp(k[s,c] + w[t,s]) / den[t,c], the weight of key s, and dy[t,c] = d(loss)/dy:
  // Undoing 4:  dy = sigma(q) dout,  dq = sigma'(q) y dout.
  // Undoing 3-1: y is a weighted mean, so its derivative with respect to an exponent k + w is p (v[s,c] - y[t,c]), and
  //   dv[s,c] = sum_t p dy[t,c],   dk[s,c] = sum_t p dy[t,c] (v[s,c] - y[t,c]),
  //   dw[t,s] = sum_c p dy[t,c] (v[s,c] - y[t,c]).
  // For keys without a bias, p = exp(k[s,c]) exp(-scale[t,c]) / mass[t,c], and running sums over queries of exp(-scale)
  // (dy / mass, y dy / mass) serve all keys, as running sums over keys serve all queries. Here v and y are relative to
  // an origin.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const ExpSums<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const Sizes z = sizes(in.shape);
    const AftBias<const T> prepared = prepared_of(in.shape, in.prepared);
    const AftBias<T> dprepared = prepared_of(in.shape, gradient.prepared);
    const ExpSums<T> queries = scratch.queries;
    // 4. The dy of queries that share one row of sums (simple, not causal) are added up.
    const Matrix<const T> dout = douts[0];
    const Matrix<T> dq = gradient.q[0], dy = z.of_queries(queries.mass);
    if (options_.query) {
      kernels::gate_backward(in.q[0], z.of_queries(saved.value), dout, gradient.update, dq, dy);
    } else {
      for (Index t = 0; t < z.N; ++t) write_all(kernels::sum_update(t, dy), z.D, dout[t], dy[t]);
      if (gradient.update == Update::assign) fill(dq, T(0));
    }
    // 3.
    const T* const origin = kernels::value_origin<T>(saved.value);
    means_backward(saved, origin, queries);
    // 2. and 1.
    unbiased(z).backward(in, queries, origin, scratch.running, gradient);
    if (window() > 0)
      biased(z).backward(in, prepared, {saved.scale, saved.value, queries.mass}, scratch.biased, gradient, dprepared);
  }

  Cost preparation_cost(const AttentionShape& shape) const override {
    const Sizes z = sizes(shape);
    return bias(z).prepared() ? bias(z).cost(z.pairs()) : Cost{};
  }

  /// Returns the cost if all sums are computed key by key. float and double compute the sums over biased keys by matrix
  /// products instead if the window and the exponents allow it (biased.h).
  Cost cost(const AttentionShape& shape) const override {
    const Sizes z = sizes(shape);
    const Index pairs = z.pairs();
    const AftUnbiased others = unbiased(z);
    // Number of keys that have a bias for every query; their gradients are assigned.
    const Index fresh = window() > 0 ? std::max<Index>(z.M - others.keys_before() - others.keys_after(), 0) : 0;
    const Index gated = options_.query ? z.N * z.D : 0;

    Cost cost;
    if (!bias(z).prepared()) {
      cost = bias(z).cost(pairs);
      cost.backward += cost.forward;  // recomputes w; not counted as contractions
    }
    // Forward: 1. biased keys; 2. keys without a bias; 3.; 4.
    if (window() > 0)
      for (Index t = 0; t < z.N; ++t) {
        const AftReach::Range r = z.reach(t);
        cost.forward += kernels::exp_sums_of_counts(r.last - r.first, z.D, true);
      }
    cost.forward += others.forward_counts();
    cost.forward += means_counts(z.rows * z.D) + kernels::gate_forward_counts(gated);
    // Backward: 4.; 3.; 2. keys without a bias; 1. biased keys.
    cost.backward +=
        kernels::gate_backward_counts(gated, Update::assign) + z.shared_counts() + means_backward_counts(z.rows * z.D);
    cost.backward += others.backward_counts() + kernels::exp_sums_backward_counts(fresh, z.D, Update::assign) +
                     kernels::exp_sums_backward_counts(pairs - fresh, z.D, Update::accumulate);
    // Forward: numerator and denominator, for each biased pair and each key that some query sees without a bias.
    // Backward: dv, dk and dw.
    cost.forward_contractions += kernels::exp_sums_contractions(pairs + others.keys(), z.D);
    cost.backward_contractions +=
        kernels::exp_sums_backward_contractions(pairs, z.D) + kernels::exp_sums_at_key_contractions(others.keys(), z.D);
    cost.left_out = {.add = -(pairs + others.keys()) * z.D, .exp = gated};  // denominators; the gate
    cost.bounded = window() > 0 || options_.causal;                         // running sums need fewer contractions
    cost.attention_exp = cost.forward.exp - gated;
    return cost;
  }

  AttentionStateSize state_size(const AttentionShape& s, Index tokens) const override {
    return decoding_of(s).size(tokens);
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    decoding_of(call.in.shape).run(call);
  }

  std::vector<PictureInfo> picture_infos() const override {
    std::vector<PictureInfo> list = AftPictures::infos("group");
    if (options_.variant != Variant::simple)
      list.push_back({"biases", "AFT's position biases", PictureAxes::pairs, "bias"});
    return list;
  }
  Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const override {
    if (name == "keys") return AftPictures{in.k}.keys();
    Tensor<float> biases = bias(sizes(in.shape)).of_pairs(in.parameters);
    return name == "weights" ? AftPictures{in.k}.weights(biases) : AftPictures::without_infinities(std::move(biases));
  }

 private:
  using Variant = AftOptions::Variant;

  /// Returns the window: keys with |t - s| < window() have a bias; all keys in full, none in simple.
  Index window() const {
    constexpr Index unlimited = std::numeric_limits<Index>::max() / 2;
    return options_.variant == Variant::full ? unlimited : options_.variant == Variant::local ? options_.window : 0;
  }
  /// Returns the number of columns of u [N, rank] and p [M, rank] with w = u p^T; 0 if w [N, M] is a parameter.
  Index rank() const { return options_.param == AftOptions::Param::factored ? options_.rank : 0; }

  /// Computes y = value / mass.
  template <class T>
  static void means(const ExpSums<T>& sums, Matrix<T> y) {
    for (Index i = 0; i < y.size(); ++i) y.data[i] = sums.value.data[i] / sums.mass.data[i];
  }
  static Counts means_counts(Index numbers) { return numbers * Counts{.div = 1}; }

  /// Computes exp(-scale) (dy / mass, (y - origin) dy / mass) for the sums over queries. On entry, dy is in
  /// `queries.mass`.
  template <class T>
  static void means_backward(const ExpSums<T>& saved, const T* origin, const ExpSums<T>& queries) {
    for (Index r = 0; r < saved.value.rows; ++r) {
      const T *const scale = saved.scale[r], *const mass = saved.mass[r], *const y = saved.value[r];
      T *const minus_scale = queries.scale[r], *const G = queries.mass[r], *const yG = queries.value[r];
#pragma GCC ivdep
      for (Index c = 0; c < saved.value.columns; ++c) {
        minus_scale[c] = -scale[c];
        G[c] = G[c] / mass[c];
        yG[c] = (origin ? y[c] - origin[c] : y[c]) * G[c];
      }
    }
  }
  /// Returns the counts of means_backward() without an origin.
  static Counts means_backward_counts(Index numbers) { return numbers * Counts{.mul = 1, .div = 1}; }

  struct Sizes {
    Index N, M, D;
    Index rows;  // rows of sums
    AftReach reach;
    bool whole;

    /// Returns m, which has a row per row of sums, as a matrix with a row per query: a single row is repeated.
    template <class T>
    Matrix<T> of_queries(Matrix<T> m) const {
      return {m.data, N, m.columns, rows == 1 ? 0 : m.stride};
    }

    /// Returns the counts of adding up the rows of queries that share a row of sums.
    Counts shared_counts() const { return (N - rows) * D * Counts{.add = 1}; }

    /// Returns the number of pairs of a query and a key with a bias.
    Index pairs() const {
      Index pairs = 0;
      for (Index t = 0; t < rows; ++t) pairs += reach(t).last - reach(t).first;
      return pairs;
    }
  };
  Sizes sizes(const AttentionShape& s) const {
    const AftReach reach{window(), options_.masked(), options_.causal, s.queries, s.keys};
    return {s.queries, s.keys, s.width, reach.rows(), reach, s.whole};
  }
  AftBiasMatrix bias(const Sizes& z) const { return {z.reach, z.D, rank(), z.whole}; }
  AftBiased biased(const Sizes& z) const { return {bias(z)}; }
  AftUnbiased unbiased(const Sizes& z) const { return {z.reach, z.D}; }
  AftDecoding decoding_of(const AttentionShape& s) const {
    return {options_.variant == Variant::full, window(), options_.masked(), options_.query, rank(), s};
  }

  AftOptions options_;
};

std::unique_ptr<Mechanism> make_aft_full(const AftOptions& options) { return std::make_unique<AftFull>(options); }

}  // namespace heed
