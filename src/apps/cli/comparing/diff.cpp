// heed diff: first and largest differences between two runs, checkpoints or tensor files.
#include "run_metrics.h"
#include "tensor_files.h"
#include "src/apps/cli/shared/commands.h"

#include "heed/base/subnormals.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

struct DiffArguments {
  std::string a, b;
  double tolerance = 0;
  bool common = false;
};

/// Returns the file of tensors to compare: for a run, its last checkpoint.
std::string tensors_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const RunPaths paths(path);
  require(std::filesystem::exists(paths.last()),
          "{}: {} is missing; expected a run of heed train, or a safetensors file", path,
          std::filesystem::path(paths.last()).filename().string());
  return paths.last();
}

int diff_command(const DiffArguments& of) {
  flush_subnormals(false);  // subnormals in files of other programs are not zeros
  const SafetensorsFile a(tensors_of(of.a)), b(tensors_of(of.b));
  const FilesDifference found = compare_files(a, b, of.tolerance);
  std::string parted;  // clause about the metrics' first difference, if any
  if (std::filesystem::is_directory(of.a) && std::filesystem::is_directory(of.b))
    parted = compare_runs(std::cout, RunPaths(of.a), RunPaths(of.b), of.tolerance);
  const std::string step_a = step_of(a), step_b = step_of(b);
  std::cout << fmt::format("A  {}{}\nB  {}{}\n\n", a.path(), step_a, b.path(), step_b);
  const bool same_step = step_a == step_b || step_a.empty() || step_b.empty();
  if (!same_step) parted += "the tensors are from different steps; ";
  const std::string summary = print_difference(std::cout, found, a, b, of.tolerance);
  const bool equal = found.equal(of.common) && parted.empty();
  std::cout << fmt::format("\n{}: {}{}\n", equal ? "equal" : "different", parted, summary);
  return equal ? ok : check_failed;
}

constexpr const char* diff_help =
    "A and B are runs, whose last checkpoints are compared, or safetensors files: checkpoints, results of heed probe, "
    "or tensors dumped by another program. For two runs, their settings, data files and metrics are compared, too.\n\n"
    "Tensors are compared in the order of A's data, which is the order of computation in files written by heed; if "
    "only B is a trace of heed probe, in the order of B's data. The relative difference of two elements is |a - b| / "
    "max(|a|, |b|, 1e-3 of the tensor's largest element), in double; ulps are units in the last place of the coarser "
    "of the two number types. The first tensor that differs by more than rounding is described as by heed gradcheck, "
    "with A taken as correct.\n\n"
    "Exit status: 0 equal within the tolerance, 1 different, 2 bad input.\n\n"
    "  heed diff runs/one runs/another --tolerance 1e-6";

}  // namespace

void add_diff(Command program) {
  static DiffArguments a;
  Command command =
      program.command("diff", "Find the first difference between two runs or files of tensors, and its size");
  command.option("A", &a.a, "a run's directory or a safetensors file", {.required = true});
  command.option("B", &a.b, "compared with A: a run's directory or a safetensors file", {.required = true});
  command.option("--tolerance", &a.tolerance, "largest relative difference that counts as equal; default: 0",
                 {.value = "X", .range = {{0, 1e9}}});
  command.option("--common", &a.common, "ignore tensors that exist in one file only or differ in shape");
  command.footer(diff_help);
  command.action([] { return diff_command(a); });
}

}  // namespace heed::cli
