// The selftest: hashes of what heed computes in float, compared with those in the program. Two computers with the same
// hashes compute the same bits.
#pragma once

#include "heed/config/experiment.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A hash, and the tensor or file that it is of, such as "step 1: gradient of blocks.0.norm1/layer_norm".
struct NamedHash {
  std::string name;
  std::uint32_t hash;
};

/// Hash of a tensor with a NaN, whose bits differ between processors.
inline constexpr std::uint32_t nan_hash = 0;

/// A training run of the selftest, and its experiment as TOML.
struct SelftestRun {
  const char* name;
  const char* toml;
};

/// The runs: between them they use every mechanism, family, optimiser, schedule, augmentation and task.
std::span<const SelftestRun> selftest_runs();

/// The parts of the selftest in their order: "data", the generated data; "operations", the cases of `heed gradcheck`,
/// each by itself; "wide", operations and mechanisms at sizes of models; and the runs.
std::vector<std::string> selftest_parts();

/// Writes the data and the experiment files of the runs to an existing directory.
void prepare_selftest(const std::string& directory);

/// Returns the experiment of a run, prepared in `directory`.
Experiment selftest_experiment(const SelftestRun& run, const std::string& directory);

/// Computes the hashes of a part, prepared in `directory`, where a run has its files meanwhile. Of a run these are the
/// hashes of its initial weights; of the results and gradients of the first microbatch, in the order of their
/// computation; of each weight after the first step; of the loss, the optimiser's state and the weights after each
/// step; of its evaluations; and of the logits of token by token decoding. The first hash is that of the names.
std::vector<NamedHash> selftest_hashes(const std::string& part, const std::string& directory);

/// Hashes of parts by name, as a file has them.
using SelftestHashes = std::map<std::string, std::vector<std::uint32_t>>;

/// Returns the hashes that are compiled into the program.
SelftestHashes expected_hashes();

/// Parses a file of hashes. Throws Error that begins with `file`.
SelftestHashes parse_hashes(std::string_view text, const std::string& file);

/// Returns the file of the hashes, from which expected_hashes() is compiled.
std::string hashes_file(const SelftestHashes& hashes);

/// Comparison of a part's hashes with the expected ones.
struct HashComparison {
  std::size_t equal = 0, all = 0;
  std::vector<std::string> different{};  ///< names of the others, in order
};
HashComparison compare_hashes(const std::vector<NamedHash>& got, const std::vector<std::uint32_t>& expected);

}  // namespace heed
