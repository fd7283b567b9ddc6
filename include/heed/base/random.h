// Counter-based random numbers: a value depends only on (seed, stream, index), not on previous draws. So every thread,
// and every resumed run, computes the same bits.
#pragma once

#include "heed/base/math.h"
#include "heed/base/tensor.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace heed {

/// The SplitMix64 finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014, with
/// Stafford's constants): a bijection of 64-bit words in which every input bit affects every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A stream of random numbers addressed by index.
class RandomStream {
 public:
  constexpr explicit RandomStream(std::uint64_t seed = 0) : key_(mix_bits(seed + golden)) {}

  /// Returns a separate stream for each `id`. Derivations chain: stream.derive(epoch).derive(image).
  constexpr RandomStream derive(std::uint64_t id) const {
    RandomStream child;
    child.key_ = mix_bits(key_ ^ mix_bits(id * golden + 0x632be59bd9b4e019u));
    return child;
  }

  /// Returns a separate stream for a name, such as a parameter's: 64-bit FNV-1a of its bytes.
  constexpr RandomStream derive(std::string_view name) const {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return derive(hash);
  }

  /// Returns 64 random bits at `index`.
  constexpr std::uint64_t bits(Index index) const {
    return mix_bits(key_ + (static_cast<std::uint64_t>(index) + 1) * golden);
  }

  /// Returns a uniform value in [0, 1), with 53 random bits.
  constexpr double uniform(Index index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

  /// Returns a uniform value in [low, high).
  constexpr double uniform(Index index, double low, double high) const { return low + (high - low) * uniform(index); }

  /// Returns a uniform integer in [0, n), n < 2^32. The relative bias is below n / 2^32, too small to matter.
  constexpr Index below(Index index, Index n) const {
    return static_cast<Index>(((bits(index) >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

  /// Returns a standard normal value (Box-Muller), from the bits at 2 index and 2 index + 1.
  double normal(Index index) const {
    const double radius = std::sqrt(-2 * math::log(1 - uniform(2 * index)));
    return radius * math::cos(2 * std::numbers::pi * uniform(2 * index + 1));
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  std::uint64_t key_ = 0;
};

}  // namespace heed
