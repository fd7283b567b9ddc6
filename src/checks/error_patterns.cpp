#include "error_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

namespace heed {

namespace {

using Numbers = std::vector<double>;
using Found = std::optional<ErrorPattern>;

class Patterns {
 public:
  explicit Patterns(const ErrorPart& part) : p_(part), count_(part.got.size()) {
    for (const double e : p_.expected) weighty_ += !zero(e);
  }

  ErrorPattern first() const {
    // Patterns are tried from the most to the least specific. If only one expected element is not 0, a result
    // that is a multiple of the expected one says little, so factor() reports only factors with a known meaning.
    if (got_is([](std::size_t) { return 0.0; }))
      return {ErrorKind::missing, "missing: all elements are 0, as if never written"};
    if (weighty_ == 0) return {ErrorKind::superfluous, "superfluous: all elements should be 0"};
    if (got_is([&](std::size_t i) { return -p_.expected[i]; }))
      return {ErrorKind::negative, "like the negative of what it should be"};
    if (const Found found = factor()) return *found;
    if (weighty_ < 2) return unknown();
    for (const auto find : {&Patterns::signs, &Patterns::displaced, &Patterns::summed, &Patterns::factors,
                            &Patterns::offset, &Patterns::offsets})
      if (const Found found = (this->*find)()) return *found;
    return unknown();
  }

  Found displaced() const {
    if (weighty_ < 2 || !std::equal(p_.whole.begin(), p_.whole.end(), p_.sizes.begin())) return {};
    if (const Found found = transposed()) return found;
    return moved();
  }

 private:
  bool zero(double x) const { return std::abs(x) <= p_.same.relative * p_.same.floor; }

  /// Returns true if each element i of got equals value(i).
  template <class Value>
  bool got_is(const Value& value) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (!p_.same(p_.got[i], value(i))) return false;
    return true;
  }

  /// Returns the c that minimises |c E - G| over the selected elements; null if all E are 0 there.
  template <class Chosen>
  std::optional<double> nearest_factor(const Chosen& chosen) const {
    double ge = 0, ee = 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (chosen(i)) ge += p_.got[i] * p_.expected[i], ee += p_.expected[i] * p_.expected[i];
    if (!(ee > p_.same.floor * p_.same.floor * p_.same.relative)) return {};
    return ge / ee;
  }

  /// A factor's explanation, with and without the actual sizes: "1/sqrt(4 channels)", "1/sqrt(channels)".
  struct Meaning {
    std::string here, anywhere;
  };

  /// Returns the known explanations of the factor c, such as a size; empty if there are none.
  std::vector<Meaning> meanings(double c) const {
    std::vector<Meaning> found;
    const auto offer = [&](double value, const std::string& here, const std::string& anywhere) {
      const std::string sign = c < 0 ? "-" : "";
      if (value == 1) return;
      if (std::abs(std::abs(c) - value) <= 1e-4 * value) found.push_back({sign + here, sign + anywhere});
      if (std::abs(std::abs(c) - 1 / value) <= 1e-4 / value)
        found.push_back({sign + "1/" + here, sign + "1/" + anywhere});
    };
    for (int n = 2; n <= 4; ++n) offer(n, std::to_string(n), std::to_string(n));
    for (std::size_t axis = 0; axis < p_.axes.size(); ++axis) {
      const Index size = p_.whole[static_cast<int>(axis)];
      const std::string here = fmt::format("({} {}s)", size, p_.axes[axis]), anywhere = "(" + p_.axes[axis] + "s)";
      offer(static_cast<double>(size), here, anywhere);
      offer(std::sqrt(static_cast<double>(size)), "sqrt" + here, "sqrt" + anywhere);
    }
    return found;
  }

  Found factor() const {
    const std::optional<double> c = nearest_factor([](std::size_t) { return true; });
    if (!c) return {};
    const std::vector<Meaning> found = meanings(*c);
    if (weighty_ < 2 && found.empty()) return {};
    if (!got_is([&](std::size_t i) { return *c * p_.expected[i]; })) return {};
    ErrorPattern pattern{ErrorKind::factor, fmt::format("like {:.6g} times what it should be", *c)};
    for (const Meaning& meaning : found) {
      pattern.text += (pattern.factors.empty() ? "; perhaps " : ", or ") + meaning.here;
      pattern.factors.push_back(meaning.anywhere);
    }
    return pattern;
  }

  Found signs() const {
    if (!got_is([&](std::size_t i) { return std::copysign(p_.expected[i], p_.got[i]); })) return {};
    return ErrorPattern{ErrorKind::signs, "like what it should be, except that some elements have the wrong sign"};
  }

  // ---- Positions ----

  std::size_t size(std::size_t axis) const { return static_cast<std::size_t>(p_.sizes[axis]); }
  /// Returns the stride of an axis.
  std::size_t stride(std::size_t axis) const {
    std::size_t product = 1;
    for (std::size_t later = axis + 1; later < p_.sizes.size(); ++later) product *= size(later);
    return product;
  }
  std::size_t index(std::size_t element, std::size_t axis) const { return element / stride(axis) % size(axis); }

  Found transposed() const {
    for (std::size_t b = 1; b < p_.axes.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        if (size(a) < 2 || size(b) < 2) continue;
        const auto exchanged = [&](std::size_t i) {
          const std::size_t row = index(i, a), column = index(i, b);
          return p_.expected[i - row * stride(a) - column * stride(b) + column * stride(a) + row * stride(b)];
        };
        if (size(a) == size(b) && got_is(exchanged))
          return ErrorPattern{ErrorKind::transposed,
                              fmt::format("transposed: {} and {} are exchanged", p_.axes[a], p_.axes[b])};
      }
    if (p_.axes.size() < 2) return {};
    const std::size_t last = p_.axes.size() - 1;
    if (size(last) < 2 || size(last - 1) < 2) return {};
    // Matrices of the last two axes, stored column by column.
    const std::size_t rows = size(last - 1), columns = size(last), matrix = rows * columns;
    const auto by_columns = [&](std::size_t i) {
      return p_.expected[i - i % matrix + i % rows * columns + i % matrix / rows];
    };
    if (!got_is(by_columns)) return {};
    return ErrorPattern{ErrorKind::transposed,
                        fmt::format("transposed: stored by {1}s instead of by {0}s", p_.axes[last - 1], p_.axes[last])};
  }

  /// Returns true if slice i of got along an axis equals slice j of `from` and is not 0.
  bool same_slice(const Numbers& from, std::size_t axis, std::size_t i, std::size_t j) const {
    bool weighty = false;
    const std::size_t width = stride(axis), block = size(axis) * width;
    for (std::size_t begin = 0; begin < count_; begin += block)
      for (std::size_t e = 0; e < width; ++e) {
        const double other = from[begin + j * width + e];
        if (!p_.same(p_.got[begin + i * width + e], other)) return false;
        weighty |= !zero(other);
      }
    return weighty;
  }

  /// Finds slices along an axis that are shifted, reversed, permuted or repeated.
  Found moved() const {
    for (std::size_t axis = 0; axis < p_.axes.size(); ++axis) {
      const std::size_t n = size(axis);
      if (n < 2) continue;
      constexpr std::size_t none = ~std::size_t{0};
      std::vector<std::size_t> from(n, none);  // from[i]: slice of E equal to slice i of G
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n && from[i] == none; ++j)
          if (same_slice(p_.expected, axis, i, j)) from[i] = j;
      if (const Found found = movement(axis, from, none)) return found;
      bool repeated = true;
      for (std::size_t i = 1; i < n; ++i) repeated &= same_slice(p_.got, axis, i, 0);
      if (repeated && from[0] != none)
        return ErrorPattern{ErrorKind::repeated,
                            fmt::format("repeated: every {0} has the values of {0} {1}", p_.axes[axis], from[0])};
    }
    return {};
  }

  Found movement(std::size_t axis, const std::vector<std::size_t>& from, std::size_t none) const {
    const std::string& name = p_.axes[axis];
    const std::size_t n = from.size();
    for (const int by : {1, -1, 2, -2}) {
      std::size_t fits = 0, inside = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const long j = static_cast<long>(i) - by;
        if (j < 0 || j >= static_cast<long>(n)) continue;
        ++inside;
        fits += from[i] == static_cast<std::size_t>(j);
      }
      if (inside >= 2 && fits == inside)
        return ErrorPattern{ErrorKind::shifted,
                            fmt::format("shifted by {}: the values of {} i are at {} i {} {}", std::abs(by), name, name,
                                        by > 0 ? "+" : "-", std::abs(by))};
    }
    std::vector<bool> used(n, false);
    bool reversed = true;
    for (std::size_t i = 0; i < n; ++i) {
      if (from[i] == none || used[from[i]]) return {};
      used[from[i]] = true;
      reversed &= from[i] == n - 1 - i;
    }
    if (reversed && n > 2)
      return ErrorPattern{ErrorKind::reversed, fmt::format("reversed: its {}s are in reverse order", name)};
    return ErrorPattern{ErrorKind::permuted,
                        n == 2 ? fmt::format("exchanged: the two {}s are swapped", name)
                               : fmt::format("permuted: its {}s are in the order {}", name, fmt::join(from, ", "))};
  }

  // ---- Along one axis ----

  /// Returns x with each element replaced by the sum along an axis.
  Numbers sums(const Numbers& x, std::size_t axis) const {
    Numbers at_first(count_), result(count_);
    for (std::size_t i = 0; i < count_; ++i) at_first[i - index(i, axis) * stride(axis)] += x[i];
    for (std::size_t i = 0; i < count_; ++i) result[i] = at_first[i - index(i, axis) * stride(axis)];
    return result;
  }

  Found summed() const {
    for (std::size_t axis = 0; axis < p_.axes.size(); ++axis) {
      if (size(axis) < 2) continue;
      const Numbers sum = sums(p_.expected, axis);
      const double n = static_cast<double>(size(axis));
      for (const auto& [factor, what] : {std::pair{1.0, "sum"}, std::pair{1 / n, "mean"}})
        if (got_is([&, factor = factor](std::size_t i) { return factor * sum[i]; }))
          return ErrorPattern{ErrorKind::summed,
                              fmt::format("like the {} over all {}s, repeated for each of them", what, p_.axes[axis])};
    }
    return {};
  }

  Found factors() const {
    for (std::size_t axis = 0; axis < p_.axes.size(); ++axis) {
      const std::size_t n = size(axis);
      if (n < 2 || weighty_ < 3 * n / 2) continue;
      Numbers c;
      for (std::size_t i = 0; i < n; ++i)
        c.push_back(nearest_factor([&](std::size_t e) { return index(e, axis) == i; }).value_or(0));
      if (!got_is([&](std::size_t e) { return c[index(e, axis)] * p_.expected[e]; })) continue;
      std::string list;
      for (std::size_t i = 0; i < std::min<std::size_t>(n, 5); ++i)
        list += fmt::format("{}{:.4g}", i ? ", " : "", c[i]);
      return ErrorPattern{ErrorKind::factors, fmt::format("right up to one factor per {}: {}{}", p_.axes[axis], list,
                                                          n > 5 ? ", ..." : "")};
    }
    return {};
  }

  Found offset() const {
    const double c = difference(0);
    if (!got_is([&](std::size_t i) { return p_.expected[i] + c; })) return {};
    return ErrorPattern{ErrorKind::offset, fmt::format("like the expected value plus {:.6g}, everywhere", c)};
  }

  double difference(std::size_t i) const { return p_.got[i] - p_.expected[i]; }

  /// Finds an added or missing term that is constant along an axis.
  Found offsets() const {
    for (std::size_t axis = p_.axes.size(); axis-- > 0;) {
      if (size(axis) < 2) continue;
      const auto with_first = [&](std::size_t i) {
        return p_.expected[i] + difference(i - index(i, axis) * stride(axis));
      };
      if (got_is(with_first))
        return ErrorPattern{ErrorKind::offsets,
                            fmt::format("right except for a term that is the same for all {}s", p_.axes[axis])};
    }
    return {};
  }

  ErrorPattern unknown() const {
    const double of_got = largest_magnitude(p_.got), of_expected = largest_magnitude(p_.expected);
    double gg = 0, ge = 0, ee = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const double g = p_.got[i] / of_got, e = p_.expected[i] / of_expected;  // gg and ee neither overflow nor vanish
      gg += g * g, ge += g * e, ee += e * e;
    }
    const double ratio = of_got / of_expected * std::sqrt(gg / ee);
    return {
        ErrorKind::unknown,
        fmt::format(
            "like no simple mistake: its norm is {:.3g} times the expected one{}, the cosine of the two is {:.3f}",
            ratio, ratio > 1e10 ? " (is it read from memory that was never written?)" : "", ge / std::sqrt(gg * ee))};
  }

  const ErrorPart& p_;
  std::size_t count_;
  std::size_t weighty_ = 0;  ///< elements whose expected value is not 0
};

}  // namespace

ErrorPattern pattern_of(const ErrorPart& part) { return Patterns(part).first(); }

ErrorPattern displacement_of(const ErrorPart& whole) { return Patterns(whole).displaced().value_or(ErrorPattern{}); }

}  // namespace heed
