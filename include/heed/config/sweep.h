// Sweeps: many experiments in one file.
#pragma once

#include "heed/config/experiment.h"

#include <string>
#include <vector>

namespace heed {

/// One experiment of a sweep. Experiments that differ by the seed alone are an arm.
struct SweepCell {
  std::string arm;  ///< "softmax", "softmax:lr=0.001:heads=4"
  Experiment experiment;

  Index seed() const { return experiment.train.seed; }
};

/// The most experiments that a sweep may have.
inline constexpr std::size_t most_cells = 4096;

/// Reads a sweep:
///
///   base = "experiments/mnist.toml"             # what every arm begins with
///   seeds = [1, 2, 3]                           # or 3, for 1 to 3; without it, the experiment's own
///   arm_files = "experiments/mnist-*.toml"      # an arm for each file, named by what * stands for
///   [train]                                     # tables of an experiment: for all arms
///   epochs = 4
///   [arms.wide]                                 # an arm; its keys are for it alone, and it may have a base of its own
///   model.heads = 8
///   [grid]                                      # every arm with every combination
///   optim.lr = [1e-3, 3e-3]
///
/// The base and the directory of arm_files are looked up beside the sweep file, then as paths by themselves, then among
/// the installed ones.
///
/// The last value of a key counts: in the base or the arm's file, in the tables for all, in
/// the arm, in the grid, in `sets` (as load_experiment() takes them). Arms and lists of the grid keep the order of the
/// file, arm_files come after the others, seeds change fastest. Every experiment is valid in the sense of validate(),
/// and no two are the same. Throws Error for what load_experiment() refuses, for empty lists and for more than
/// most_cells experiments. `seeds` above 0 takes the place of the file's: 1 to that number.
std::vector<SweepCell> load_sweep(const std::string& path, const std::vector<std::string>& sets = {}, Index seeds = 0);

}  // namespace heed
