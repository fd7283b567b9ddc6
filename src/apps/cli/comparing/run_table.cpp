#include "run_table.h"

#include "src/apps/cli/shared/cost_table.h"

#include "heed/base/printable.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

namespace heed::cli {

namespace {

using Cells = std::vector<std::vector<std::string>>;

/// "98.47 % ± 0.12", "98.47 %" of one seed, "-" of none.
std::string mean_text(const TableArm& arm, const FigureName& figure) {
  const Sample sample = sample_of(values_of(arm, figure));
  if (sample.count == 0) return "-";
  const std::string mean = shown(figure, sample.mean);
  const std::optional<double> deviation = sample.deviation();
  if (!deviation || figure.decimals == 0) return mean;
  return fmt::format("{} ± {:.{}f}", mean, figure.share ? 100 * *deviation : *deviation, figure.decimals);
}

std::size_t finished(const TableArm& arm) {
  return static_cast<std::size_t>(
      std::count_if(arm.runs.begin(), arm.runs.end(), [](const TableRun& run) { return run.state == "finished"; }));
}

Cells text_cells(const std::vector<TableArm>& arms) {
  Cells cells{{"arm", "seeds"}};
  for (const FigureName& figure : figure_names)
    if (figure.title) cells[0].push_back(figure.title);
  for (const TableArm& arm : arms) {
    const std::size_t done = finished(arm), all = arm.runs.size();
    std::vector<std::string>& line = cells.emplace_back();
    line = {arm.name, done == all ? fmt::format("{}", all) : fmt::format("{} of {}", done, all)};
    for (const FigureName& figure : figure_names)
      if (figure.title) line.push_back(mean_text(arm, figure));
  }
  return cells;
}

void print_markdown(std::ostream& out, const Cells& cells) {
  for (std::size_t row = 0; row < cells.size(); ++row) {
    out << printable(fmt::format("| {} |", fmt::join(cells[row], " | "))) << "\n";
    if (row > 0) continue;
    for (std::size_t i = 0; i < cells[0].size(); ++i) out << "| --- ";
    out << "|\n";
  }
}

void print_csv(std::ostream& out, const std::vector<TableArm>& arms) {
  out << "arm,runs,finished";
  for (const FigureName& figure : figure_names) out << fmt::format(",{0},{0}_sd", figure.key);
  out << "\n";
  for (const TableArm& arm : arms) {
    out << fmt::format("{},{},{}", csv_text(arm.name), arm.runs.size(), finished(arm));
    for (const FigureName& figure : figure_names) {
      const Sample sample = sample_of(values_of(arm, figure));
      const std::optional<double> deviation = sample.deviation();
      out << "," << (sample.count > 0 ? fmt::format("{}", sample.mean) : "");
      out << "," << (deviation ? fmt::format("{}", *deviation) : "");
    }
    out << "\n";
  }
}

void print_runs_csv(std::ostream& out, const std::vector<TableArm>& arms) {
  out << "arm,seed,state,hash,version";
  for (const FigureName& figure : figure_names) out << "," << figure.key;
  out << "\n";
  for (const TableArm& arm : arms)
    for (const TableRun& run : arm.runs) {
      out << fmt::format("{},{},{},{},{}", csv_text(arm.name), run.seed, run.state, run.hash, csv_text(run.version));
      for (const FigureName& figure : figure_names) {
        const std::optional<double>& value = run.figures.*figure.value;
        out << "," << (value ? fmt::format("{}", *value) : "");
      }
      out << "\n";
    }
}

Json run_json(const TableRun& run) {
  Json json = Json::object({{"directory", run.directory}, {"seed", run.seed}, {"state", run.state}});
  if (!run.note.empty()) json["note"] = run.note;
  json["hash"] = run.hash;
  json["version"] = run.version.empty() ? Json() : Json(run.version);
  for (const FigureName& figure : figure_names) json[figure.key] = run.figures.*figure.value;
  return json;
}

/// What a table of means does not say: runs that are not finished, and those of other versions.
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
      notes += fmt::format("{} runs are by heed {}\n", count, printable(version));
  if (!notes.empty()) out << "\n" << notes;
}

}  // namespace

std::vector<double> values_of(const TableArm& arm, const FigureName& figure) {
  std::vector<double> values;
  for (const TableRun& run : arm.runs)
    if (const std::optional<double>& value = run.figures.*figure.value) values.push_back(*value);
  return values;
}

std::string shown(const FigureName& figure, double value) {
  if (figure.decimals == 0) return grouped(std::lround(value));
  return fmt::format("{:.{}f}{}", figure.share ? 100 * value : value, figure.decimals, figure.share ? " %" : "");
}

void add_table_format(Command command, TableFormat& format) {
  command.option("--csv", &format.csv, "print the table as CSV");
  command.option("--json", &format.json, "print it as JSON, with every run", {.excludes = "--csv"});
}

void print_arms(std::ostream& out, const std::vector<TableArm>& arms, const TableFormat& format) {
  if (format.json) {
    out << arms_json(arms).dump(2) << "\n";
  } else if (format.csv && format.runs) {
    print_runs_csv(out, arms);
  } else if (format.csv) {
    print_csv(out, arms);
  } else if (format.markdown) {
    print_markdown(out, text_cells(arms));
  } else {
    print_table(out, text_cells(arms));
    print_notes(out, arms);
  }
}

Json arms_json(const std::vector<TableArm>& arms) {
  Json list = Json::list();
  for (const TableArm& arm : arms) {
    Json json = Json::object({{"arm", arm.name}, {"finished", finished(arm)}});
    for (const FigureName& figure : figure_names) {
      const Sample sample = sample_of(values_of(arm, figure));
      const bool any = sample.count > 0;
      json[figure.key] = Json::object(
          {{"count", sample.count}, {"mean", any ? Json(sample.mean) : Json()}, {"sd", sample.deviation()}});
    }
    Json& runs = json["runs"];
    for (const TableRun& run : arm.runs) runs.push_back(run_json(run));
    list.push_back(std::move(json));
  }
  return Json::object({{"arms", std::move(list)}});
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string version_of(const RunPaths& paths) {
  if (!std::filesystem::exists(paths.environment())) return "";
  return take_json(paths.environment(), [](const Json& json) { return json.at("version").text(); });
}

}  // namespace heed::cli
