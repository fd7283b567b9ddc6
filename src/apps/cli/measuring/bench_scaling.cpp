// heed bench MODEL --scaling: scaling of training with threads (docs/scaling.md) and processes on this host, and
// predictions for several hosts (docs/processes.md).
#include "bench_forms.h"
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/output_file.h"

#include "heed/base/suggest.h"
#include "heed/config/experiment.h"
#include "heed/config/installed.h"
#include "heed/draw/line_chart.h"
#include "heed/io/file.h"
#include "heed/nn/families.h"
#include "heed/train/lanes.h"
#include "heed/train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace heed::cli {

namespace {

/// A number of processes and threads, with its measurements.
struct Setup {
  int processes, threads;
  Json measured;

  double number(const char* key) const { return measured.at(key).number(); }
  std::string unit() const { return measured.at("unit").text(); }
  double rate() const { return number("img_s"); }
  double step_ms() const { return number("ms"); }

  /// Return means per step in milliseconds: the wall time, `open` and `busy` of LoopTimes, and the time outside
  /// parallel loops.
  double wall() const { return number("mean_ms"); }
  double open() const { return number("loops_open_ms"); }
  double busy() const { return number("loops_busy_ms"); }
  double serial() const { return wall() - open(); }

  /// Returns `ms`, a sum over threads, as a percentage of the total time of all threads.
  double share(double ms) const { return 100 * ms / (threads * wall()); }
};

Setup measure_setup(const BenchArguments& a, Index batch, int processes, int threads) {
  std::vector<std::string> words = processes > 1 ? launch_words(processes) : std::vector<std::string>{};
  words.insert(words.end(), {program_file(), "bench", a.model, "--json", "--batch", std::to_string(batch), "--threads",
                             std::to_string(threads), "--seconds", std::to_string(a.seconds)});
  for (const std::string& set : a.sets) words.insert(words.end(), {"--set", set});
  return {processes, threads, Json::parse(output_of(words))};
}

/// A network between hosts: bits per second, and latency in seconds.
struct Network {
  const char* name;
  double bits, latency;
};
constexpr Network networks[] = {{"1 Gbit/s", 1e9, 50e-6}, {"10 Gbit/s", 1e10, 20e-6}, {"100 Gbit/s", 1e11, 3e-6}};

/// Returns the milliseconds of the exchanges in a step. For a gradient of n bytes, each of P processes sends
/// 2 n (1 - 1/P) bytes in 2 log2 P sequential messages. Each of log2 P levels also has messages of a few bytes: one for
/// the losses, one for the decision to continue, and one for each of batch norm's `sums` over the batch.
double exchange_ms(const Network& network, Index bytes, Index sums, int processes) {
  const double levels = std::log2(processes), messages = static_cast<double>(4 + sums) * levels;
  return 1e3 * (8 * 2 * static_cast<double>(bytes) * (1 - 1.0 / processes) / network.bits + messages * network.latency);
}

/// Work of a step in one process, measured by `alone`: the lanes, which several processes divide among themselves, and
/// the update, which each process computes completely.
struct Work {
  const Setup& alone;
  bool streamed;  ///< all threads work on the same lane, instead of each on a separate one
  Index lanes, batch;

  /// Return the size of a gradient in bytes, and the number of batch norm's sums over the batch.
  Index bytes() const { return static_cast<Index>(alone.number("gradient_bytes")); }
  Index sums() const { return static_cast<Index>(alone.number("sums_over_batch")); }

  /// Returns the number of rounds that a process needs for its lanes. In a round, each thread processes one lane or, if
  /// `streamed`, all threads together process one lane.
  double rounds(int processes) const {
    return std::ceil(std::ceil(double(lanes) / processes) / (streamed ? 1 : alone.threads));
  }

  /// Returns the examples per second of `processes` processes with `exchange_ms` of exchanges per step. The update has
  /// the same share of the median step as of the mean one, which may be longer, for example if other programs ran.
  double rate(int processes, double exchange_ms) const {
    const double update_ms = alone.step_ms() * alone.number("update_ms") / alone.wall(),
                 lanes_ms = alone.step_ms() - update_ms;
    const double ms = lanes_ms * rounds(processes) / rounds(1) + update_ms + exchange_ms;
    return 1e3 * static_cast<double>(batch) / ms;
  }
};

/// Returns the expected speed-up with `threads` threads if they divide the time in loops evenly.
double expected_growth(const Setup& one, int threads) { return one.wall() / (one.serial() + one.open() / threads); }

void print_threads(const std::vector<Setup>& setups) {
  Table table;
  table.text("threads").text(setups[0].unit(), digits).text("speed-up", fixed(2)).text("expected", fixed(2));
  table.text("efficiency", fixed(1, " %")).text("slower", fixed(1, " %")).text("serial", fixed(1, " %"));
  table.text("waiting", fixed(1, " %")).text("loops").text("MB", fixed(0));
  const Setup& one = setups[0];
  for (const Setup& s : setups)
    table.add({s.threads, s.rate(), s.rate() / one.rate(), expected_growth(one, s.threads), s.share(one.wall()),
               s.share(s.busy() + s.serial() - one.wall()), s.share(s.serial() * (s.threads - 1)),
               s.share(s.threads * s.open() - s.busy()), s.measured.at("loops").integer(), s.number("peak_mb")});
  table.print(std::cout);
  std::cout << fmt::format(
      "\nexpected: loops divided evenly among threads, the time outside loops unchanged. Shares of the time of all "
      "threads:\nefficiency: one thread's time for the same step; slower: additional time for the same work, mostly "
      "due to memory;\nserial: one thread works outside loops, the others wait; waiting: for other threads in a loop. "
      "{:.1f} % of a step can\nbe divided into 32 or more independent parts.\n",
      100 * one.number("divisible_by_32"));
}

/// Returns the chart of the speed-up with threads.
LineChart growth_chart(const BenchArguments& a, const std::vector<Setup>& setups) {
  LineChart chart{fmt::format("speed of training with more threads: {}", a.model), "threads",
                  "speed relative to one thread", true};
  chart.log_y = true;
  ChartLine measured{"measured", {}}, expected{"expected", {}}, even{"ideal", {}};
  for (const Setup& s : setups) {
    const double threads = s.threads;
    measured.points.emplace_back(threads, s.rate() / setups[0].rate());
    expected.points.emplace_back(threads, expected_growth(setups[0], s.threads));
    even.points.emplace_back(threads, threads);
  }
  chart.lines = {measured, expected, even};
  return chart;
}

void print_processes(const std::vector<Setup>& setups, const Work& work) {
  const std::string unit = work.alone.unit();
  Table table;
  table.text("processes").text(unit, digits).text("speed-up", fixed(2)).text("ms per step", fixed(2));
  table.text("exchanged KB", fixed(0)).text("ms", fixed(3)).text("of a step", fixed(1, " %"));
  table.text("expected " + unit, digits);
  for (const Setup& s : setups) {
    const double exchange = s.number("exchange_ms"), share = 1 - 1.0 / s.processes;
    table.add({s.processes, s.rate(), s.rate() / work.alone.rate(), s.step_ms(),
               2 * share * static_cast<double>(work.bytes()) / 1024, exchange, 100 * exchange / s.step_ms(),
               work.rate(s.processes, exchange)});
  }
  std::cout << "\nprocesses of one thread\n\n";
  table.print(std::cout);
  std::cout << "\nexchanged: data that each process sends in a step, after the backward pass (no overlap)\nexpected: "
               "one core for each process, from the step time of one thread\n";
}

void print_predicted(const Work& work) {
  Table table;
  table.text(fmt::format("hosts of {}", counted(work.alone.threads, "thread")));
  for (const Network& network : networks) table.text(fmt::format("{}, {}", network.name, work.alone.unit()), digits);
  for (int hosts = 1; hosts <= std::min<Index>(16, work.lanes); hosts *= 2) {
    std::vector<Json> row{hosts};
    for (const Network& network : networks)
      row.push_back(work.rate(hosts, exchange_ms(network, work.bytes(), work.sums(), hosts)));
    table.add(std::move(row));
  }
  std::cout << "\n";
  table.print(std::cout);
  std::cout << fmt::format(
      "\npredicted for one process on each host and gradients of {:.1f} MB; docs/processes.md has the formula\n",
      static_cast<double>(work.bytes()) / (1 << 20));
}

}  // namespace

int bench_scaling(const BenchArguments& given) {
  BenchArguments a = given;
  if (a.seconds == 0) a.seconds = 8;
  require(a.mode.empty() && !a.profile && !a.json && a.compare.empty() && a.threads == 0,
          "bench: --scaling combines with MODEL, --set, --batch, --seconds and --draw only");
  require(started_processes().count() == 1,
          "bench: --scaling starts its own processes; expected to be started once, without mpirun");
  if (!a.drawing.empty()) require_writable({"--draw", a.drawing}, ".svg");
  const Experiment x = load_experiment(a.model, a.sets);
  const Index batch = a.batch > 0 ? a.batch : x.train.batch;
  const std::unique_ptr<Model> model = make_model(x);
  const Index weights = model->parameters().trainable_elements();
  const bool together = model->examples_depend(batch);
  const Lanes lanes = BatchShare{microbatch_of(x.train, batch), weights, 0, 1, together}.lanes(batch);
  const bool streamed = !together && streams_lanes(weights, lanes.count);
  std::vector<Setup> by_threads, by_processes;
  const int most = threads();
  for (int count = 1;; count = std::min(2 * count, most)) {
    by_threads.push_back(measure_setup(a, batch, 1, count));
    if (count == most) break;
  }
  std::cout << fmt::format("{}, batch {}, {}; up to {}: {}\n\n", a.model, batch, counted(lanes.count, "lane"),
                           counted(most, "thread"), threads_reason());
  print_threads(by_threads);
  if (!a.drawing.empty()) write_file(a.drawing, svg(growth_chart(a, by_threads)));
  for (const int count : {2, 4})
    if (count <= lanes.count && !launch_words(count).empty()) by_processes.push_back(measure_setup(a, batch, count, 1));
  if (lanes.count == 1)
    std::cout << "several processes: the batch has a single lane, which one process runs; try a larger --batch or a "
                 "smaller train.microbatch\n";
  else if (by_processes.empty())
    std::cout << "several processes: this build has no MPI; build with make MPI=1\n";
  else
    print_processes(by_processes, {by_threads.front(), streamed, lanes.count, batch});
  // Predictions assume that each host runs the number of threads that was fastest here.
  const Setup& fastest = *std::ranges::max_element(by_threads, {}, &Setup::rate);
  print_predicted({fastest, streamed, lanes.count, batch});
  return ok;
}

}  // namespace heed::cli
