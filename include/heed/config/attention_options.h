// [attention] of an experiment: the mechanism and its options.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heed {

/// The value of an option. Its mechanism parses and checks the text (attention/options.h).
struct OptionValue {
  std::string text;                 ///< without quotes; numbers and booleans in TOML's notation
  std::string where;                ///< source, the beginning of error messages: "experiments/a.toml:12" or "--set"
  std::vector<std::string> list{};  ///< one text per stage of a staged model; empty: `text` for all

  /// Compares the texts only: the source does not affect a run.
  bool operator==(const OptionValue& other) const { return text == other.text && list == other.list; }
};

/// Options of a mechanism by name.
using Options = std::map<std::string, OptionValue>;

/// [attention]: the mechanism, for all blocks or one per block or stage, and its options. Every key except `mechanism`
/// is an option, declared by its mechanism.
struct AttentionConfig {
  std::vector<std::string> mechanism = {"softmax"};
  Options options;  ///< for all blocks
  std::map<std::string, Options>
      per_mechanism;  ///< [attention.NAME]: for blocks of this mechanism; overrides `options`

  bool operator==(const AttentionConfig&) const = default;
};

/// Returns a line for each option that has no effect with the given values of other options, unless it has its default
/// value: "WHERE: attention.rank = 8 has no effect; it needs variant = full or local". Ignores unknown mechanisms.
std::vector<std::string> options_without_effect(const AttentionConfig& attention);

/// Returns a line for each option in `values`, given at `where`, that has no effect on the mechanism.
std::vector<std::string> options_without_effect(const std::string& mechanism,
                                                const std::map<std::string, std::string>& values,
                                                const std::string& where);

}  // namespace heed
