#include "number_text.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace heed::cli {

namespace {

/// Formats a number with four digits and one of the prefixes, each of which is a thousand times the previous one. A
/// whole number with the first prefix has no decimals.
std::string with_prefix(double value, std::span<const char* const> prefixes) {
  std::size_t prefix = 0;
  // 999.95 would be rounded to 1000.
  while (std::abs(value) >= 999.95 && prefix + 1 < prefixes.size()) value /= 1000, ++prefix;
  if (prefix == 0 && value == std::floor(value)) return fmt::format("{:.0f}{}", value, prefixes[0]);
  const int decimals = std::abs(value) < 9.9995 ? 3 : std::abs(value) < 99.995 ? 2 : 1;
  return fmt::format("{:.{}f}{}", value, decimals, prefixes[prefix]);
}

}  // namespace

NumberFormat fixed(int decimals, std::string unit) {
  return [=](double value) {
    const std::string text = with_sign(value, decimals);
    return (text.front() == '+' ? text.substr(1) : text) + unit;
  };
}

std::string with_sign(double value, int decimals) {
  std::string text = fmt::format("{:+.{}f}", value, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos) text.front() = '+';
  return text;
}

NumberFormat significant(int digits) {
  return [=](double value) { return fmt::format("{:.{}g}", value, digits); };
}

std::string digits(double value) { return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0); }

std::string percent(double fraction) { return fmt::format("{:.0f} %", 100 * fraction); }

std::string si(double value) {
  constexpr const char* prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  return with_prefix(value, prefixes);
}

std::string joules(double pj) {
  constexpr const char* units[] = {" pJ", " nJ", " uJ", " mJ", " J", " kJ", " MJ"};
  return with_prefix(pj, units);
}

std::string grouped(double value) {
  std::string text = std::to_string(std::lround(value));
  const long first = text.front() == '-' ? 1 : 0;  // index of the first digit
  for (long place = static_cast<long>(text.size()) - 3; place > first; place -= 3)
    text.insert(static_cast<std::size_t>(place), 1, ',');
  return text;
}

}  // namespace heed::cli
