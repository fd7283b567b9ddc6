// heed compare: comparison of runs.
#include "compared.h"
#include "src/apps/cli/shared/output_file.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/draw/line_chart.h"

#include <fmt/format.h>

#include <iostream>
#include <limits>

namespace heed::cli {

namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  std::string figure = "test_accuracy", curve, output, to;
  Index test_images = 0;
  TableFormat format;
};

using Arms = std::vector<ComparedArm>;

template <class Name, std::size_t N>
const Name& named(const std::array<Name, N>& names, const std::string& key) {
  return *std::ranges::find(names, key, &Name::key);
}

template <class Name, std::size_t N>
std::vector<std::string> keys_of(const std::array<Name, N>& names) {
  std::vector<std::string> keys;
  for (const Name& name : names) keys.emplace_back(name.key);
  return keys;
}

/// Moves the arm of this name to the front.
void put_first(Arms& arms, const std::string& name) {
  const auto found = std::ranges::find(arms, name, &ComparedArm::name);
  std::vector<std::string> names;
  for (const ComparedArm& arm : arms) names.push_back(arm.name);
  require(found != arms.end(), "compare: unknown arm {}{}", in_quotes(name), suggestion(name, names));
  std::rotate(arms.begin(), found, found + 1);
}

/// Comparison of an arm with the first one.
struct Comparison {
  std::optional<Difference> interval;  ///< with the pooled variance, as in heed verdict
  std::optional<Difference> welch, paired;
};

Comparison compare(const ComparedArm& a, const ComparedArm& b, const FigureName& figure, Index test_images) {
  const TableArm table_a = a.table(), table_b = b.table();
  const std::vector<double> of_a = values_of(table_a, figure), of_b = values_of(table_b, figure);
  const std::vector<Sample> samples{sample_of(of_a), sample_of(of_b)};
  const double least = test_images > 0 ? counting_variance(samples, test_images) : 0;
  std::vector<double> shared_a, shared_b;
  for (const TableRun& run : table_a.runs)
    for (const TableRun& other : table_b.runs)
      if (run.seed == other.seed && run.figures.*figure.value && other.figures.*figure.value) {
        shared_a.push_back(*(run.figures.*figure.value));
        shared_b.push_back(*(other.figures.*figure.value));
      }
  constexpr double difference[] = {1, -1};
  return {pooled(samples, difference, least), welch(samples[0], samples[1]), paired(shared_a, shared_b)};
}

std::string p_text(const std::optional<Difference>& difference) {
  const std::optional<double> p = difference ? difference->p() : std::nullopt;
  return !p ? "-" : *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

/// Returns the half-width of the 95 % interval, or "-" if it is 0.
std::string half_width_text(const Difference& difference, double unit, int decimals) {
  return difference.error > 0 ? fmt::format("± {:.{}f}", unit * difference.half_width(), decimals) : "-";
}

void print_settings(const Arms& arms) {
  const std::map<std::string, std::vector<std::string>> settings = differing_settings(arms);
  if (settings.empty()) {
    std::cout << "the runs have the same configuration except for seeds\n\n";
    return;
  }
  Table table;
  table.text("arm");
  for (const auto& [key, values] : settings) table.text(key);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    std::vector<Json> row{arms[i].name};
    for (const auto& [key, values] : settings) row.push_back(values[i]);
    table.add(std::move(row));
  }
  table.print(std::cout);
  std::cout << "\n";
}

void print_curves(const Arms& arms, const CurveName& curve) {
  Table table;
  table.text("epoch");
  std::vector<std::vector<Sample>> curves;
  std::size_t epochs = 0;
  for (const ComparedArm& arm : arms) {
    table.text(arm.name, curve.share ? fixed(2, " %") : fixed(4));
    epochs = std::max(epochs, curves.emplace_back(samples_of(arm, curve)).size());
  }
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<Json> row{epoch + 1};
    for (const std::vector<Sample>& samples : curves) {
      const Sample sample = epoch < samples.size() ? samples[epoch] : Sample();
      row.push_back(sample.count > 0 ? Json((curve.share ? 100 : 1) * sample.mean) : Json());
    }
    table.add(std::move(row));
  }
  std::cout << fmt::format("\n{}, mean over seeds\n", curve.key);
  table.print(std::cout);
}

/// Prints the tests of the other arms against the first, and a warning if an arm has only one or two finished runs.
void print_tests(const Arms& arms, const FigureName& figure, Index test_images) {
  if (arms.size() < 2) return;
  const double unit = figure.share ? 100 : 1;
  const int decimals = std::max(figure.decimals, 1);  // means of counts, such as epochs, need not be integers
  Table table;
  table.text("arm").text("difference").text("95 %").text("p, Welch").text("p, paired");
  Index fewest = std::numeric_limits<Index>::max(), tests = 0;
  for (const ComparedArm& arm : arms)
    if (const std::ptrdiff_t count = std::ssize(values_of(arm.table(), figure)); count > 0)
      fewest = std::min<Index>(fewest, count);
  for (std::size_t i = 1; i < arms.size(); ++i) {
    const Comparison found = compare(arms[i], arms[0], figure, test_images);
    if (!found.interval) {
      table.add({arms[i].name});
      continue;
    }
    ++tests;
    table.add({arms[i].name, with_sign(unit * found.interval->value, decimals),
               half_width_text(*found.interval, unit, decimals), p_text(found.welch), p_text(found.paired)});
  }
  std::cout << fmt::format("\n{}{}, difference to {}\n", figure.key, figure.share ? " in points" : "",
                           printable(arms[0].name));
  table.print(std::cout);
  if (tests > 0) std::cout << "a difference smaller than its 95 % half-width is undecided, not absent\n";
  if (tests > 1)
    std::cout << fmt::format("{} tests at 5 %: {:.1f} false alarms are expected\n", tests,
                             0.05 * static_cast<double>(tests));
  if (fewest < 2)
    std::cout << "one run has no scatter: train each arm with three seeds or more\n";
  else if (fewest == 2)
    std::cout
        << "two seeds may agree by chance: trust only differences far larger than the 95 % half-width; expected 3 "
           "seeds or more\n";
}

/// Returns the samples of all curves, each up to the last epoch of the longest run.
std::vector<std::vector<Sample>> all_samples_of(const ComparedArm& arm) {
  std::vector<std::vector<Sample>> curves;
  for (const CurveName& curve : curve_names) curves.push_back(samples_of(arm, curve));
  return curves;
}

std::string curves_csv(const Arms& arms) {
  Table table;
  table.data({"arm", "epoch"});
  for (const std::string& key : keys_of(curve_names)) table.data({key, key + "_sd", key + "_runs"});
  for (const ComparedArm& arm : arms) {
    const std::vector<std::vector<Sample>> curves = all_samples_of(arm);
    for (std::size_t epoch = 0; epoch < curves[0].size(); ++epoch) {
      std::vector<Json> row{arm.name, epoch + 1};
      for (const std::vector<Sample>& samples : curves) {
        const Sample& sample = samples[epoch];
        row.insert(row.end(), {mean_json(sample), sample.deviation(), sample.count});
      }
      table.add(std::move(row));
    }
  }
  return table.csv();
}

Json difference_json(const std::optional<Difference>& found) {
  if (!found) return Json();
  return Json::object({{"difference", found->value},
                       {"half_width", found->half_width()},
                       {"freedom", found->freedom},
                       {"p", found->p()}});
}

Json to_json(const Arms& arms, const FigureName& figure, Index test_images) {
  Json json = compared_json(arms);
  Json& curves = json["curves"] = Json::object();
  for (const ComparedArm& arm : arms) {
    Json& epochs = curves[arm.name] = Json::list();
    const std::vector<std::vector<Sample>> of_arm = all_samples_of(arm);
    for (std::size_t epoch = 0; epoch < of_arm[0].size(); ++epoch) {
      Json& entry = epochs.push_back(Json::object({{"epoch", epoch + 1}}));
      for (std::size_t i = 0; i < curve_names.size(); ++i) entry[curve_names[i].key] = mean_json(of_arm[i][epoch]);
    }
  }
  Table tests;
  tests.data({"figure", "arm", "against", "pooled", "welch", "paired"});
  for (std::size_t i = 1; i < arms.size(); ++i) {
    const Comparison found = compare(arms[i], arms[0], figure, test_images);
    tests.add({figure.key, arms[i].name, arms[0].name, difference_json(found.interval), difference_json(found.welch),
               difference_json(found.paired)});
  }
  json["tests"] = tests.json();
  return json;
}

void draw(const Arms& arms, const CurveName& curve, const std::string& path) {
  std::string name = curve.key;
  std::ranges::replace(name, '_', ' ');
  const double unit = curve.share ? 0.01 : 1;
  LineChart chart{name + " by epoch, mean over seeds", "epoch", name + (curve.share ? ", %" : "")};
  bool any = false;
  for (const ComparedArm& arm : arms) {
    ChartLine& line = chart.lines.emplace_back(ChartLine{arm.name, {}});
    double epoch = 0;
    for (const Sample& sample : samples_of(arm, curve)) {
      ++epoch;
      if (sample.count > 0) line.points.emplace_back(epoch, sample.mean / unit);
      any = any || sample.count > 0;
    }
  }
  require(any, "compare: no run has {} yet; nothing to draw", curve.key);
  write_file(path, svg(chart));
}

int compare_command(const CompareArguments& a) {
  if (!a.output.empty()) require_writable({"-o", a.output}, ".svg");
  Arms arms = find_arms(a.runs);
  if (!a.to.empty()) put_first(arms, a.to);
  const auto has = [&](const CurveName& curve) {
    return std::ranges::any_of(arms, [&](const ComparedArm& arm) {
      const std::vector<Sample> samples = samples_of(arm, curve);
      return !samples.empty() && samples[0].count > 0;
    });
  };
  const std::string standard = has(curve_names[0]) ? "validation_accuracy" : "loss";
  const CurveName& curve = named(curve_names, a.curve.empty() ? standard : a.curve);
  const FigureName& figure = named(figure_names, a.figure);
  const Index test_images = figure.share ? a.test_images : 0;
  if (!a.output.empty()) draw(arms, curve, a.output);
  if (a.format.json) {
    std::cout << to_json(arms, figure, test_images).dump(2) << "\n";
  } else if (a.format.csv) {
    std::cout << curves_csv(arms);
  } else {
    print_settings(arms);
    print_arms(std::cout, tables_of(arms), {});
    print_curves(arms, curve);
    print_tests(arms, figure, test_images);
  }
  return ok;
}

constexpr const char* compare_help =
    "Runs on the same data that differ only in the seed form one arm, wherever the data are stored; the other arms are "
    "compared with the first arm. A directory that is not itself a run, such as the output of heed sweep, stands for "
    "all runs below it. The 95 % interval of a difference has the half-width t s sqrt(1/n_a + 1/n_b), where s^2 is the "
    "pooled variance of both arms; for accuracies with --test-images, s^2 is at least p (1 - p) / N, because few seeds "
    "often agree by chance. Welch's test uses a separate variance for each arm; the paired test uses the seeds that "
    "both arms have.";

}  // namespace

void add_compare(Command program) {
  static CompareArguments a;
  Command command = program.command("compare", "Compare runs: settings that differ, figures, curves, significance");
  command.option("RUN", &a.runs, "run directories, or directories that contain runs", {.required = true});
  command.option("--to", &a.to, "reference arm of the comparison; default: the first", {.value = "ARM"});
  command.option("--figure", &a.figure, "figure to test; default: test_accuracy",
                 {.value = "FIGURE", .one_of = keys_of(figure_names)});
  command.option("--curve", &a.curve, "curve to print by epoch; default: validation_accuracy, or loss if there is none",
                 {.value = "CURVE", .one_of = keys_of(curve_names)});
  command.option("--test-images", &a.test_images, "number of test images per accuracy",
                 {.value = "N", .range = {{1, 1e9}}});
  command.option("-o,--output", &a.output, "draw the curve, too", {.value = "FILE.svg"});
  command.option("--csv", &a.format.csv, "print the curves as CSV", {.excludes = "--figure,--test-images"});
  command.option("--json", &a.format.json, "print everything as JSON", {.excludes = "--csv"});
  command.footer(compare_help);
  command.action([] { return compare_command(a); });
}

}  // namespace heed::cli
