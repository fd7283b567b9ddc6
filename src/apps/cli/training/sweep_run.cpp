#include "sweep_cells.h"

#include "src/apps/cli/shared/children.h"
#include "src/apps/cli/shared/progress_line.h"

#include "heed/base/printable.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/bench/timing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

/// Returns the fraction of a cell's epochs that are complete; 1 if its training has ended.
double share_done(const Cell& cell) {
  if (cell.state != CellState::open && cell.state != CellState::begun) return 1;
  return static_cast<double>(read_history(cell.paths()).epochs.size()) /
         static_cast<double>(cell.experiment.train.epochs);
}

/// Returns the size of a cell's log, to which earlier attempts may have written.
std::size_t log_size(const Cell& cell) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(cell.log(), missing);
  return missing ? 0 : static_cast<std::size_t>(size);
}

/// Returns the error with which heed train ended; its output begins at `start` in the log. Empty after success or a
/// signal.
std::string error_of(const std::string& log, std::size_t start, int status) {
  constexpr int after_signal = 128;
  if (status == ok || status >= after_signal) return "";
  const std::string before = "heed: ", whole = read_file(log);
  std::string error;
  for (const std::string& line : split(whole.substr(std::min(start, whole.size())), '\n'))
    if (line.starts_with(before)) error = line.substr(before.size());
  return error;
}

class Sweeper {
 public:
  Sweeper(std::vector<Cell>& cells, int jobs, int threads) : terminal_(isatty(STDERR_FILENO)) {
    for (Cell& cell : cells)
      if (cell.state == CellState::open || cell.state == CellState::begun) waiting_.push_back(&cell);
    const int slots = std::min(jobs, static_cast<int>(std::max<std::size_t>(waiting_.size(), 1)));
    for (int slot = 0; slot < slots; ++slot)
      slots_.push_back({nullptr, 0, std::max(1, threads / slots + (slot < threads % slots ? 1 : 0)), 0, {}});
    done_at_start_ = done();
  }

  bool operator()() {
    start_ = bench::Clock::now();
    start_more();
    while (children_.any()) {
      for (const Children::Ended& one : children_.wait()) finish(one);
      if (!children_.interrupted()) start_more();
      draw();
    }
    clear();
    return !children_.interrupted();
  }

 private:
  /// A slot for a run, with its threads.
  struct Slot {
    Cell* cell;  ///< null: free
    pid_t process;
    int threads;
    std::size_t log_start;  ///< position of this run's output in the log
    bench::Clock::time_point start;
  };

  void start_more() {
    for (Slot& slot : slots_) {
      if (slot.cell != nullptr || next_ == waiting_.size()) continue;
      slot.cell = waiting_[next_++];
      const Cell& cell = *slot.cell;
      prepare(cell);
      std::vector<std::string> arguments{"train",        cell.file(), "--run",
                                         cell.directory, "--threads", fmt::format("{}", slot.threads)};
      if (cell.state == CellState::begun) arguments.push_back("--resume");
      slot.log_start = log_size(cell);
      slot.process = children_.start(arguments, cell.log());
      slot.start = bench::Clock::now();
    }
  }

  void finish(const Children::Ended& ended) {
    for (Slot& slot : slots_) {
      if (slot.cell == nullptr || slot.process != ended.process) continue;
      Cell& cell = *slot.cell;
      slot.cell = nullptr;
      const std::string error = error_of(cell.log(), slot.log_start, ended.status);
      if (ended.status == diverged) record_divergence(cell, error);
      read_state(cell);
      const bool whole = cell.state == CellState::finished || cell.state == CellState::diverged;
      if (!whole && !children_.interrupted()) fail_cell(cell, ended.status, error);
      say(cell, bench::seconds_since(slot.start));
    }
  }

  static void fail_cell(Cell& cell, int status, const std::string& error) {
    cell.state = CellState::failed;
    cell.note = error;
    if (status == ok) cell.note = "stopped at train.max_steps";
    if (cell.note.empty()) cell.note = fmt::format("ended with status {}; see {}", status, cell.log());
  }

  void say(const Cell& cell, double seconds) {
    clear();
    std::string result = "interrupted and saved";
    if (cell.state == CellState::finished) {
      const RunFigures figures = read_figures(cell.paths(), cell.experiment.train.batch);
      result = figures.test_accuracy ? fmt::format("test accuracy {:.2f} %", 100 * *figures.test_accuracy) : "finished";
    } else if (cell.state == CellState::diverged || cell.state == CellState::failed) {
      result = fmt::format("{}: {}", cell.state == CellState::diverged ? "diverged" : "failed", cell.note);
    }
    ++said_;
    std::cerr << fmt::format("[{}/{}] {}: {}, {}{}\n", said_, waiting_.size(), printable(cell.label()),
                             printable(result), duration(seconds), time_left());
  }

  /// Returns share_done(), summed over the cells to train.
  double done() const {
    double sum = 0;
    for (const Cell* cell : waiting_) sum += share_done(*cell);
    return sum;
  }

  /// Returns ", 12:30 left", extrapolated from the epochs so far.
  std::string time_left() const {
    const double since_start = done() - done_at_start_, all = static_cast<double>(waiting_.size());
    if (since_start <= 0 || said_ == waiting_.size()) return "";
    return fmt::format(", {} left", duration(bench::seconds_since(start_) * (all - done()) / since_start));
  }

  /// Draws the progress line: the cells in training.
  void draw() {
    if (!terminal_) return;
    std::string line = fmt::format("{} of {} done{}", said_, waiting_.size(), time_left());
    for (const Slot& slot : slots_)
      if (slot.cell != nullptr) line += fmt::format("; {}: {:.0f} %", slot.cell->label(), 100 * share_done(*slot.cell));
    const std::size_t columns = static_cast<std::size_t>(terminal_columns());
    std::cerr << "\r\033[K" << beginning(printable(line), columns - 1) << std::flush;
  }

  void clear() const {
    if (terminal_) std::cerr << "\r\033[K" << std::flush;
  }

  bool terminal_;
  std::vector<Cell*> waiting_;  ///< to be trained, in order
  std::size_t next_ = 0, said_ = 0;
  std::vector<Slot> slots_;
  double done_at_start_ = 0;
  bench::Clock::time_point start_;
  Children children_;
};

}  // namespace

bool run_cells(std::vector<Cell>& cells, int jobs, int threads) { return Sweeper(cells, jobs, threads)(); }

}  // namespace heed::cli
