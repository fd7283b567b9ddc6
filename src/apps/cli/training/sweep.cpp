// heed sweep: many experiments, each with several seeds.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"
#include "sweep_cells.h"

#include "heed/base/parallel.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/nn/families.h"
#include "heed/train/processes/core_count.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

struct SweepArguments {
  std::string file, out;
  std::vector<std::string> sets;
  Index seeds = 0;
  int jobs = 1, threads = 0, niceness = 0;
  bool dry_run = false, table = false, redo = false;
  TableFormat format;
};

/// Throws Error unless every cell has a valid model with valid options of its mechanisms.
void require_models(const std::string& file, const std::vector<SweepCell>& sweep) {
  const std::string* checked = nullptr;
  for (const SweepCell& cell : sweep) {
    if (checked && *checked == cell.arm) continue;  // differs from the previous cell only in the seed
    checked = &cell.arm;
    try {
      make_model(cell.experiment);
    } catch (const Error& error) {
      fail("{}: {}: {}", file, cell.arm, error.what());
    }
  }
}

bool done(const Cell& cell) { return cell.state == CellState::finished || cell.state == CellState::diverged; }

/// Returns the number of cells that a sweep trains.
std::ptrdiff_t count_open(const std::vector<Cell>& cells, bool redo) {
  return std::ranges::count_if(
      cells, [&](const Cell& cell) { return !done(cell) || (redo && cell.state == CellState::diverged); });
}

/// With `redo`, removes diverged cells, and changed cells that a sweep created. Throws Error for other changed cells.
void clear_way(std::vector<Cell>& cells, bool redo) {
  for (Cell& cell : cells) {
    const bool changed = cell.state == CellState::changed;
    require(!changed || (redo && is_of_sweep(cell)), "{}: {}; {}", cell.directory, cell.note,
            is_of_sweep(cell) ? "to remove and repeat such runs, add --redo" : "remove it, or choose another --out");
    if (changed || (redo && cell.state == CellState::diverged)) forget(cell);
  }
}

void list(const std::vector<Cell>& cells, bool redo) {
  Table table;
  table.text("cell").text("state").text("directory");
  for (const TableArm& arm : arms_of(cells))
    for (const TableRun& run : arm.runs)
      table.add({fmt::format("{}, seed {}", arm.name, run.seed), run.state, run.directory});
  table.print(std::cout);
  std::cout << fmt::format("\n{}, {} to train\n", counted(std::ssize(cells), "cell"), count_open(cells, redo));
}

int status_of(const std::vector<Cell>& cells) {
  const auto any = [&](CellState state) {
    return std::ranges::any_of(cells, [&](const Cell& cell) { return cell.state == state; });
  };
  return any(CellState::failed) || any(CellState::changed) ? check_failed : any(CellState::diverged) ? diverged : ok;
}

int sweep_command(const SweepArguments& a) {
  use_threads(a.threads);
  require(!a.format.runs || a.format.csv, "--runs: requires --csv; JSON always has every run");
  require(!a.dry_run || !(a.table || a.format.csv || a.format.json || a.format.markdown),
          "sweep: --dry-run lists the cells as text; expected no --table, --csv, --json or --markdown");
  const std::vector<SweepCell> sweep = load_sweep(a.file, a.sets, a.seeds);
  require_models(a.file, sweep);
  const std::string out = a.out.empty() ? "runs/" + std::filesystem::path(a.file).stem().string() : a.out;
  std::vector<Cell> cells = find_cells(sweep, out);
  const auto check_data = [&] {
    mark_changed_data(cells, /*now=*/!a.table && (a.redo || count_open(cells, false) > 0));
  };
  if (a.dry_run || a.table) check_data();
  if (a.dry_run) {
    list(cells, a.redo);
    return ok;
  }
  if (a.table) {
    print_arms(std::cout, arms_of(cells), a.format);
    return ok;
  }
  make_directory(out);
  // If this process is killed, its runs save themselves before the next sweep begins.
  const DirectoryLock lock(out, DirectoryLock::Holders::process_and_programs_it_starts, std::chrono::seconds(3));
  cells = find_cells(sweep, out);  // read a second time, under the lock
  check_data();
  clear_way(cells, a.redo);
  if (a.niceness > 0) nice(a.niceness);
  const auto finished = std::ranges::count_if(cells, done);
  std::cerr << fmt::format("{}: {}, {} done\n", printable(out), counted(std::ssize(cells), "cell"), finished);
  const bool whole = run_cells(cells, a.jobs, threads());
  mark_changed_data(cells, /*now=*/false);  // the data may have changed meanwhile
  print_arms(std::cout, arms_of(cells), a.format);
  if (whole) return status_of(cells);
  std::cerr << "interrupted and saved; repeat the command to continue\n";
  return interrupted;
}

constexpr const char* sweep_help =
    "FILE.toml:\n"
    "  base = \"experiments/mnist.toml\"         settings that all arms start from\n"
    "  seeds = [1, 2, 3]                       or 3, for 1 to 3\n"
    "  arm_files = \"experiments/mnist-*.toml\"  an arm per file, named by the text that * matches\n"
    "  [train]                                 tables of an experiment: for all arms\n"
    "  epochs = 4\n"
    "  [arms.wide]                             an arm by name, with its own keys\n"
    "  model.heads = 8\n"
    "  [grid]                                  combines every arm with every value\n"
    "  optim.lr = [1e-3, 3e-3]\n"
    "Later settings override earlier ones: base or arm's file, tables, arm, grid, --set.\n\n"
    "A cell is an arm with a seed: a run of heed train in DIR/ARM/seed-N. Running the same command again skips "
    "finished cells and resumes interrupted ones. A cell records the hash of its configuration and the version "
    "that ran it. The sweep is refused if a directory holds a different configuration, or an unfinished run of "
    "another version; --redo removes and repeats such cells, and diverged ones. The data's directory, "
    "logging and the frequency of saving do not count as changes; a change of the data's content does. A finished cell "
    "of another version is kept; the table names the version.\n\n"
    "The table shows the mean and standard deviation over the finished seeds of each arm. Validation is the best "
    "epoch's; s/epoch is the median over a run's epochs, measured while other jobs ran. Progress goes to stderr. Exit "
    "status: 0 all cells are finished, or --dry-run or --table is given; 1 some failed, or the data changed meanwhile; "
    "2 bad input; 3 some diverged; 130 interrupted.";

}  // namespace

void add_sweep(Command program) {
  static SweepArguments a;
  Command command = program.command("sweep", "Train many experiments with several seeds, and print a table");
  command.option("FILE", &a.file, "the sweep", {.required = true});
  command.option("--out", &a.out, "directory of the cells; default: runs/NAME for FILE NAME.toml", {.value = "DIR"});
  command.option("--seeds", &a.seeds, "seeds 1 to N, instead of the file's",
                 {.value = "N", .range = {{1, static_cast<double>(most_cells)}}});
  command.option("--jobs", &a.jobs, "cells trained at the same time, which share the threads; default: 1",
                 {.value = "N", .range = {{1, max_threads}}});
  add_threads(command, a.threads);
  command.option("--nice", &a.niceness, "lower the priority by N", {.value = "N", .range = {{0, 19}}});
  add_sets(command, a.sets, "override a key in all cells; repeatable", config_keys());
  command.option("--dry-run", &a.dry_run, "list the cells and their state, and train nothing");
  command.option("--table", &a.table, "print the table of the finished cells, and train nothing");
  command.option("--redo", &a.redo, "repeat cells that have changed or diverged", {.excludes = "--table"});
  command.option("--csv", &a.format.csv, "print the table as CSV");
  command.option("--json", &a.format.json, "print the table as JSON, with every run", {.excludes = "--csv"});
  command.option("--markdown", &a.format.markdown, "print the table as Markdown", {.excludes = "--csv,--json"});
  command.option("--runs", &a.format.runs, "with --csv: a line for each run, with its hash and version");
  command.footer(sweep_help);
  command.action([] { return sweep_command(a); });
}

}  // namespace heed::cli
