// Self-test: hashes of heed's results in float, compared with hashes in the program. Two computers with equal hashes
// compute the same bits.
#pragma once

#include "heed/config/experiment.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A hash and the name of its tensor or file, such as "step 1: gradient of blocks.0.norm1/layer_norm".
struct NamedHash {
  std::string name;
  std::uint32_t hash;
};

/// Hash of any tensor with a NaN: the bits of NaNs differ between processors.
inline constexpr std::uint32_t nan_hash = 0;

/// A training run of the self-test, and its experiment as TOML.
struct SelftestRun {
  const char* name;
  const char* toml;
};

/// Returns the runs; together they use every mechanism, family, optimiser, schedule, augmentation and task.
std::span<const SelftestRun> selftest_runs();

/// Returns the parts of the self-test in order: "data", the generated data; "operations", each case of `heed
/// gradcheck`; "wide", operations and mechanisms at the sizes of real models; and the runs.
std::vector<std::string> selftest_parts();

/// Writes the data and the experiment files of the runs to an existing directory.
void prepare_selftest(const std::string& directory);

/// Returns the path, below `directory`, of the generated data for data.name = `name`.
std::string selftest_data(const std::string& name, const std::string& directory);

/// Returns the experiment of a run, prepared in `directory`.
Experiment selftest_experiment(const SelftestRun& run, const std::string& directory);

/// Computes the hashes of a part, prepared in `directory`, where a run also writes its files. The first hash is that of
/// the names. A run has hashes of the images of its first step, except scenes; of its initial weights; of the results
/// and gradients of the first microbatch, in order of computation; of each weight after the first step; of loss,
/// optimiser state and weights after each step; of its evaluations; and, for a language model, of the logits of
/// incremental decoding.
std::vector<NamedHash> selftest_hashes(const std::string& part, const std::string& directory);

/// Hashes by part.
using SelftestHashes = std::map<std::string, std::vector<std::uint32_t>>;

/// Returns the hashes compiled into the program.
SelftestHashes expected_hashes();

/// Parses the text of a file of hashes. Throws Error with a message that begins with `file`.
SelftestHashes parse_hashes(std::string_view text, const std::string& file);

/// Returns the content of the file from which expected_hashes() is compiled.
std::string hashes_file(const SelftestHashes& hashes);

/// Comparison of a part's hashes with the expected ones.
struct HashComparison {
  std::size_t equal = 0, all = 0;
  std::vector<std::string> different{};  ///< names of the unequal hashes, in order
};

/// Compares a part's hashes in order.
HashComparison compare_hashes(const std::vector<NamedHash>& got, const std::vector<std::uint32_t>& expected);

}  // namespace heed
