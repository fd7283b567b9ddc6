// AFT, the Attention Free Transformer. Zhai et al., "An Attention Free Transformer", 2021, arXiv:2105.14103v2.
//
// Each query averages the values with weights that come from the keys and from learned position biases, channel by
// channel; the query itself only gates the result:
//
//   out[t] = sigma(q[t]) (sum_s exp(k[s] + w[t,s]) v[s]) / (sum_s exp(k[s] + w[t,s]))     Eq. 2, element-wise
//
//   variant  w[t,s]                                                  q, k, v          time         file
//   full     u[t] . p[s] (Eq. 7, the paper's v is p here), or w      [N, D], 1 head   O(N^2 D)     aft_full.h
//   local    the same where |t - s| < window, else 0 (Eq. 4)         [N, D], 1 head   O(N window D)
//   simple   0 (Eq. 5)                                               [N, D], 1 head   O(N D)
//   conv     by relative place in a window on the grid, else 0       [N, d] per head  O(N size^2 D)  aft_conv.h
//            (Eq. 6, 8); k has one channel per head
//
// Memory is O(N D) beyond the parameters. The biases of full and local are in aft_bias.h, their sums over keys
// with and without one in aft_biased.h and aft_unbiased.h; the biases of conv in aft_conv_bias.h; pictures of them in
// aft_pictures.h.
#include "conv.h"
#include "decoding.h"
#include "full.h"
#include "pictures.h"
#include "src/attention/shared/image_grid.h"

#include "heed/attention/mechanism_base.h"

namespace heed {

class Aft : public MechanismBase<Aft> {
 public:
  static constexpr const char* mechanism_name = "aft";
  static constexpr const char* summary = "sigma(q) times the mean of v weighted by exp(k + position bias)";
  static constexpr const char* complexity =
      "time O(N^2 D) full, O(N window D) local, O(N D) simple, O(N size^2 D) conv; memory O(N D)";

  enum class Variant { full, local, simple, conv } variant = Variant::full;
  enum class Param { factored, dense } param = Param::factored;
  enum class Outside { zero, masked } outside = Outside::zero;
  AftConvBias::Sparsity sparsity = AftConvBias::Sparsity::none;
  Index rank = 128, window = not_set, size = 3, dims = 2;
  bool query = true, causal = false, reparam = true;
  double coefficient = 0.001, tau = 0.5;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("variant", variant, {"full", "local", "simple", "conv"}, "where keys have a position bias");
    visit("param", param, {"factored", "dense"}, "full, local: the bias is u p^T, or a matrix w");
    visit("rank", rank, "full, local: columns of u and p");
    visit("window", window, "local (required): keys with |t - s| < window have a bias");
    visit("size", size, "conv: side of the window, odd");
    visit("dims", dims, "conv: 2, a window on the image's grid, or 1, along the tokens");
    visit("reparam", reparam, "conv: w is normalised, then scaled and shifted by gain and bias");
    visit("outside", outside, {"zero", "masked"},
          "local, conv: keys outside the window have bias zero, or are left out");
    visit("query", query, "sigma(q) gates the result");
    visit("causal", causal, "all but conv: a query sees the keys up to its own position only");
    visit("sparsity", sparsity, {"none", "entropy", "gumbel"},
          "conv: what makes the biases of a head sparse in training");
    visit("coef", coefficient, "conv, sparsity=entropy: factor of the entropies in the loss");
    visit("tau", tau, "conv, sparsity=gumbel: temperature of the samples");
  }

  static std::vector<OptionValues> variants() {
    return {{{"rank", "3"}},
            {{"param", "dense"}, {"causal", "true"}},
            {{"rank", "2"}, {"causal", "true"}, {"query", "false"}},
            {{"variant", "simple"}},
            {{"variant", "simple"}, {"causal", "true"}},
            {{"variant", "simple"}, {"query", "false"}},
            {{"variant", "local"}, {"window", "2"}, {"rank", "3"}},
            {{"variant", "local"}, {"window", "6"}, {"param", "dense"}},
            {{"variant", "local"}, {"window", "2"}, {"param", "dense"}, {"causal", "true"}},
            {{"variant", "local"}, {"window", "3"}, {"outside", "masked"}, {"param", "dense"}},
            {{"variant", "local"}, {"window", "2"}, {"outside", "masked"}, {"causal", "true"}, {"rank", "2"}},
            {{"variant", "local"}, {"window", "0"}, {"rank", "1"}},
            {{"variant", "conv"}},
            {{"variant", "conv"}, {"size", "5"}, {"outside", "masked"}, {"query", "false"}},
            {{"variant", "conv"}, {"size", "1"}, {"reparam", "false"}},
            {{"variant", "conv"}, {"dims", "1"}, {"size", "5"}},
            {{"variant", "conv"}, {"sparsity", "entropy"}, {"coef", "0.7"}},
            {{"variant", "conv"}, {"sparsity", "gumbel"}, {"tau", "0.8"}},
            {{"variant", "conv"}, {"sparsity", "gumbel"}, {"reparam", "false"}}};
  }

  static std::vector<MechanismSetting> settings() {
    return {{"aft-full"},
            {"aft-dense", {{"param", "dense"}}},
            {"aft-local", {{"variant", "local"}, {"window", "8"}}, true},
            {"aft-simple", {{"variant", "simple"}}, true},
            {"aft-conv", {{"variant", "conv"}, {"size", "5"}}, true}};
  }

  AttentionLayout layout(Index dim, Index heads) const override {
    if (variant == Variant::conv) return {heads, dim / heads, 1, dim / heads};
    return {1, dim, dim, dim};
  }

  void check(const AttentionShape& shape) const override {
    const bool conv = variant == Variant::conv, local = variant == Variant::local;
    require(rank >= 1 && rank <= 4096, "[aft] rank is {}; expected 1 to 4096", rank);
    require(!local || window >= 0, "[aft] variant=local needs the option window, 0 or more");
    require(outside == Outside::zero || local || conv, "[aft] outside=masked is for variant=local and variant=conv");
    require(outside == Outside::zero || !local || window > 0, "[aft] outside=masked with window=0 leaves no keys");
    require(!conv || !causal, "[aft] causal=true is not defined for variant=conv");
    require(sparsity == AftConvBias::Sparsity::none || conv, "[aft] sparsity is for variant=conv");
    require(size >= 1 && size <= 1001 && size % 2 == 1, "[aft] size is {}; expected an odd number, 1 to 1001", size);
    require(dims == 1 || dims == 2, "[aft] dims is {}; expected 1 or 2", dims);
    require(tau > 0, "[aft] tau is {}; expected more than 0", tau);
    require(std::isfinite(coefficient), "[aft] coef is {}; expected a finite number", coefficient);
    require(shape.width == shape.value_width, "[aft] q has {} channels, v has {}; they must match", shape.width,
            shape.value_width);
    require(conv || shape.heads == 1, "[aft] {} heads; all variants but conv have one", shape.heads);
    require(shape.keys == shape.queries || (!conv && !local && !causal),
            "[aft] {} keys and {} queries; they must be as many unless variant is full or simple and not causal",
            shape.keys, shape.queries);
    if (!conv) return;
    require(!shape.class_token, "[aft] variant=conv has no place for a class token; use mean pooling");
    if (dims == 2) require_image_grid_alone(shape, name(), "variant is conv and dims is 2", "dims=1");
  }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    if (const auto u = tensors.find("u"); u != tensors.end() && u->second.rank() == 2) rank = u->second[1];
    const auto w = tensors.find("w");
    if (w != tensors.end() && w->second.rank() == dims + 1 && variant == Variant::conv) size = w->second[1];
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    if (variant == Variant::simple) return {};
    if (variant == Variant::conv) {
      const Shape shape = noise_shape(s);
      if (!reparam) return {{"w", shape, Initial::normal(1)}};
      return {{"w", shape, Initial::normal(1)},
              {"gain", {s.heads}, Initial::constant(0), false},
              {"bias", {s.heads}, Initial::constant(0), false}};
    }
    if (param == Param::dense) return {{"w", {s.queries, s.keys}, Initial::normal(0.1)}};
    return {{"u", {s.queries, rank}, Initial::normal(0.1)}, {"p", {s.keys, rank}, Initial::normal(0.1)}};
  }

  Shape noise(const AttentionShape& s) const override {
    return sparsity == AftConvBias::Sparsity::gumbel ? noise_shape(s) : Shape{0};
  }

  MechanismTraits traits() const override {
    return {.map = false, .qk_norm = false, .penalty = sparsity == AftConvBias::Sparsity::entropy};
  }

  template <class T>
  auto prepared(const AttentionShape& s, Carver<T>& carve) const {
    return of_variant([&](const auto& part) { return part.prepared(s, carve); });
  }
  template <class T>
  auto saved(const AttentionShape& s, Carver<T>& carve) const {
    return of_variant([&](const auto& part) { return part.saved(s, carve); });
  }
  template <class T>
  auto scratch(const AttentionShape& s, Carver<T>& carve) const {
    return of_variant([&](const auto& part) { return part.scratch(s, carve); });
  }

  Cost cost(const AttentionShape& s) const override {
    return variant == Variant::conv ? conv().cost(s) : full().cost(s);
  }
  Cost preparation_cost(const AttentionShape& s) const override {
    return variant == Variant::conv ? conv().biases.cost(s.heads) : full().preparation_cost(s);
  }
  Cost penalty_cost(const AttentionShape& s) const override { return conv().biases.penalty_cost(s.heads); }

  template <class T, class Prepared>
  void run_prepare(const AttentionPreparation<T>& of, const Prepared& prepared) const {
    variant == Variant::conv ? conv().run_prepare(of, prepared.conv) : full().run_prepare(of, prepared.full);
  }
  template <class T, class Prepared>
  void run_prepare_backward(const AttentionPreparation<T>& of, const Prepared& prepared, const Prepared& dprepared,
                            std::span<const View<T>> gradient) const {
    variant == Variant::conv ? conv().run_prepare_backward(of, prepared.conv, dprepared.conv, gradient)
                             : full().run_prepare_backward(of, prepared.full, dprepared.full, gradient);
  }
  template <class T, class Saved, class Scratch>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved& saved, const Scratch& scratch) const {
    const auto prepared = prepared_of(in.shape, in.prepared);
    variant == Variant::conv ? conv().run_forward(in, out, prepared.conv, saved.conv, scratch.conv)
                             : full().run_forward(in, out, prepared.full, saved.full, scratch.full);
  }
  template <class T, class Saved, class Scratch>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved& saved,
                    const Scratch& scratch, const AttentionGradient<T>& gradient) const {
    const auto prepared = prepared_of(in.shape, in.prepared);
    const auto dprepared = prepared_of(in.shape, gradient.prepared);
    variant == Variant::conv
        ? conv().run_backward(in, dout, prepared.conv, saved.conv, scratch.conv, gradient, dprepared.conv)
        : full().run_backward(in, dout, prepared.full, saved.full, scratch.full, gradient, dprepared.full);
  }
  AttentionStateSize state_size(const AttentionShape& s, Index tokens) const override {
    return AftDecoding(full(), s).size(tokens);
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    AftDecoding(full(), call.in.shape).run(call);
  }

  template <class T>
  T run_penalty(const AttentionPenalty<T>& call) const {
    return conv().biases.run_penalty(call);
  }

  std::vector<PictureInfo> pictures() const override {
    const char* const part = variant == Variant::conv ? "head" : "group";
    std::vector<PictureInfo> list{
        {"weights", "AFT's relative weights exp(k + w)", PictureAxes::pairs, part},
        {"keys", "AFT's keys, exp(k) relative to the largest of all tokens", PictureAxes::tokens, part}};
    if (variant == Variant::conv)
      list.push_back({"biases", "AFT's position biases in the window around a query", PictureAxes::matrix});
    else if (variant != Variant::simple)
      list.push_back({"biases", "AFT's position biases", PictureAxes::pairs, "bias"});
    return list;
  }
  Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const override;

 private:
  AftFull full() const {
    const Index reach = variant == Variant::full ? AftFull::unlimited : variant == Variant::local ? window : 0;
    return {reach, outside == Outside::masked, causal, query, param == Param::factored ? rank : 0};
  }
  AftConv conv() const {
    const Index places = dims == 2 ? size * size : size;
    return {size, dims, outside == Outside::masked, query, {places, reparam, sparsity, coefficient, tau}};
  }
  Shape noise_shape(const AttentionShape& s) const {
    return dims == 2 ? Shape{s.heads, size, size} : Shape{s.heads, size};
  }

  /// Memory as the variant divides it; the other's is empty.
  template <class Full, class Conv>
  struct Memory {
    Full full{};
    Conv conv{};
  };
  template <class F>
  auto of_variant(const F& divide) const {
    Memory<decltype(divide(full())), decltype(divide(conv()))> memory;
    if (variant == Variant::conv)
      memory.conv = divide(conv());
    else
      memory.full = divide(full());
    return memory;
  }
};

Tensor<float> Aft::picture(const std::string& name, const AttentionInput<float>& in) const {
  const auto prepared = prepared_of(in.shape, in.prepared);
  const bool is_conv = variant == Variant::conv;
  if (name == "keys") return AftPictures{in.k}.keys();
  if (name == "biases" && is_conv) return conv().windows(in.shape, prepared.conv);
  Tensor<float> pairs = is_conv ? conv().biases_of_pairs(in.shape, prepared.conv) : full().biases_of_pairs(in);
  if (name == "weights") return AftPictures{in.k}.weights(pairs);
  std::replace(pairs.begin(), pairs.end(), -std::numeric_limits<float>::infinity(), 0.0f);
  return pairs;
}

template MechanismEntry mechanism_entry<Aft>();

}  // namespace heed
