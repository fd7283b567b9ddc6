// heed report: results of runs as one HTML file.
#include "report_parts.h"
#include "src/apps/cli/shared/output_file.h"

#include "heed/base/printable.h"
#include "heed/draw/attention_sheet.h"

#include <fmt/ranges.h>

#include <iostream>

namespace heed::cli {

namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string output;
  bool no_images = false;
  int threads = 0;
};

std::string title_of(const std::vector<ComparedArm>& arms) {
  std::vector<std::string> names;
  for (const ComparedArm& arm : arms) names.push_back(arm.name);
  constexpr std::size_t most = 4;
  const std::string more = names.size() > most ? fmt::format(" and {} more", names.size() - most) : "";
  names.resize(std::min(names.size(), most));
  return fmt::format("{}{}", fmt::join(names, ", "), more);
}

/// Returns the run of an arm for detailed views: the first finished one, otherwise the first.
const ComparedRun& closely(const ComparedArm& arm) {
  const auto finished = std::ranges::find_if(arm.runs, [](const ComparedRun& run) { return run.history.finished; });
  return finished == arm.runs.end() ? arm.runs.front() : *finished;
}

int report_command(const ReportArguments& a) {
  use_threads(a.threads);
  const std::vector<ComparedArm> arms = find_arms(a.runs);
  const std::string output = a.output.empty() ? a.runs.front() + "/report.html" : a.output;
  require_writable({"-o", output}, ".html");
  Json report = Json::object({{"version", HEED_VERSION}});
  for (const bool with_negative : {false, true})
    report[with_negative ? "diverging_colours" : "colours"] = Json(weight_colours(64, with_negative));
  for (auto& [key, value] : Json::Object(runs_json(arms).entries())) report[key] = std::move(value);
  Json& models = report["models"] = Json::list();
  for (const ComparedArm& arm : arms) {
    const ComparedRun& run = closely(arm);
    Json model = a.no_images ? Json::object({{"obstacle", "left out (--no-images)"}}) : model_json(run.directory);
    if (model.contains("obstacle") && !a.no_images) {
      std::cout.flush();
      std::cerr << "heed: no images in the report: " << printable(model.at("obstacle").text()) << "\n";
    }
    model["run"] = run.directory;
    model["cost"] = cost_of_run(RunPaths(run.directory));
    models.push_back(std::move(model));
  }
  write_file(output, report_page(title_of(arms), report));
  std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* report_help =
    "Writes one file that opens in any browser, offline: final figures, settings that differ, curves, confusion "
    "matrix, the most confident mistakes, attention maps of a few images (a click on a patch shows its "
    "attention), cost and energy by layer, configuration, and provenance. Runs on the same data that differ only in "
    "the seed form one arm, drawn as their mean; a directory that is not itself a run stands for all runs below it. "
    "The images are from the test set, classified by the first finished run of each arm.";

}  // namespace

void add_report(Command program) {
  static ReportArguments a;
  Command command =
      program.command("report", "Write one page about runs: curves, mistakes, attention, cost, provenance");
  command.option("RUN", &a.runs, "run directories, or directories that contain runs", {.required = true});
  command.option("-o,--output", &a.output, "default: report.html in the first directory", {.value = "FILE.html"});
  command.option("--no-images", &a.no_images, "omit the parts that need the test images and the models");
  add_threads(command, a.threads);
  command.footer(report_help);
  command.action([] { return report_command(a); });
}

}  // namespace heed::cli
