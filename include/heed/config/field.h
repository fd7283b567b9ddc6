// Rules for the keys of configuration files. Each configuration struct lists its keys once, in a function
// `fields(config, visit)` that calls visit(key, member, rule, meaning) for each; reading, printing, checking and
// the suggestions for misspelt keys all go through that list.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace heed {

/// The values that a key admits; for a list, each of its items.
struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;                 ///< low itself is refused
  bool below_high = false;                ///< high itself is refused
  std::vector<std::string> choices = {};  ///< admitted texts; empty: any text
  std::string if_true = {};               ///< the text that true stands for; false: the first choice
  bool required = false;                  ///< there is no default
  bool per_block = false;  ///< a list may be given as one value, meant for all blocks, or has one item per block
  bool per_stage = false;  ///< a list that has one item per stage
};

/// Any value of the member's type.
inline Rule anything() { return {}; }

inline Rule at_least(double low) { return {.low = low}; }
inline Rule more_than(double low) { return {.low = low, .above_low = true}; }

/// From `low` to `high`, both included.
inline Rule between(double low, double high) { return {.low = low, .high = high}; }

/// From 0 to below 1: decay rates and the probabilities of dropping something.
inline Rule fraction() { return {.low = 0, .high = 1, .below_high = true}; }

/// A size or a count. The bound is far above any use and keeps products of three sizes within 64 bits.
inline Rule one_or_more() { return {.low = 1, .high = 1e6}; }

/// A size that has no default.
inline Rule required_size() { return {.low = 1, .high = 1e6, .required = true}; }

/// The side of an image, at most that of a JPEG, which bounds the number of pixels.
inline Rule required_side() { return {.low = 1, .high = 65535, .required = true}; }

/// A number of blocks. Each is an object with a dozen tensors, which bounds it.
inline Rule required_depth() { return {.low = 1, .high = 1e4, .required = true}; }

/// A size for each stage.
inline Rule required_sizes(double low = 1, double high = 1e6) {
  return {.low = low, .high = high, .required = true, .per_stage = true};
}

inline Rule one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

inline Rule required_one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices), .required = true};
}

/// One of the choices for all blocks, or a list with one for each block; of a model of stages, for each stage.
inline Rule per_block(std::vector<std::string> choices) { return {.choices = std::move(choices), .per_block = true}; }

/// `T` or `const T`: so that one list of fields serves reading and printing.
template <class T, class Config>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Config>;

}  // namespace heed
