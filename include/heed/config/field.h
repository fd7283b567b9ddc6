// Rules for the keys of configuration files. Each configuration struct lists its keys once, in a function
// `fields(config, visit)` that calls visit(key, member, rule, meaning) for each; reading, printing, checking and
// spelling suggestions all use that list.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace heed {

/// Valid values of a key; for a list, of each item.
struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;                 ///< excludes `low`
  bool below_high = false;                ///< excludes `high`
  std::vector<std::string> choices = {};  ///< valid texts; empty: any text
  std::string if_true = {};               ///< the choice that `true` selects; `false` selects the first choice
  bool required = false;                  ///< the key has no default
  bool per_block = false;                 ///< a list with one item per block, or a single value for all blocks
  bool per_stage = false;                 ///< a list with one item per stage
};

/// Allows any value of the member's type.
inline Rule anything() { return {}; }

/// Allow numbers >= `low`, and numbers > `low`.
inline Rule at_least(double low) { return {.low = low}; }
inline Rule more_than(double low) { return {.low = low, .above_low = true}; }

/// Allows `low` to `high`, inclusive.
inline Rule between(double low, double high) { return {.low = low, .high = high}; }

/// Allows numbers >= 0 and < 1: decay rates and drop probabilities.
inline Rule fraction() { return {.low = 0, .high = 1, .below_high = true}; }

/// Allows a size or a count. The upper bound is far above any use and keeps products of three sizes within 64 bits.
inline Rule one_or_more() { return {.low = 1, .high = 1e6}; }

/// Requires a size.
inline Rule required_size() { return {.low = 1, .high = 1e6, .required = true}; }

/// Requires the side of an image: at most the largest side of a JPEG, to bound the number of pixels.
inline Rule required_side() { return {.low = 1, .high = 65535, .required = true}; }

/// Requires a number of blocks, bounded because each is an object with a dozen tensors.
inline Rule required_depth() { return {.low = 1, .high = 1e4, .required = true}; }

/// Requires a size for each stage.
inline Rule required_sizes(double low = 1, double high = 1e6) {
  return {.low = low, .high = high, .required = true, .per_stage = true};
}

/// Allow one of the choices; with required_one_of() the key has no default.
inline Rule one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

inline Rule required_one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices), .required = true};
}

/// Allows one of the choices, for all blocks or stages, or a list with one item for each.
inline Rule per_block(std::vector<std::string> choices) { return {.choices = std::move(choices), .per_block = true}; }

/// T is `Config` or `const Config`, so that one list of fields serves reading and printing.
template <class T, class Config>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Config>;

}  // namespace heed
