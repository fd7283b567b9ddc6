// Comparison of a fast float kernel with the reference in double: at lengths around every register width, with rows at
// any alignment and with gaps, with tiny, infinite and NaN elements. A hash verifies that its results have
// the same bits on all CPUs.
#pragma once

#include "heed/base/matrix.h"
#include "heed/base/subnormals.h"
#include "support/compare.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

namespace heed::test {

/// An array operand of a kernel: [rows, columns], with or without gaps between its rows.
struct Array {
  enum class Role {
    read,
    changed,
    made  ///< written only: NaN before the call
  };
  enum class Range {
    all,       ///< N(0, 1)
    positive,  ///< |N(0, 1)|
    limits,    ///< as `all`; at infinities the fast kernel returns the limit, but the formula may not
    finite     ///< as `all`, and must be finite
  };
  Index rows, columns;
  Role role = Role::read;
  Range range = Range::all;
  bool gaps = true;  ///< gaps of 3 elements

  Index stride() const { return columns + (gaps ? 3 : 0); }
  bool is_result() const { return role == Role::changed || role == Role::made; }
};

/// Arrays of a call of the reference in double.
struct Call {
  std::vector<Matrix<const double>> given, results;  ///< before and after the call
};

inline constexpr double unspecified = -1;

/// A kernel with a fast version.
struct FastKernel {
  std::string name;
  std::function<std::vector<Array>(Index rows, Index n)> arrays;
  std::function<void(const std::vector<Matrix<float>>&)> fast;
  std::function<void(const std::vector<Matrix<double>>&)> plain;
  /// The contract's bound on the error of result `a` at (r, c); `unspecified` if the contract has none.
  std::function<double(const Call&, std::size_t a, Index r, Index c)> bound;
  bool of_rows = true;  ///< false: the kernel takes n elements, not rows
};

/// Return the fast kernels, by group.
std::vector<FastKernel> fast_kernels_of_rows();
std::vector<FastKernel> fast_kernels_of_features();
std::vector<FastKernel> fast_kernels_of_pairs();
std::vector<FastKernel> fast_kernels_of_windows();

using Role = Array::Role;
using Range = Array::Range;
inline constexpr double u = 0x1p-24;  ///< bound on float's relative rounding error

/// Returns a kernel whose call is generic in the number type.
template <class F, class Bound>
FastKernel fast_kernel(const std::string& name, const std::function<std::vector<Array>(Index, Index)>& arrays,
                       const F& call, const Bound& bound) {
  return {name, arrays, [call](const auto& m) { call(m); }, [call](const auto& m) { call(m); }, bound};
}

/// Return the sum and the maximum of term(i) over i < n.
double sum_over(Index n, const auto& term) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += term(i);
  return sum;
}
double largest_over(Index n, const auto& term) {
  double largest = -INFINITY;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, term(i));
  return largest;
}

/// 64-bit FNV-1a hash of the bits of floats. All NaNs count as equal.
class FloatHash {
 public:
  void add(float x) {
    const std::uint32_t bits = std::isnan(x) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(x);
    for (int byte = 0; byte < 4; ++byte) hash_ = (hash_ ^ ((bits >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

namespace detail {

/// Values of a trial. With `tiny`, one third of the values is scaled by 1e-40, and another third is replaced by 0 or
/// -0. `number` replaces element `place` of array `array`.
struct Numbers {
  bool tiny = false;
  std::size_t array = 0;
  Index place = -1;
  double number = 0;
};

class Trial {
 public:
  Trial(const FastKernel& kernel, Index rows, Index n, const Numbers& numbers)
      : kernel_(kernel), arrays_(kernel.arrays(rows, n)) {
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      given_.push_back(values(arrays_[a], a, numbers));
      expected_.push_back(given_[a]);
      fast_.push_back(std::make_unique<Guarded>(given_[a], static_cast<Index>(a) + 1));
    }
  }

  /// Runs both kernels and compares the results; `what` describes the arguments in messages.
  void run(const std::string& what) {
    std::vector<Matrix<float>> fast;
    std::vector<Matrix<double>> plain;
    Call call;
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      fast.push_back(matrix(fast_[a]->data(), a));
      plain.push_back(matrix(expected_[a].data(), a));
      call.given.push_back(matrix(std::as_const(given_[a]).data(), a));
      call.results.push_back(plain.back());
    }
    kernel_.plain(plain);
    kernel_.fast(fast);
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      const std::string where = kernel_.name + ", " + what + ", array " + std::to_string(a);
      BOOST_REQUIRE_MESSAGE(fast_[a]->guards_unchanged(), where << ": wrote outside");
      for (Index i = 0; i < static_cast<Index>(given_[a].size()); ++i) check(call, a, i, where);
    }
  }

  /// Runs the fast kernel with subnormals flushed to zero, as in the program, and adds the results to `hash`.
  void add_to(FloatHash& hash) {
    std::vector<Matrix<float>> fast;
    for (std::size_t a = 0; a < arrays_.size(); ++a) fast.push_back(matrix(fast_[a]->data(), a));
    flush_subnormals();
    kernel_.fast(fast);
    flush_subnormals(false);
    for (std::size_t a = 0; a < arrays_.size(); ++a)
      for (Index i = 0; i < static_cast<Index>(given_[a].size()); ++i)
        if (arrays_[a].is_result() && i % arrays_[a].stride() < arrays_[a].columns) hash.add((*fast_[a])[i]);
  }

 private:
  template <class T>
  Matrix<T> matrix(T* data, std::size_t a) const {
    return {data, arrays_[a].rows, arrays_[a].columns, arrays_[a].stride()};
  }

  static std::vector<double> values(const Array& array, std::size_t a, const Numbers& numbers) {
    std::vector<double> x = normal_floats(array.rows * array.stride(), static_cast<int>(a) + 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (numbers.tiny && i % 3 == 0) x[i] = static_cast<float>(1e-40 * x[i]);
      if (numbers.tiny && i % 3 == 1) x[i] = std::copysign(0.0, x[i]);
      if (array.range == Array::Range::positive) x[i] = std::abs(x[i]);
      if (array.role == Array::Role::made) x[i] = NAN;
    }
    if (numbers.place >= 0 && numbers.array == a) {
      const Index c = numbers.place % array.columns, r = numbers.place / array.columns;
      x[static_cast<std::size_t>(r * array.stride() + c)] = numbers.number;
    }
    return x;
  }

  void check(const Call& call, std::size_t a, Index i, const std::string& where) const {
    const Array& array = arrays_[a];
    const Index r = i / array.stride(), c = i % array.stride();
    const double got = (*fast_[a])[i], expected = static_cast<float>(expected_[a][static_cast<std::size_t>(i)]);
    const bool result = array.is_result() && c < array.columns;
    double bound = result ? kernel_.bound(call, a, r, c) : 0;
    if (bound == unspecified) return;
    // For non-finite elements the bound may be non-finite; finite results must then be correct to 1e-4.
    if (!std::isfinite(bound)) bound = 1e-4 * std::max(1.0, std::abs(expected));
    const bool agree =
        std::isfinite(expected) ? std::abs(got - expected) <= bound + (result ? 0x1p-125 : 0.0) : !std::isfinite(got);
    BOOST_REQUIRE_MESSAGE(
        agree, where << "(" << r << "," << c << ") is " << got << ", expected " << expected << " within " << bound);
  }

  const FastKernel& kernel_;
  std::vector<Array> arrays_;
  std::vector<std::vector<double>> given_, expected_;
  std::vector<std::unique_ptr<Guarded>> fast_;
};

}  // namespace detail

/// Requires that the fast kernel is within the bound of its contract: results are finite if the reference's are, and
/// within the bound; otherwise non-finite. Gaps and surroundings of the arrays must not change. Returns a hash of the
/// results for operands without tiny or non-finite elements.
inline std::uint64_t hold_against_plain(const FastKernel& kernel) {
  std::vector<std::pair<Index, Index>> sizes;
  for (const Index n : lengths)
    for (const Index rows : {1, 5})
      if (kernel.of_rows || rows == 1) sizes.emplace_back(rows, n);
  sizes.emplace_back(kernel.of_rows ? 0 : 1, kernel.of_rows ? 7 : 0);
  FloatHash hash;
  for (const auto& [rows, n] : sizes) {
    const std::string size = std::to_string(rows) + " x " + std::to_string(n);
    for (const bool tiny : {false, true})
      detail::Trial(kernel, rows, n, {.tiny = tiny}).run(size + (tiny ? ", tiny numbers" : ""));
    detail::Trial(kernel, rows, n, {}).add_to(hash);
    if (n > 65) continue;  // longer rows add no new case
    const std::vector<Array> arrays = kernel.arrays(rows, n);
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      const Index count = arrays[a].rows * arrays[a].columns;
      if (count == 0 || arrays[a].role == Array::Role::made || arrays[a].range == Array::Range::finite) continue;
      for (const double number : {1.0 * INFINITY, -1.0 * INFINITY, 1.0 * NAN})
        for (const Index place : {Index{0}, count / 2, count - 1}) {
          if (std::isinf(number) && arrays[a].range == Array::Range::limits) continue;
          if (number < 0 && arrays[a].range == Array::Range::positive) continue;
          detail::Trial(kernel, rows, n, {false, a, place, number})
              .run(fmt::format("{}, {} at {} of array {}", size, number, place, a));
        }
    }
  }
  return hash.value();
}

}  // namespace heed::test
