#include "claim_runs.h"

#include "src/apps/cli/training/sweep_cells.h"

#include "heed/base/error.h"
#include "heed/base/math.h"

#include <filesystem>
#include <list>
#include <set>

namespace heed::cli {

namespace {

/// Returns the figure expected of random predictions: 1 / n for n classes, log n for a loss, and 0 for the mean IoU of
/// patches.
double chance(const Experiment& x, const FigureName& figure) {
  const double answers = static_cast<double>(x.model.task == "lm" ? x.model.vocab : x.model.classes);
  if (!figure.share) return math::log(answers);
  return x.model.output == "tokens" ? 0 : 1 / answers;
}

/// Returns the cell that trains an arm with this seed, in a directory beside that of the arm's first run.
Cell cell_of(const ComparedArm& arm, Index seed) {
  namespace fs = std::filesystem;
  const std::string& first = arm.runs.front().directory;
  Cell cell{arm_of(first), {}, first, CellState::open, ""};
  require(!cell.arm.empty(), "{}: not a run of heed sweep; --run adds seeds to the runs of a sweep only", first);
  cell.experiment = load_recorded(cell.file());
  cell.experiment.train.seed = seed;
  cell.directory = (fs::path(first).parent_path() / fmt::format("seed-{}", seed)).string();
  read_state(cell);
  require(cell.state != CellState::changed, "{}: {}; remove the directory", cell.directory, cell.note);
  return cell;
}

}  // namespace

ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure) {
  ClaimArms claim;
  for (const ComparedArm& compared : arms) {
    ClaimArm& arm = claim[compared.name];
    const double by_chance = chance(compared.runs.front().experiment, figure);
    for (const TableRun& run : compared.table().runs) {
      const bool failed = run.state == "diverged";
      if (const std::optional<double>& value = run.figures.*figure.value; value || failed)
        arm.values[run.seed] = failed ? by_chance : *value;
      else
        arm.ignored.push_back(fmt::format("{}: {}, so it is ignored", run.directory,
                                          run.state == "finished" ? fmt::format("has no {}", figure.key) : run.state));
      if (failed) arm.diverged.push_back(run.seed);
    }
  }
  return claim;
}

void keep_common_seeds(ClaimArms& arms, std::vector<std::string> names) {
  const ClaimArms all = arms;
  std::erase_if(names, [&](const std::string& name) { return !all.contains(name) || all.at(name).values.empty(); });
  for (const std::string& name : names)
    for (const Index seed : all.at(name).seeds())
      for (const std::string& other : names)
        if (!all.at(other).values.contains(seed)) {
          arms[name].values.erase(seed);
          std::erase(arms[name].diverged, seed);
          arms[name].ignored.push_back(
              fmt::format("{}, seed {}: ignored; {} has no run with this seed", name, seed, other));
          break;
        }
}

bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads) {
  std::vector<Cell> cells;
  std::set<std::string> sweeps;
  std::vector<Cell> known;
  for (const ComparedArm& arm : arms) {
    for (const Index seed : seeds) cells.push_back(cell_of(arm, seed));
    for (const ComparedRun& run : arm.runs)
      known.push_back({arm.name, cells.back().experiment, run.directory, CellState::finished, ""});
    sweeps.insert(std::filesystem::path(cells.back().directory).parent_path().parent_path().string());
  }
  std::list<DirectoryLock> locks;
  for (const std::string& sweep : sweeps)
    locks.emplace_back(sweep, DirectoryLock::Holders::process_and_programs_it_starts, std::chrono::seconds(3));
  known.insert(known.end(), cells.begin(), cells.end());
  mark_changed_data(known, /*now=*/true);
  for (const Cell& cell : known)
    require(cell.state != CellState::changed, "{}: {}; restore the data, or repeat these runs with heed sweep --redo",
            cell.directory, cell.note);
  if (!run_cells(cells, jobs, threads)) return false;
  for (const Cell& cell : cells) require(cell.state != CellState::failed, "{}: failed: {}", cell.directory, cell.note);
  return true;
}

}  // namespace heed::cli
