// heed lr: a learning-rate range test.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/output_file.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/draw/line_chart.h"
#include "heed/io/file.h"
#include "heed/train/evaluate.h"
#include "heed/train/rate_range.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

struct LrArguments {
  std::string file, output;
  std::vector<std::string> sets;
  RateRange range;
  int threads = 0;
  bool csv = false;
};

/// Returns a table with a row for every n-th step.
Table every(std::size_t n, const RateTest& test) {
  const auto scientific = [](double x) { return fmt::format("{:.2e}", x); };
  Table table;
  table.column("step", "step").column("learning rate", "lr", scientific);
  table.column("loss", "loss", fixed(4)).column("smoothed", "smoothed_loss", fixed(4));
  for (std::size_t i = n - 1; i < test.points.size(); i += n)
    table.add({i + 1, test.points[i].lr, test.points[i].loss, test.points[i].smoothed});
  return table;
}

void print_advice(const RateTest& test, const std::optional<RateAdvice>& found) {
  const std::string steps = counted(std::ssize(test.points), "step");
  std::cout << (test.diverged ? fmt::format("\ndiverged after {}\n", steps)
                              : fmt::format("\ndid not diverge in {}; try a larger --to\n", steps));
  if (!found) {
    std::cout << "the decrease of the smoothed loss is within the scatter of the batches: no suggestion;\ntry --steps "
                 "1000 or a larger train.batch\n";
    return;
  }
  std::cout << fmt::format(
      "the smoothed loss falls fastest at {:.2e} and is lowest at {:.2e}\nsuggestion: --set optim.lr={:.1e}, the "
      "smaller of the first rate and a tenth of the second\n",
      found->steepest, found->least, found->suggested());
}

void draw(const RateTest& test, const std::optional<RateAdvice>& found, const std::string& title,
          const std::string& path) {
  LineChart chart{"loss while the learning rate grows: " + title, "learning rate", "", true};
  chart.y_most = 1.25 * test.points.front().loss;  // cuts off the divergence, which would flatten the rest
  chart.y_title = fmt::format("loss, greater values at {:.3g}", chart.y_most);
  chart.lines = {{"loss of each batch", {}}, {"smoothed loss", {}}};
  for (const RatePoint& point : test.points) {
    chart.lines[0].points.emplace_back(point.lr, point.loss);
    chart.lines[1].points.emplace_back(point.lr, point.smoothed);
  }
  if (found) chart.marks = {{found->suggested(), fmt::format("suggested: {:.1e}", found->suggested())}};
  write_file(path, svg(chart));
}

int lr_command(const LrArguments& a) {
  use_threads(a.threads);
  require(a.range.from < a.range.to, "lr: --from is {}, --to is {}; expected --from to be smaller", a.range.from,
          a.range.to);
  const Experiment experiment = load_experiment(a.file, a.sets);
  std::string output = a.output;
  if (output.empty()) {
    const std::filesystem::path file = std::filesystem::absolute(a.file).lexically_normal();
    const bool recorded = file.filename() == "config.toml";  // a run's file; the run is named after its directory
    output = "runs/" + (recorded ? file.parent_path().filename() : file.stem()).string() + "-lr.svg";
    std::error_code error;  // reported below, if the picture cannot be written
    std::filesystem::create_directories("runs", error);
  }
  require_writable({"-o", output}, ".svg");
  const RateTest test = test_rates(experiment, a.range);
  if (test.points.size() < 2)
    throw Diverged(fmt::format("lr: the loss of step {} is not finite; try a smaller --from", test.points.size() + 1));
  const std::optional<RateAdvice> found = advice(test.points);
  if (a.csv) {
    std::cout << every(1, test).csv();
  } else {
    every(std::max<std::size_t>(test.points.size() / 20, 1), test).print(std::cout);
    print_advice(test, found);
  }
  draw(test, found, a.file, output);
  if (!a.csv) std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* lr_help =
    "Trains from the start with a learning rate that grows exponentially with the steps, in place of the schedule, and "
    "stops when the smoothed loss exceeds four times its minimum or is not finite. The suggestion is the smaller of "
    "two rates: a tenth of the rate at which the smoothed loss is lowest, and the rate at which it falls fastest as a "
    "function of the rate's logarithm. The fall is measured over intervals of a tenth of the steps; the first tenth is "
    "ignored. If the decrease of the smoothed loss is within the scatter of the batches, there is no suggestion. The "
    "suggestion is a starting point, not the best rate: heed sweep compares several rates. Writes the picture and no "
    "run.";

}  // namespace

void add_lr(Command program) {
  static LrArguments a;
  Command command = program.command("lr", "Find a learning rate: loss at growing rates, as a table and a picture");
  command.option("FILE", &a.file, "experiment", {.required = true});
  command.option("--from", &a.range.from, "first rate; default: 1e-7", {.range = {{1e-30, 1e30}}});
  command.option("--to", &a.range.to, "last rate; default: 10", {.range = {{1e-30, 1e30}}});
  command.option("--steps", &a.range.steps, "default: 200", {.range = {{2, 1e6}}});
  add_sets(command, a.sets, "override a key of the experiment; repeatable", config_keys());
  add_threads(command, a.threads);
  command.option("--csv", &a.csv, "print every step as CSV");
  command.option("-o,--output", &a.output, "picture; default: runs/NAME-lr.svg for FILE NAME.toml",
                 {.value = "FILE.svg"});
  command.footer(lr_help);
  command.action([] { return lr_command(a); });
}

}  // namespace heed::cli
