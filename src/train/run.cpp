#include "heed/train/run.h"

#include "heed/io/file.h"
#include "heed/kernels/gemm.h"
#include "heed/parallel.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace heed {

namespace {

constexpr const char* metrics_header = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The third field of a row: its step.
Index step_of(const std::string& path, const std::string& row) {
  const std::size_t epoch = row.find(','), step = epoch == std::string::npos ? epoch : row.find(',', epoch + 1);
  require(step != std::string::npos, "{}: a line is '{}'; expected {}", path, row, metrics_header);
  Index value = -1;
  std::from_chars(row.data() + step + 1, row.data() + row.size(), value);
  require(value >= 0, "{}: a line is '{}'; its third field should be a step", path, row);
  return value;
}

}  // namespace

bool RunPaths::exists() const {
  return std::filesystem::exists(config()) || std::filesystem::exists(last()) || std::filesystem::exists(metrics());
}

void check_same_experiment(const RunPaths& paths, const Experiment& experiment) {
  const Experiment recorded = load_experiment(paths.config());
  Experiment allowed = experiment;
  allowed.train.max_steps = recorded.train.max_steps;
  allowed.train.checkpoint_steps = recorded.train.checkpoint_steps;
  allowed.train.log_steps = recorded.train.log_steps;
  allowed.train.init_head = recorded.train.init_head;
  allowed.data.path = recorded.data.path;
  if (allowed == recorded) return;
  const std::vector<std::string> before = lines_of(to_toml(recorded)), now = lines_of(to_toml(allowed));
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i)
    require(before[i] == now[i], "{}: the run was begun with `{}`, not `{}`; a resumed run keeps its configuration",
            paths.config(), before[i].substr(0, before[i].find("  #")), now[i].substr(0, now[i].find("  #")));
  fail("{}: the run was begun with another configuration; a resumed run keeps it", paths.config());
}

std::string environment_json() {
  nlohmann::ordered_json json;
  json["version"] = HEED_VERSION;
  json["compiler"] = "g++ " __VERSION__;
  json["arch"] = HEED_ARCH;
  json["cpu"] = cpu_name();
  json["blas"] = kernels::gemm_library();
  json["threads"] = threads();
  return json.dump(2) + "\n";
}

std::string environment_line() {
  return fmt::format("{}, {} thread{}, {}", cpu_name(), threads(), threads() == 1 ? "" : "s", kernels::gemm_library());
}

MetricsFile::MetricsFile(const std::string& path, Index steps) : path_(path) {
  std::string kept = metrics_header;
  if (std::filesystem::exists(path)) {
    const std::vector<std::string> rows = lines_of(read_file(path));
    for (std::size_t i = 1; i < rows.size(); ++i)
      if (!rows[i].starts_with("test,") && step_of(path, rows[i]) <= steps) kept += rows[i] + "\n";
  }
  write_file(path, kept);
  file_.reset(std::fopen(path.c_str(), "a"));
  require(file_ != nullptr, "{}: cannot be written: {}", path, std::strerror(errno));
}

void MetricsFile::write(const MetricsRow& row) {
  const auto optional = [](double value) { return value < 0 ? std::string() : fmt::format("{}", value); };
  const std::string text = fmt::format("{},{},{},{},{},{},{}\n", row.kind, row.epoch, row.step, row.loss, row.accuracy,
                                       optional(row.lr), optional(row.images_per_s));
  require(std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0,
          "{}: cannot be written: {}", path_, std::strerror(errno));
}

}  // namespace heed
