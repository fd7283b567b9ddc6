// Cells of a sweep, their directories and their training.
#pragma once

#include "src/apps/cli/comparing/run_table.h"

#include "heed/config/sweep.h"

#include <string>
#include <vector>

namespace heed::cli {

enum class CellState { open, begun, finished, diverged, failed, changed };

/// An experiment of a sweep and its run's directory, OUT/ARM/seed-N. Besides the files of heed train, the directory has
/// cell.toml, the configuration; cell.json with arm, seed, the configuration's hash, the version of heed that runs the
/// cell, and any divergence; and train.log, the output.
struct Cell {
  std::string arm;
  Experiment experiment;
  std::string directory;
  CellState state = CellState::open;
  std::string note;  ///< why the cell diverged or failed, or how it changed; otherwise empty

  RunPaths paths() const { return RunPaths(directory); }
  std::string file() const { return directory + "/cell.toml"; }
  std::string log() const { return directory + "/train.log"; }
  std::string label() const { return fmt::format("{}, seed {}", arm, experiment.train.seed); }
};

/// Returns the cells in `out`, with the states of their directories. Throws Error if two would share a directory.
std::vector<Cell> find_cells(const std::vector<SweepCell>& sweep, const std::string& out);

/// Updates the state from the directory. A cell whose training failed earlier becomes open or begun.
void read_state(Cell& cell);

/// Marks a cell as changed if its run was started with data that differ from the data of the first run with the same
/// data settings. With `now`, the run's data are compared with the present data instead; if the present data cannot be
/// opened, no cell with these settings is marked.
void mark_changed_data(std::vector<Cell>& cells, bool now);

/// Writes cell.toml, the input of heed train, and cell.json.
void prepare(const Cell& cell);

/// Records in cell.json that training diverged, and why.
void record_divergence(const Cell& cell, const std::string& message);

/// Returns true if the cell's directory has a cell.json, which shows that a sweep created the directory.
bool is_of_sweep(const Cell& cell);

/// Removes a cell's directory. Requires is_of_sweep().
void forget(Cell& cell);

/// Returns the arm of a run made by a sweep; otherwise empty.
std::string arm_of(const std::string& directory);

/// Returns how the run in a cell's directory diverged; empty if it has not, or if the directory is not a cell's.
std::string divergence_of(const std::string& directory);

/// Trains the open and begun cells, `jobs` at a time, each in a separate process; together they use `threads` threads,
/// but at least one each. Reports each result on stderr. Returns false if interrupted; begun cells are then saved.
bool run_cells(std::vector<Cell>& cells, int jobs, int threads);

/// Groups the cells by arm, in order, for tables.
std::vector<TableArm> arms_of(const std::vector<Cell>& cells);

}  // namespace heed::cli
