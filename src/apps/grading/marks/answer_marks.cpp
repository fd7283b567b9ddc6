#include "answer_marks.h"

#include "heed/base/random.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace heed {

namespace {

/// Recursive-descent parser of a formula: a sum of products of powers of factors.
class Formula {
 public:
  Formula(const std::string& text, const std::map<std::string, double>& values) : text_(text), values_(values) {}

  double value() {
    const double all = sum();
    if (next() != '\0') refuse(fmt::format("'{}' is not expected", text_.substr(at_, 1)));
    if (!std::isfinite(all)) refuse("its value is not finite");
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { fail("formula {}: {}", in_quotes(text_), why); }

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  double sum() {
    double all = product();
    for (;;) {
      if (take('+'))
        all += product();
      else if (take('-'))
        all -= product();
      else
        return all;
    }
  }

  double product() {
    double all = power();
    for (;;) {
      if (take('*'))
        all *= power();
      else if (take('/'))
        all /= power();
      else
        return all;
    }
  }

  /// Parses a power: -a^b is -(a^b), and a^b^c is a^(b^c).
  double power() {
    if (++depth_ > 100) refuse("it is nested too deeply");
    const bool negative = take('-');
    double base = negative ? power() : factor();
    if (!negative && take('^')) base = std::pow(base, power());
    --depth_;
    return negative ? -base : base;
  }

  double factor() {
    if (take('(')) return in_parentheses();
    const std::size_t start = (next(), at_);
    if (start < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[start])) || text_[start] == '.')) {
      double number = 0;
      const auto [end, error] = std::from_chars(text_.data() + start, text_.data() + text_.size(), number);
      if (error != std::errc()) refuse("a number cannot be read");
      at_ = static_cast<std::size_t>(end - text_.data());
      return number;
    }
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string name = text_.substr(start, at_ - start);
    if (name.empty()) refuse("a number or a name is missing");
    if (take('(')) return function(name);
    const auto found = values_.find(name);
    if (found == values_.end()) refuse(fmt::format("unknown value {}", in_quotes(name)));
    return found->second;
  }

  double in_parentheses() {
    const double value = sum();
    if (!take(')')) refuse("a ')' is missing");
    return value;
  }

  double function(const std::string& name) {
    const double a = sum();
    if (name == "min" || name == "max") {
      if (!take(',')) refuse(name + " expects two numbers");
      const double b = in_parentheses();
      if (std::isnan(a) || std::isnan(b)) return a + b;  // std::min may ignore a NaN
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    if (!take(')')) refuse("a ')' is missing");
    if (name == "sqrt") return std::sqrt(a);
    if (name == "exp") return std::exp(a);
    if (name == "log") return std::log(a);
    if (name == "abs") return std::abs(a);
    refuse(fmt::format("unknown function {}", in_quotes(name)));
  }

  const std::string& text_;
  const std::map<std::string, double>& values_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// Returns a hash with many rounds, to slow down guessing.
std::string hash_of(const std::string& text) {
  RandomStream stream(text.size());
  stream = stream.derive(text);
  for (std::uint64_t round = 0; round < 100'000; ++round) stream = stream.derive(round);
  return fmt::format("{:016x}", stream.bits(0));
}

std::string plain_word(const std::string& word) {
  std::string plain;
  for (const char c : word)
    if (!std::isspace(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

/// Returns x rounded to `digits` digits; for `neighbour` 1 or -1, the next larger or smaller number of `digits` digits.
std::string rounded(double x, Index digits, int neighbour) {
  if (x == 0) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(x))) - static_cast<double>(digits - 1));
  const std::string text = fmt::format("{:.{}e}", std::round(x / unit) * unit, digits - 1);
  const std::size_t e = text.find('e');
  if (neighbour == 0 || e == std::string::npos) return text;  // no e: "nan" or "inf", for extreme x
  // Computes neighbours of the rounded number, not of x: 9.996 is 10.0 in three digits, between 9.99 and 10.1.
  std::string figures = text.substr(0, e);
  std::erase(figures, '.');
  Index steps = std::stoll(figures) + neighbour, exponent = std::stoll(text.substr(e + 1)) - (digits - 1);
  if (static_cast<double>(std::abs(steps)) < std::pow(10.0, digits - 1))
    steps = 10 * steps + (x < 0 ? -9 : 9), --exponent;
  return fmt::format("{:.{}e}", std::strtod(fmt::format("{}e{}", steps, exponent).c_str(), nullptr), digits - 1);
}

/// Returns the hash of an answer: a word, or a number rounded by rounded(). inf, -inf and nan count as words, in any
/// spelling, such as "infinity".
std::string hash_in(const std::string& lab, const std::string& point, const Answer& answer, Index digits,
                    int neighbour) {
  const auto* const word = std::get_if<std::string>(&answer);
  const double number = word ? number_in(plain_word(*word)).value_or(0) : std::get<double>(answer);
  const std::string text = std::isnan(number)       ? "nan"
                           : !std::isfinite(number) ? fmt::format("{}", number)
                           : word                   ? plain_word(*word)
                                                    : rounded(number, digits, neighbour);
  return hash_of(lab + "\n" + point + "\n" + text);
}

}  // namespace

double formula_value(const std::string& formula, const std::map<std::string, double>& values) {
  return Formula(formula, values).value();
}

std::optional<double> number_in(const std::string& text) {
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  double number = 0;
  return parse_number(std::string_view(text).substr(plus), number) ? std::optional(number) : std::nullopt;
}

std::string answer_hash(const std::string& lab, const std::string& point, const Answer& answer, Index digits) {
  return hash_in(lab, point, answer, digits, 0);
}

Mark mark_answer(const std::string& lab, const LabPoint& point, const Answer* answer,
                 const std::map<std::string, double>& values) {
  if (answer == nullptr) return {false, {"there is no answer"}};
  const auto* const word = std::get_if<std::string>(answer);
  if (word && plain_word(*word) == "notyet") return {false, {"not yet"}};
  const double* const number = std::get_if<double>(answer);
  const bool not_finite = number && !std::isfinite(*number);
  if (!point.hash.empty()) {
    for (const int neighbour : {0, -1, 1})
      if (hash_in(lab, point.name, *answer, point.digits, neighbour) == point.hash) return {true, {}};
    const std::optional<double> quoted = word ? number_in(plain_word(*word)) : std::nullopt;
    if (quoted && std::isfinite(*quoted)) return {false, {"it is a string; a number has no quotes"}};
    if (!not_finite) return {false, {}};
  }
  if (not_finite) return {false, {"it is not a number"}};
  const double right = formula_value(point.formula, values);
  if (number == nullptr) return {false, {"it is a string; expected a number"}};
  if (std::abs(*number - right) <= point.tolerance * std::abs(right)) return {true, {}};
  // Does not say whether the number is too large: a few tries would then find the answer.
  if (right == 0 || *number == 0) return {false, {"it is wrong"}};
  const double ratio = *number / right;
  if (!(ratio > 0)) return {false, {"its sign is wrong"}};
  if (ratio > 10 || ratio < 0.1) return {false, {"it is wrong by a factor of more than 10"}};
  return {false, {"it is wrong"}};
}

}  // namespace heed
