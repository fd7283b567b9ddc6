// [attention]: the mechanism and its options.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heed {

/// The value of an option. Its mechanism parses and checks the text (attention/options.h).
struct OptionValue {
  std::string text;                 ///< without quotes; numbers and booleans in TOML's spelling
  std::string where;                ///< "experiments/a.toml:12" or "--set"; begins an error about it
  std::vector<std::string> list{};  ///< the text of each stage of a staged model; empty: `text` for all

  /// Compares the texts: their place makes no difference to a run.
  bool operator==(const OptionValue& other) const { return text == other.text && list == other.list; }
};

/// Options of a mechanism by name.
using Options = std::map<std::string, OptionValue>;

/// [attention]: the mechanism, for all blocks or one per block, and its options. Every key but `mechanism` is an
/// option; each mechanism says which options it has.
struct AttentionConfig {
  std::vector<std::string> mechanism = {"softmax"};
  Options options;  ///< for all blocks
  std::map<std::string, Options>
      per_mechanism;  ///< [attention.NAME]: for the blocks of one mechanism, over those above

  bool operator==(const AttentionConfig&) const = default;
};

}  // namespace heed
