#include "run_table.h"

#include "src/apps/cli/shared/table.h"

#include "heed/base/printable.h"

#include <fmt/format.h>

#include <filesystem>

namespace heed::cli {

namespace {

/// Returns, for example, "98.47 % ± 0.12", "98.47 %" for one seed, "-" for none. A count, such as epochs, has a decimal
/// and a deviation if it differs between seeds.
std::string mean_text(const Sample& sample, FigureName figure) {
  if (sample.count == 0) return "-";
  const std::optional<double> deviation = sample.deviation();
  if (figure.decimals == 0 && deviation.value_or(0) > 0) figure.decimals = 1;
  const std::string mean = shown(figure, sample.mean);
  if (!deviation || figure.decimals == 0) return mean;
  return fmt::format("{} ± {:.{}f}", mean, figure.share ? 100 * *deviation : *deviation, figure.decimals);
}

std::size_t finished(const TableArm& arm) {
  return static_cast<std::size_t>(std::ranges::count(arm.runs, "finished", &TableRun::state));
}

/// Returns a table with a row for each arm: means with deviations as text, and both as numbers for CSV.
Table table_of(const std::vector<TableArm>& arms) {
  Table table;
  table.column("arm", "arm").text("seeds").data({"runs", "finished"});
  for (const FigureName& figure : figure_names) {
    if (figure.title) table.text(figure.title);
    table.data({figure.key, fmt::format("{}_sd", figure.key)});
  }
  for (const TableArm& arm : arms) {
    const std::size_t done = finished(arm), all = arm.runs.size();
    std::vector<Json> row{arm.name, done == all ? fmt::format("{}", all) : fmt::format("{} of {}", done, all), all,
                          done};
    for (const FigureName& figure : figure_names) {
      const Sample sample = sample_of(values_of(arm, figure));
      if (figure.title) row.push_back(mean_text(sample, figure));
      row.insert(row.end(), {mean_json(sample), sample.deviation()});
    }
    table.add(std::move(row));
  }
  return table;
}

Table table_of_runs(const std::vector<TableArm>& arms) {
  Table table;
  table.data({"arm", "seed", "state", "hash", "version"});
  for (const FigureName& figure : figure_names) table.data({figure.key});
  for (const TableArm& arm : arms)
    for (const TableRun& run : arm.runs) {
      std::vector<Json> row{arm.name, run.seed, run.state, run.hash, run.version};
      for (const FigureName& figure : figure_names) row.push_back(run.figures.*figure.value);
      table.add(std::move(row));
    }
  return table;
}

Json run_json(const TableRun& run) {
  Json json = Json::object({{"directory", run.directory}, {"seed", run.seed}, {"state", run.state}});
  if (!run.note.empty()) json["note"] = run.note;
  json["hash"] = run.hash;
  json["version"] = run.version.empty() ? Json() : Json(run.version);
  for (const FigureName& figure : figure_names) json[figure.key] = run.figures.*figure.value;
  return json;
}

/// Prints notes on unfinished runs, which the means exclude, and the versions of the finished runs unless all are this
/// program's.
void print_notes(std::ostream& out, const std::vector<TableArm>& arms) {
  std::map<std::string, int> versions;
  std::string notes;
  for (const TableArm& arm : arms)
    for (const TableRun& run : arm.runs) {
      if (run.state == "finished" && !run.version.empty()) ++versions[run.version];
      if (run.state != "finished")
        notes += printable(fmt::format("{}, seed {}: {}{}{}", arm.name, run.seed, run.state,
                                       run.note.empty() ? "" : ": ", run.note)) +
                 "\n";
    }
  for (const auto& [version, count] : versions)
    if (version != HEED_VERSION || versions.size() > 1)
      notes += fmt::format("{} from heed {}\n", count == 1 ? "1 run is" : fmt::format("{} runs are", count),
                           printable(version));
  if (!notes.empty()) out << "\n" << notes;
}

}  // namespace

std::vector<double> values_of(const TableArm& arm, const FigureName& figure) {
  std::vector<double> values;
  for (const TableRun& run : arm.runs)
    if (const std::optional<double>& value = run.figures.*figure.value) values.push_back(*value);
  return values;
}

Json mean_json(const Sample& sample) { return sample.count > 0 ? Json(sample.mean) : Json(); }

std::string shown(const FigureName& figure, double value) {
  if (figure.decimals == 0) return grouped(value);
  return fmt::format("{:.{}f}{}", figure.share ? 100 * value : value, figure.decimals, figure.share ? " %" : "");
}

void print_arms(std::ostream& out, const std::vector<TableArm>& arms, const TableFormat& format) {
  if (format.json) {
    out << arms_json(arms).dump(2) << "\n";
  } else if (format.csv) {
    out << (format.runs ? table_of_runs(arms) : table_of(arms)).csv();
  } else if (format.markdown) {
    table_of(arms).print_markdown(out);
  } else {
    table_of(arms).print(out);
    print_notes(out, arms);
  }
}

Json arms_json(const std::vector<TableArm>& arms) {
  Json list = Json::list();
  for (const TableArm& arm : arms) {
    Json json = Json::object({{"arm", arm.name}, {"finished", finished(arm)}});
    for (const FigureName& figure : figure_names) {
      const Sample sample = sample_of(values_of(arm, figure));
      json[figure.key] =
          Json::object({{"count", sample.count}, {"mean", mean_json(sample)}, {"sd", sample.deviation()}});
    }
    Json& runs = json["runs"];
    for (const TableRun& run : arm.runs) runs.push_back(run_json(run));
    list.push_back(std::move(json));
  }
  return Json::object({{"arms", std::move(list)}});
}

std::string version_of(const RunPaths& paths) {
  if (!std::filesystem::exists(paths.environment())) return "";
  return take_json(paths.environment(), [](const Json& json) { return json.at("version").text(); });
}

}  // namespace heed::cli
