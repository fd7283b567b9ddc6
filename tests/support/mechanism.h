// Runs of a single mechanism: named input tensors, named results and gradients.
#pragma once

#include "heed/attention/mechanism.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Tensors by name, stored as double, whatever type computed them.
using Tensors = std::map<std::string, Tensor<double>>;

/// Returns a tensor of one image and one head, [1, 1, tokens, channels], with these values.
Tensor<double> tokens(Index count, Index channels, const std::vector<double>& values);

/// Returns elements from U(-spread, spread) that are exact in float, so that both types have the same input.
Tensor<double> random_tensor(const Shape& shape, std::uint64_t seed, double spread = 1);

/// Runs a mechanism in T, float or double, on `given`: "q", "k" and "v" [B, H, N or M, channels], its parameters by
/// name, and "dout", which is all ones by default. Returns "out", "dq", "dk", "dv", "dNAME", and "map" if it has one;
/// in float also "picture.NAME", of the last image. `place` gives grid and class token; `products` must be exact in
/// double.
template <class T>
Tensors run_mechanism(const std::string& name, const OptionValues& options, const Tensors& given,
                      const AttentionShape& place = {}, Products products = Products::exact);

/// Checks that errors are at most `tolerance` times max(|expected|, 1): for hand-calculated values.
void check_near(const Tensor<double>& got, const std::vector<double>& expected, double tolerance = 1e-14);

/// Checks that two runs agree: elements differ by at most `tolerance` times the larger of two values, the tensor's
/// largest magnitude in `b` and `least` times the largest magnitude in all of `a`. Ignores tensors that only one run
/// has; no element may be infinite or NaN.
void check_same(const Tensors& a, const Tensors& b, double tolerance, const std::string& what, double least = 0.01);

/// Returns a mechanism's error for these options or this shape; empty if there is none.
std::string refusal(const std::string& name, const OptionValues& options, const AttentionShape& shape = {});

}  // namespace heed
