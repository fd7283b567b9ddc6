// Standard models with each mechanism, measured in separate processes.
#include "bench_forms.h"

#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"
#include "heed/config/installed.h"
#include "heed/analysis/model_cost.h"
#include "heed/base/parallel.h"
#include "heed/nn/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace heed::cli {

namespace {

struct Variant {
  std::string name;
  std::vector<std::string> sets;
};

/// Returns true if the model's mechanisms support its sizes.
bool accepts(const std::string& file, const std::vector<std::string>& sets) {
  try {
    make_model(load_experiment(file, sets));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Returns models/NAME.toml in the program's source tree or installation.
std::string model_file(const std::string& name) {
  const std::filesystem::path program = program_file().parent_path();
  const std::string built = program.parent_path() / "models" / (name + ".toml");
  const std::string installed = program.parent_path() / "share/heed/models" / (name + ".toml");
  for (const std::string& path : {built, installed})
    if (std::filesystem::exists(path)) return path;
  fail("bench: the standard model {} is missing; expected {} or {}", name, built, installed);
}

/// Work of a forward pass for one example: multiply-adds, and distance terms.
struct ForwardWork {
  double products = 0, distances = 0;
};

ForwardWork forward_work(const std::string& file, const std::vector<std::string>& sets) {
  const Experiment x = load_experiment(file, sets);
  ForwardWork work;
  for (const OperationCost& operation : cost_of(*make_model(x)).inference) {
    work.products += static_cast<double>(operation.cost.forward_contractions.mul);
    work.distances += static_cast<double>(operation.cost.distances);
  }
  return work;
}

/// Returns every setting of every mechanism that the model of a file supports. Settings that do not support a class
/// token use mean pooling. A setting that supports a class token and computes distances is listed a second time, with
/// distances in the linear layers too.
std::vector<Variant> variants(const std::string& file) {
  std::vector<Variant> list;
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings()) {
      Variant variant{setting.label, {fmt::format("attention.mechanism={}", entry.name)}};
      for (const auto& [option, value] : setting.options)
        variant.sets.push_back(fmt::format("attention.{}={}", option, value));
      const bool takes_class_token = accepts(file, variant.sets);
      if (!takes_class_token) variant.sets.push_back("model.pool=mean");
      if (!takes_class_token && !accepts(file, variant.sets)) continue;
      list.push_back(variant);
      if (takes_class_token && forward_work(file, variant.sets).distances > 0) {
        variant.name += " block", variant.sets.push_back("model.linear=adder");
        list.push_back(variant);
      }
    }
  return list;
}

/// Returns the ideal seconds on all threads. A training step has three products for each product of the forward pass
/// and, for each distance, also a clamped gradient (for the input) and a product (for the weight).
double ideal_seconds(const ForwardWork& work, bool training, const bench::Limits& limits) {
  using bench::Resource;
  const double products = (training ? 3 : 1) * work.products + (training ? work.distances : 0);
  return limits.seconds_on_all(Resource::gemm, 2 * products) + limits.seconds_on_all(Resource::l1, work.distances) +
         limits.seconds_on_all(Resource::clamp, training ? work.distances : 0);
}

}  // namespace

std::string output_of(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  require(pipe(ends) == 0, "bench: cannot create a pipe for {}", words[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t process = -1;
  const int refused = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  char part[4096];
  for (ssize_t count; !refused && (count = read(ends[0], part, sizeof part)) > 0;)
    output.append(part, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  require(!refused && waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "bench: {} failed", fmt::join(words, " "));
  return output;
}

std::vector<ModelCase> model_cases() {
  struct StandardModel {
    const char* name;
    Index batch;
    bool each_mechanism = false;  // true: all mechanisms; false: the file's mechanism
    std::vector<const char*> modes = {"train", "infer"};
    const char* file = nullptr;  // name of the file to which `sets` apply; null: `name`
    std::vector<std::string> sets = {};
  };
  std::vector<ModelCase> cases;
  for (const StandardModel& model :
       {StandardModel{"vit-micro", 128, true}, StandardModel{"deit-tiny-p4", 64, true}, StandardModel{"deit-tiny", 16},
        StandardModel{"deit-small", 16}, StandardModel{"xcit-micro", 64}, StandardModel{"cvt-micro", 64},
        StandardModel{"soft-micro", 64}, StandardModel{"text-micro", 32},
        StandardModel{"text-micro", 1, false, {"write"}}, StandardModel{"density-micro", 32},
        StandardModel{"sequence-micro", 64},
        StandardModel{
            "listops-micro", 64, false, {"train", "infer"}, "sequence-micro", {"model.vocab=15", "model.context=32"}},
        StandardModel{"dino-micro",
                      128,
                      false,
                      {"train"},
                      "vit-micro",
                      {"model.image=32", "model.channels=3", "train.method=dino", "dino.out_dim=1024",
                       "dino.hidden=256", "dino.bottleneck=64", "dino.local_crops=4", "dino.local_size=16"}}}) {
    const std::string file = model_file(model.file ? model.file : model.name);
    const std::vector<Variant> list = model.each_mechanism ? variants(file) : std::vector<Variant>{{"", model.sets}};
    for (const char* mode : model.modes)
      for (const Variant& variant : list)
        cases.push_back({fmt::format("{}{}{} {}", model.name, variant.name.empty() ? "" : " ", variant.name, mode),
                         model.name, file, mode, variant.sets, model.batch});
  }
  return cases;
}

ModelResult measure(const ModelCase& model, const bench::Limits& limits, double seconds) {
  std::vector<std::string> arguments{"/proc/self/exe", "bench", model.file, "--json"};
  arguments.insert(arguments.end(), {"--batch", std::to_string(model.batch), "--mode", model.mode, "--seconds",
                                     std::to_string(seconds), "--threads", std::to_string(threads())});
  for (const std::string& set : model.sets) arguments.insert(arguments.end(), {"--set", set});
  if (model.mode == "train") arguments.push_back("--profile");
  const Json json = Json::parse(output_of(arguments));
  const auto number = [&](const char* key) { return json.at(key).number(); };
  const ForwardWork work = forward_work(model.file, model.sets);
  ModelResult result{{model.name, json.at("unit").text(), number("img_s"), number("low_img_s"), number("high_img_s")},
                     model.model,
                     model.mode,
                     work.distances > 0 ? "gemm, l1, clamp" : "gemm",
                     model.batch,
                     ideal_seconds(work, model.mode == "train", limits) * number("img_s"),
                     number("peak_mb"),
                     Json::object()};
  if (json.contains("profile_ms")) result.profile = json.at("profile_ms");
  return result;
}

}  // namespace heed::cli
