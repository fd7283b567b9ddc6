// Sweeps: many experiments defined in one file.
#pragma once

#include "heed/config/experiment.h"

#include <string>
#include <vector>

namespace heed {

/// An experiment of a sweep. Experiments that differ only in the seed form an arm.
struct SweepCell {
  std::string arm;  ///< "softmax", "softmax:lr=0.001:heads=4"
  Experiment experiment;

  Index seed() const { return experiment.train.seed; }
};

/// Maximum number of experiments in a sweep.
inline constexpr std::size_t most_cells = 4096;

/// Reads a sweep:
///
///   base = "experiments/mnist.toml"             # base of every arm
///   seeds = [1, 2, 3]                           # or 3, for 1 to 3; default: the experiment's seed
///   arm_files = "experiments/mnist-*.toml"      # an arm for each file, named by the text that * matches
///   [train]                                     # tables of an experiment, for all arms
///   epochs = 4
///   [arms.wide]                                 # an arm with its own keys; it may have its own base
///   model.heads = 8
///   [grid]                                      # every arm with every combination
///   optim.lr = [1e-3, 3e-3]
///
/// The base and the directory of arm_files are relative to the sweep file, to the working directory, or to an installed
/// directory.
///
/// Later values of a key override earlier ones in the order: the base or the arm's file, the tables for all arms, the
/// arm, the grid, `sets` (see load_experiment()). Arms and lists of the grid keep the order of the file, arms of
/// arm_files come last, seeds vary fastest. Every experiment satisfies validate(), and no two are equal. Throws Error
/// as load_experiment() does, and for empty lists and more than most_cells experiments. If `seeds` is positive, it
/// replaces the file's seeds by 1 to `seeds`.
std::vector<SweepCell> load_sweep(const std::string& path, const std::vector<std::string>& sets = {}, Index seeds = 0);

}  // namespace heed
