// The cells of a sweep, their directories and their training.
#pragma once

#include "src/apps/cli/comparing/run_table.h"

#include "heed/config/sweep.h"

#include <string>
#include <vector>

namespace heed::cli {

enum class CellState { open, begun, finished, diverged, failed, changed };

/// An experiment of a sweep and the directory of its run, OUT/ARM/seed-N. Besides what heed train leaves there,
/// cell.toml has the configuration; cell.json says which arm and seed it is, keeps the configuration's hash and the
/// version that runs it, and how training diverged if it did; train.log has what was printed.
struct Cell {
  std::string arm;
  Experiment experiment;
  std::string directory;
  CellState state = CellState::open;
  std::string note;  ///< why it diverged or failed, or what has changed

  RunPaths paths() const { return RunPaths(directory); }
  std::string file() const { return directory + "/cell.toml"; }
  std::string log() const { return directory + "/train.log"; }
  std::string label() const { return fmt::format("{}, seed {}", arm, experiment.train.seed); }
};

/// The cells in `out`, each in the state that its directory shows. Throws Error where two would share a directory.
std::vector<Cell> find_cells(const std::vector<SweepCell>& sweep, const std::string& out);

/// Looks at the directory again. A cell that has failed before is open or begun.
void look_at(Cell& cell);

/// Writes cell.toml, which heed train is to take, and cell.json.
void prepare(const Cell& cell);

/// Keeps in cell.json that training diverged, and why.
void record_divergence(const Cell& cell, const std::string& message);

/// Removes a cell's directory, which must have a cell.json: so it is one of a sweep.
void forget(Cell& cell);

/// The arm that a run belongs to, if a sweep made it; otherwise empty.
std::string arm_of(const std::string& directory);

/// Returns how the run in a cell's directory diverged; empty if it has not, or if the directory is no cell's.
std::string divergence_of(const std::string& directory);

/// Trains the cells that are open or begun, `jobs` at a time with `threads` shared out among them, each in a process of
/// its own. Says on stderr what becomes of each. Returns false if it was interrupted: begun cells are then saved.
bool run_cells(std::vector<Cell>& cells, int jobs, int threads);

/// For tables: cells of the same arm together, in their order.
std::vector<TableArm> arms_of(const std::vector<Cell>& cells);

}  // namespace heed::cli
