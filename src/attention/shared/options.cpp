#include "heed/attention/options.h"

#include "heed/base/float_range.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed {

namespace {

/// Option that every mechanism accepts; a mechanism without a causal form accepts only false.
constexpr const char* causal = "causal";

}  // namespace

const std::string* OptionReader::take(const char* name) {
  known_.emplace_back(name);
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void OptionReader::operator()(const char* name, bool& value, const char*) {
  const std::string* const text = take(name);
  if (!text) return;
  require(*text == "true" || *text == "false", "[{}] {} is '{}'; expected true or false", owner_, name, *text);
  value = *text == "true";
}

std::string option_text(bool value) { return value ? "true" : "false"; }
std::string option_text(Index value) { return value == not_set ? "not set" : std::to_string(value); }
std::string option_text(double value) { return fmt::format("{}", value); }
std::string option_text(std::optional<double> value) { return value ? option_text(*value) : "not set"; }

void OptionReader::operator()(const char* name, Index& value, const char*) {
  // Far above any useful value; sums with token counts still fit in 64 bits.
  constexpr Index most = 1'000'000'000'000;
  const Index least = value == not_set ? 0 : -most;
  if (const std::string* const text = take(name))
    require(parse_number(*text, value) && value >= least && value <= most,
            "[{}] {} is '{}'; expected a whole number{} {}", owner_, name, *text,
            least == 0 ? " from 0 to" : " of at most", most);
}

void OptionReader::operator()(const char* name, double& value, const char*) {
  const std::string* const text = take(name);
  if (!text) return;
  require(parse_number(*text, value), "[{}] {} is '{}'; expected a number", owner_, name, *text);
  require(!exceeds_float(value), "[{}] {} is '{}'; expected {}", owner_, name, *text, within_float);
}

void OptionReader::operator()(const char* name, std::optional<double>& value, const char* meaning) {
  if (double number = 0; values_.contains(name)) {
    (*this)(name, number, meaning);
    value = number;
  } else {
    take(name);
  }
}

std::size_t OptionReader::choose(const char* name, std::size_t fallback, const std::vector<std::string>& names) {
  const std::string* const text = take(name);
  if (!text) return fallback;
  const auto found = std::find(names.begin(), names.end(), *text);
  require(found != names.end(), "[{}] {} is {}{}", owner_, name, in_quotes(*text), suggestion(*text, names));
  return static_cast<std::size_t>(found - names.begin());
}

void OptionReader::finish() const {
  for (const auto& [name, text] : values_) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    if (name == causal && text == "false") continue;
    if (name == causal)
      fail("[{}] causal is {}; expected false, since the mechanism has no causal form", owner_, in_quotes(text));
    fail("[{}] has no option '{}'{}", owner_, name,
         known_.empty() ? std::string("; the mechanism has no options") : suggestion(name, known_));
  }
}

std::vector<std::string> option_names(const MechanismEntry& entry) {
  std::vector<std::string> names;
  for (const OptionInfo& option : entry.options()) names.push_back(option.name);
  if (std::find(names.begin(), names.end(), causal) == names.end()) names.emplace_back(causal);
  return names;
}

}  // namespace heed
