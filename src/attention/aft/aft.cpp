// AFT, the Attention Free Transformer. Zhai et al., "An Attention Free Transformer", 2021, arXiv:2105.14103v2.
//
// For each query, the values are averaged, channel by channel, with weights given by the keys and by learned position
// biases; the query itself only gates the result:
//
//   out[t] = sigma(q[t]) (sum_s exp(k[s] + w[t,s]) v[s]) / (sum_s exp(k[s] + w[t,s]))     Eq. 2, element-wise
//
//   variant  w[t,s]                                                  q, k, v          time             file
//   full     u[t] . p[s] (Eq. 7, the paper's v is p here), or w      [N, D], 1 head   O(N^2 D)         full.cpp
//   local    the same where |t - s| < window, else 0 (Eq. 4)         [N, D], 1 head   O(N window D)    full.cpp
//   simple   0 (Eq. 5)                                               [N, D], 1 head   O(N D)           full.cpp
//   conv     by relative position in a window on the grid, else 0    [N, d] per head  O(N size^2 D)    conv.cpp
//            (Eq. 6, 8); k has one channel per head
//
// Memory is O(N D) beyond the parameters. This file has the checks of the options and the entry in the list of
// mechanisms, which creates one of two implementations, depending on `variant`.
#include "options.h"

#include "heed/attention/mechanism_base.h"

#include "src/attention/shared/image_grid.h"

namespace heed {

void AftOptions::check(const AttentionShape& shape) const {
  const bool local = variant == Variant::local;
  require(rank >= 1 && rank <= 4096, "[aft] rank is {}; expected 1 to 4096", rank);
  require(!local || window >= 0, "[aft] variant=local needs the option window, 0 or more");
  require(outside == Outside::zero || local || conv(), "[aft] outside=masked is for variant=local and variant=conv");
  require(outside == Outside::zero || !local || window > 0, "[aft] outside=masked with window=0 leaves no keys");
  require(!conv() || !causal, "[aft] causal=true is not defined for variant=conv");
  require(sparsity == Sparsity::none || conv(), "[aft] sparsity is for variant=conv");
  require(size >= 1 && size <= 1001 && size % 2 == 1, "[aft] size is {}; expected an odd number, 1 to 1001", size);
  require(dims == 1 || dims == 2, "[aft] dims is {}; expected 1 or 2", dims);
  require(tau > 0, "[aft] tau is {}; expected more than 0", tau);
  require(std::isfinite(coefficient), "[aft] coef is {}; expected a finite number", coefficient);
  require(shape.width == shape.value_width, "[aft] q has {} channels, v has {}; they must match", shape.width,
          shape.value_width);
  require(conv() || shape.heads == 1, "[aft] {} heads; expected 1, since only variant=conv has several", shape.heads);
  require(shape.keys == shape.queries || (!conv() && !local && !causal),
          "[aft] {} keys and {} queries; the numbers must be equal unless variant is full or simple and not causal",
          shape.keys, shape.queries);
  if (!conv()) return;
  require(!shape.class_token,
          "[aft] variant=conv works on patches alone; expected pool = \"mean\" without class token or registers");
  if (dims == 2) require_image_grid_alone(shape, "aft", "variant is conv and dims is 2", "dims=1");
}

namespace {

std::vector<OptionValues> aft_variants() {
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

std::vector<MechanismSetting> aft_settings() {
  return {{"aft-full"},
          {"aft-dense", {{"param", "dense"}}},
          {"aft-local", {{"variant", "local"}, {"window", "8"}}, true},
          {"aft-simple", {{"variant", "simple"}}, true},
          {"aft-conv", {{"variant", "conv"}, {"size", "5"}}, true}};
}

std::vector<OptionNeed> aft_needs() {
  return {
      {"param", "variant", {"full", "local"}}, {"rank", "variant", {"full", "local"}}, {"rank", "param", {"factored"}},
      {"window", "variant", {"local"}},        {"size", "variant", {"conv"}},          {"dims", "variant", {"conv"}},
      {"reparam", "variant", {"conv"}},        {"coef", "sparsity", {"entropy"}},      {"tau", "sparsity", {"gumbel"}}};
}

}  // namespace

class Aft;  // only names the entry in the list

template <>
MechanismEntry mechanism_entry<Aft>() {
  return {"aft",
          "sigma(q) times the mean of v weighted by exp(k + position bias)",
          "time O(N^2 D) full, O(N window D) local, O(N D) simple, O(N size^2 D) conv; memory O(N D)",
          [](const OptionValues& values) {
            const auto options = read_options<AftOptions>("aft", values);
            return options.conv() ? make_aft_conv(options) : make_aft_full(options);
          },
          list_options<AftOptions>,
          aft_variants,
          aft_settings,
          aft_needs};
}

}  // namespace heed
