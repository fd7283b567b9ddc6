#include "heed/base/math.h"

#include "closed_form.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace heed {

namespace {

/// Product of powers of the sizes.
struct Monomial {
  std::string text;  ///< "B H N^2"
  int degree = 0;
  std::vector<double> values{};  ///< for each set of sizes
};

/// Returns all candidate terms of a form, simplest first. Letters whose sizes are always equal count as one, the first
/// of them; letters that are always 1 are left out.
std::vector<Monomial> monomials(std::span<const SizedNumber> numbers) {
  std::vector<Monomial> all{{"", 0, std::vector<double>(numbers.size(), 1.0)}};
  std::vector<std::vector<double>> seen;
  for (std::size_t letter = 0; letter < numbers[0].sizes.size(); ++letter) {
    const char name = numbers[0].sizes[letter].first;
    std::vector<double> sizes;
    for (const SizedNumber& number : numbers) sizes.push_back(static_cast<double>(number.sizes[letter].second));
    const bool all_one = std::all_of(sizes.begin(), sizes.end(), [](double size) { return size == 1; });
    if (all_one || std::find(seen.begin(), seen.end(), sizes) != seen.end()) continue;
    seen.push_back(sizes);
    const bool whole = name == 'B' || name == 'H';  // their squares never occur
    for (std::size_t i = 0, before = all.size(); i < before; ++i)
      for (int power = 1; power <= (whole ? 1 : 2) && (whole || all[i].degree + power <= 3); ++power) {
        Monomial m = all[i];
        m.text += fmt::format("{}{}{}", m.text.empty() ? "" : " ", name, power == 1 ? "" : "^2");
        if (!whole) m.degree += power;
        for (std::size_t k = 0; k < sizes.size(); ++k) m.values[k] *= math::pow(sizes[k], power);
        all.push_back(std::move(m));
      }
  }
  std::stable_sort(all.begin(), all.end(), [](const Monomial& a, const Monomial& b) { return a.degree < b.degree; });
  return all;
}

/// Returns true for a factor that occurs in closed forms: a small multiple of one half.
bool plain(double c) { return c != 0 && std::abs(c) <= 16 && std::abs(2 * c - std::round(2 * c)) < 1e-9; }

std::string term(double c, const Monomial& m, bool first) {
  const std::string sign = c < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
  const double size = std::abs(c);
  if (m.text.empty()) return sign + fmt::format("{:g}", size);
  return sign + (size == 1 ? "" : fmt::format("{:g} ", size)) + m.text;
}

}  // namespace

std::string closed_form(std::span<const SizedNumber> numbers) {
  if (numbers.empty() || numbers[0].sizes.empty()) return "";
  // Each set of sizes counts once.
  std::map<std::vector<std::pair<char, Index>>, Index> distinct;
  for (const SizedNumber& number : numbers) distinct[number.sizes] = number.value;
  if (distinct.size() < 2) return "";
  std::vector<SizedNumber> samples;
  for (const auto& [sizes, value] : distinct) samples.push_back({sizes, value});
  const std::vector<Monomial> all = monomials(samples);
  const auto fits = [&](const auto& form) {
    for (std::size_t k = 0; k < samples.size(); ++k)
      if (std::abs(form(k) - static_cast<double>(samples[k].value)) > 1e-6) return false;
    return true;
  };
  const double first = static_cast<double>(samples[0].value);
  const Monomial* simplest = nullptr;
  double factor = 0;
  const auto effort = [](double c) { return std::abs(math::log(std::abs(c))); };
  // Among forms of one degree, prefers the factor nearest to 1: if H is always 3, B H N rather than 3 B N.
  for (const Monomial& m : all) {
    const double c = first / m.values[0];
    if (!plain(c) || (simplest && (m.degree > simplest->degree || effort(c) >= effort(factor)))) continue;
    if (fits([&](std::size_t k) { return c * m.values[k]; })) simplest = &m, factor = c;
  }
  if (simplest) return term(factor, *simplest, true);
  if (distinct.size() < 3) return "";
  std::string best;
  double least = 1e9;  // effort of `best`, from its degrees and factors
  for (std::size_t j = 0; j < all.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const Monomial &a = all[i], &b = all[j];
      // Solves c_a a + c_b b = count for the first set of sizes and another for which a and b are independent.
      std::size_t other = 1;
      const auto determinant = [&] { return a.values[0] * b.values[other] - a.values[other] * b.values[0]; };
      while (other < samples.size() && determinant() == 0) ++other;
      if (other == samples.size()) continue;
      const double second = static_cast<double>(samples[other].value);
      const double ca = (first * b.values[other] - second * b.values[0]) / determinant();
      const double cb = (a.values[0] * second - a.values[other] * first) / determinant();
      const double effort = 4 * (a.degree + b.degree) + std::abs(ca) + std::abs(cb);
      if (!plain(ca) || !plain(cb) || effort >= least) continue;
      if (!fits([&](std::size_t k) { return ca * a.values[k] + cb * b.values[k]; })) continue;
      least = effort;
      best = term(cb, b, true) + term(ca, a, false);
    }
  return best;
}

}  // namespace heed
