// heed list: mechanisms and their options.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/fitted_text.h"

#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/pictures.h"
#include "heed/attention/plugin.h"
#include "heed/checks/backward_steps.h"
#include "heed/config/installed.h"
#include "heed/draw/line_style.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

void print_options(const std::vector<OptionInfo>& options) {
  for (const OptionInfo& option : options)
    std::cout << fitted(
        fmt::format("{:14}{:<19}  {}{}\n", "", option.name + " = " + option.fallback, option.meaning,
                    option.choices.empty() ? "" : fmt::format(" ({})", fmt::join(option.choices, ", "))));
}

int list_command() {
  for (const MechanismEntry& entry : mechanisms()) {
    std::cout << fitted(fmt::format("{:<12}  {}\n{:14}{}\n", entry.name, entry.summary, "", entry.complexity));
    if (const PluginOrigin* const plugin = plugin_of(entry.name))
      std::cout << fmt::format("{:14}from the plugin {}\n", "", plugin->file);
    print_options(entry.options());
  }
  return ok;
}

/// Returns OPTION=VALUE for each option, each preceded by `before`.
std::string options_text(const OptionValues& options, const char* before) {
  std::string text;
  for (const auto& [option, value] : options) text += fmt::format("{}{}={}", before, option, value);
  return text;
}

/// Prints a mechanism's parameters with their shapes in a small model.
void print_tensors(const Mechanism& mechanism) {
  constexpr Index dim = 64, heads = 4, side = 7;
  const AttentionShape grid{.grid_height = side, .grid_width = side, .class_token = false};
  const AttentionShape shape = mechanism.layout(dim, heads).among(side * side, grid);
  const std::vector<ParameterSpec> own = mechanism.parameters(shape);
  std::cout << fitted(
      fmt::format("\nparameters of the mechanism, for {} patches of {} x {}, {} channels, {} heads:{}\n", side * side,
                  side, side, dim, heads, own.empty() ? " none" : ""));
  for (const ParameterSpec& spec : own)
    std::cout << fitted(fmt::format("  {:<11}  {}{}\n", spec.name, spec.shape, spec.trainable ? "" : ", not trained"));
}

/// Prints the pictures that heed maps can draw of a mechanism, over all variants of its options.
void print_pictures(const MechanismEntry& entry) {
  std::vector<std::pair<std::string, std::string>> meanings;  // in the order of drawing
  const auto add = [&](const std::string& name, const std::string& meaning) {
    const auto named = [&](const auto& known) { return known.first == name; };
    if (std::ranges::none_of(meanings, named)) meanings.emplace_back(name, meaning);
  };
  for (const OptionValues& options : entry.variants()) {
    const auto mechanism = entry.make(options);
    if (const MapCapability* const maps = mechanism->maps())
      add("map", fmt::format("the attention map, {}drawn by default",
                             maps->map_traits().axes == MapAxes::channels ? "channels by channels, " : ""));
    for (const PictureInfo& picture : picture_infos(*mechanism)) add(picture.name, picture.meaning);
  }
  std::cout << fitted(
      fmt::format("\nheed maps RUN IMAGE --show ...{}\n", meanings.empty() ? " has nothing to draw" : ""));
  for (const auto& [name, meaning] : meanings) std::cout << fitted(fmt::format("  {:<11}  {}\n", name, meaning));
}

/// Returns why a mechanism does not fit vit-micro, with its grid of 7 x 7 patches and class token; empty if it does.
std::string misfit(const Mechanism& mechanism) {
  constexpr Index side = 7;
  try {
    const AttentionShape grid{.grid_height = side, .grid_width = side, .class_token = true};
    mechanism.check(mechanism.layout(/*dim=*/64, /*heads=*/4).among(side * side + 1, grid));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Prints all details of one mechanism.
int list_one(const std::string& name) {
  const MechanismEntry& entry = find_mechanism(name);
  const std::vector<OptionInfo> options = entry.options();
  std::cout << fitted(fmt::format("{:<12}  {}\n{:14}{}\n\noptions, with their defaults:{}\n", entry.name, entry.summary,
                                  "", entry.complexity, options.empty() ? " none" : ""));
  print_options(options);
  if (std::ranges::none_of(options, [](const OptionInfo& option) { return option.name == "causal"; }))
    std::cout << fitted(fmt::format("{:14}no causal form\n", ""));
  std::cout << "\nsettings for comparisons with other mechanisms:\n";
  for (const MechanismSetting& setting : entry.settings())
    std::cout << fitted(setting.options.empty()
                            ? fmt::format("  {}\n", setting.label)
                            : fmt::format("  {:<27} {}\n", setting.label, options_text(setting.options, " ")));
  const OptionValues first = entry.settings().front().options;
  const std::unique_ptr<Mechanism> mechanism = entry.make(first);
  print_tensors(*mechanism);
  print_pictures(entry);
  const PluginOrigin* const plugin = plugin_of(entry.name);
  std::cout << fitted(
      fmt::format("\nin a model:    --set attention.mechanism={0}{1}\n"
                  "its gradients: heed gradcheck {0}\n",
                  entry.name, options_text(first, " --set attention.")));
  const std::string page = plugin ? plugin->source : mechanism_page(entry.name);
  // An installation lacks most sources.
  if (plugin || std::filesystem::exists(find_installed(page))) std::cout << fmt::format("its page:      {}\n", page);
  if (plugin) std::cout << fmt::format("its plugin:    {}\n", plugin->file);
  if (const std::string why = misfit(*mechanism); !why.empty())
    std::cout << fitted(
        fmt::format("models/vit-micro.toml has 50 tokens; {} needs other sizes: {}\n", entry.name, why));
  const std::string experiment = fmt::format("experiments/mnist-{}.toml", entry.name);
  if (std::filesystem::exists(find_installed(experiment))) std::cout << fmt::format("in use:        {}\n", experiment);
  return ok;
}

/// Returns true if the mechanism has parameters for every pair of tokens, so that four times the tokens need up to
/// sixteen times the parameters; the test requires more than eight times.
bool learns_pairs(const Mechanism& mechanism) {
  const auto numbers = [&](Index side) {
    const AttentionLayout layout = mechanism.layout(/*dim=*/64, /*heads=*/4);
    const AttentionShape shape = layout.among(side * side, {.grid_height = side, .grid_width = side});
    Index sum = 0;
    for (const ParameterSpec& spec : mechanism.parameters(shape)) sum += spec.shape.elements();
    return sum;
  };
  return numbers(64) > 8 * numbers(32);
}

/// Prints a line for each setting, for scripts: label, growth of time with tokens, and NAME:OPTION=VALUE..., separated
/// by tabs.
int list_settings() {
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings()) {
      const char* const growth = setting.linear ? "linear" : "quadratic";
      std::cout << fmt::format("{}\t{}\t{}{}\n", setting.label,
                               learns_pairs(*entry.make(setting.options)) ? "matrix" : growth, entry.name,
                               options_text(setting.options, ":"));
    }
  return ok;
}

/// Prints a line for each name, for scripts: colour, marker and dashes of its line in a chart, separated by tabs.
int list_styles(const std::vector<std::string>& names) {
  for (const auto& [colour, dashes] : line_styles(names))
    std::cout << fmt::format("{}\t{}\t{}\n", line_colours[colour], line_markers[colour].name, line_dashes[dashes]);
  return ok;
}

}  // namespace

void add_list(Command program) {
  static bool settings = false;
  static std::string name;
  static std::vector<std::string> styled;
  Command command = program.command("list", "Show the attention mechanisms and their options");
  command.option("NAME", &name, "one mechanism, in full", {.offered = mechanism_names()});
  command.option("--settings", &settings,
                 "list comparable settings, one per line: the label; linear or quadratic growth of time with the "
                 "tokens, or 'matrix' if there are parameters of size tokens x tokens; NAME:OPTION=VALUE...",
                 {.excludes = "NAME"});
  command.option("--style", &styled, "list the colour, marker and dashes of the chart line with this label; repeatable",
                 {.value = "LINE", .excludes = "NAME,--settings"});
  command.action([] {
    if (!styled.empty()) return list_styles(styled);
    return settings ? list_settings() : name.empty() ? list_command() : list_one(name);
  });
}

}  // namespace heed::cli
