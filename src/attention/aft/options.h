// Part of AFT (aft.cpp): the options, shared by both implementations.
#pragma once

#include "heed/attention/options.h"

namespace heed {

struct AftOptions {
  enum class Variant { full, local, simple, conv } variant = Variant::full;
  enum class Param { factored, dense } param = Param::factored;
  enum class Outside { zero, masked } outside = Outside::zero;
  enum class Sparsity { none, entropy, gumbel } sparsity = Sparsity::none;
  Index rank = 128, window = not_set, size = 3, dims = 2;
  bool query = true, causal = false, reparam = true;
  double coefficient = 0.001, tau = 0.5;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("variant", variant, {"full", "local", "simple", "conv"}, "where keys have a position bias");
    visit("param", param, {"factored", "dense"}, "full, local: the bias is u p^T, or a matrix w");
    visit("rank", rank, "full, local: number of columns of u and p");
    visit("window", window, "local (required): keys with |t - s| < window have a bias");
    visit("size", size, "conv: side of the window, odd");
    visit("dims", dims, "conv: 2, a window on the image's grid, or 1, along the tokens");
    visit("reparam", reparam, "conv: w is normalised, then scaled and shifted by gain and bias");
    visit("outside", outside, {"zero", "masked"},
          "local, conv: keys outside the window have bias zero, or are left out");
    visit("query", query, "sigma(q) gates the result");
    visit("causal", causal, "all but conv: a query sees the keys up to its own position only");
    visit("sparsity", sparsity, {"none", "entropy", "gumbel"},
          "conv: method that makes the biases of a head sparse in training");
    visit("coef", coefficient, "conv, sparsity=entropy: factor of the entropies in the loss");
    visit("tau", tau, "conv, sparsity=gumbel: temperature of the samples");
  }

  bool conv() const { return variant == Variant::conv; }
  bool masked() const { return outside == Outside::masked; }

  /// Throws Error if the options contradict each other or the shape.
  void check(const AttentionShape& shape) const;
};

std::unique_ptr<Mechanism> make_aft_full(const AftOptions& options);  ///< full, local and simple
std::unique_ptr<Mechanism> make_aft_conv(const AftOptions& options);

}  // namespace heed
