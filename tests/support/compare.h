// Common code of the kernel tests. Fast kernels are compared with reference kernels in double; arrays start at
// unaligned addresses, and their surroundings must not change.
#pragma once

#include "heed/base/random.h"
#include "heed/base/tensor.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace heed::test {

/// Lengths around every register width up to 16 lanes, and longer ones.
inline const std::vector<Index> lengths{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50, 63, 64, 65, 97, 192, 301};

/// A float array that starts `offset` floats after an aligned address, with a guard on both sides.
class Guarded {
 public:
  Guarded(Index size, Index offset, float fill = 0)
      : size_(size), offset_(offset), memory_(Shape{size + offset + 2 * margin}) {
    std::fill(memory_.begin(), memory_.end(), guard);
    std::fill(data(), data() + size, fill);
  }
  Guarded(const std::vector<double>& values, Index offset) : Guarded(static_cast<Index>(values.size()), offset) {
    std::copy(values.begin(), values.end(), data());
  }

  float* data() { return memory_.data() + margin + offset_; }
  float operator[](Index i) const { return memory_.data()[margin + offset_ + i]; }
  bool guards_unchanged() const {
    for (Index i = 0; i < margin; ++i)
      if (memory_.data()[margin + offset_ - 1 - i] != guard || memory_.data()[margin + offset_ + size_ + i] != guard)
        return false;
    return true;
  }

 private:
  static constexpr Index margin = 32;
  static constexpr float guard = 12345.5f;
  Index size_, offset_;
  Tensor<float> memory_;
};

/// Returns numbers from N(0, deviation) that are exact in float, so that float and double have the same input.
inline std::vector<double> normal_floats(Index count, int stream, double deviation = 1) {
  const RandomStream random = RandomStream(17).derive(static_cast<std::uint64_t>(stream));
  std::vector<double> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(deviation * random.normal(static_cast<std::uint64_t>(i)));
  return values;
}

/// Returns sum_i a[i] b[i].
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Returns max_i |a[i] - b[i]|.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Requires |got[i] - expected[i]| <= bound(i) for all i (two NaNs or equal infinities agree), and names the first
/// element that fails.
template <class Bound>
void require_close(const std::string& what, const Guarded& got, const std::vector<double>& expected,
                   const Bound& bound) {
  BOOST_REQUIRE_MESSAGE(got.guards_unchanged(), what << ": wrote outside its array");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double g = got[static_cast<Index>(i)], e = expected[i];
    const bool same = (std::isnan(g) && std::isnan(e)) || g == e;
    BOOST_REQUIRE_MESSAGE(same || std::abs(g - e) <= bound(i),
                          what << ": element " << i << " is " << g << ", expected " << e << " within " << bound(i));
  }
}

}  // namespace heed::test
