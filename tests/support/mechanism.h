// Runs a mechanism by itself: tensors in by name, results and gradients out by name.
#pragma once

#include "heed/attention/mechanism.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Tensors by name. Held as double whatever they were computed in.
using Tensors = std::map<std::string, Tensor<double>>;

/// One image and one head [1, 1, tokens, channels].
Tensor<double> tokens(Index count, Index channels, const std::vector<double>& values);

/// U(-spread, spread), of numbers that float holds too, so that both types are given the same.
Tensor<double> random_tensor(const Shape& shape, std::uint64_t seed, double spread = 1);

/// Runs a mechanism in T, float or double, on `given`: "q", "k" and "v" [B, H, N or M, channels], its own tensors under
/// their names, and "dout", ones where it is left out. Returns "out", "dq", "dk", "dv", "dNAME", and "map" where it has
/// one; in float also "picture.NAME", of the last image. `place` says what lies where: grid and class token.
template <class T>
Tensors run_mechanism(const std::string& name, const OptionValues& options, const Tensors& given,
                      const AttentionShape& place = {});

/// Checks each element against |expected| or 1, whichever is larger, times `tolerance`: numbers worked out by hand.
void check_near(const Tensor<double>& got, const std::vector<double>& expected, double tolerance = 1e-14);

/// Checks that two runs agree: elements differ by at most `tolerance` of their tensor's largest, or of `least` of the
/// largest of all where a tensor vanishes. Tensors that `b` lacks are passed over; nothing may be infinite or NaN.
void check_same(const Tensors& a, const Tensors& b, double tolerance, const std::string& what, double least = 0.01);

/// What a mechanism says when it refuses these options or this shape; empty if it does not.
std::string refusal(const std::string& name, const OptionValues& options, const AttentionShape& shape = {});

}  // namespace heed
