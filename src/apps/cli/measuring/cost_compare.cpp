// heed cost --compare and --attention: comparison of models. heed cost --scale: growth of the cost with the number of
// tokens or with the width.
#include "cost_forms.h"

#include "heed/analysis/cost_json.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/nn/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

namespace heed::cli {

namespace {

/// Returns the experiment of `path` with the mechanism, for example "sima:order=qk_first", in all blocks.
Experiment with_mechanism(const CostArguments& a, const std::string& path, const std::string& mechanism) {
  const std::vector<std::string> parts = split(mechanism, ':');
  std::vector<std::string> sets = a.sets;
  sets.push_back("attention.mechanism=" + parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    require(parts[i].find('=') != std::string::npos, "--attention {}: expected NAME:OPTION=VALUE",
            in_quotes(mechanism));
    sets.push_back(fmt::format("attention.{}.{}", parts[0], parts[i]));
  }
  return load_experiment(path, sets);
}

/// Returns the mechanisms of --attention, separated by commas outside the brackets of lists, as in
/// "sima,linformer:length=[49,16]".
std::vector<std::string> mechanisms_in(const std::string& text) {
  std::vector<std::string> mechanisms{""};
  Index depth = 0;
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      mechanisms.emplace_back();
    else
      mechanisms.back() += c;
  }
  return mechanisms;
}

Index number(const std::string& text, const std::string& scale) {
  Index value = 0;
  require(parse_number(text, value) && value >= 1 && value <= 1'000'000,
          "--scale {}: expected tokens=FROM..TO or dim=FROM..TO with numbers from 1 to 1000000", in_quotes(scale));
  return value;
}

/// Returns the counts of the mechanisms, without the projections.
Counts attention_counts(const std::vector<CostRow>& layers) {
  Counts counts;
  for (const CostRow& row : layers)
    if (row.name.ends_with(".attn")) counts += row.counts;
  return counts;
}

}  // namespace

void require_one_resolution(const ModelConfig& model) {
  require(family_called(model.family) & (vit | xcit),
          "cost: --scale, and --time with --attention, require models of one resolution, vit or xcit; found {}",
          model.family);
}

Scale scale_of(const std::string& text, const ModelConfig& model) {
  const std::size_t equals = text.find('='), dots = text.find("..");
  const std::string key = text.substr(0, equals);
  require(
      (key == "tokens" || key == "dim") && equals != std::string::npos && dots != std::string::npos && dots > equals,
      "--scale {}: expected tokens=FROM..TO or dim=FROM..TO", in_quotes(text));
  const Index from = number(text.substr(equals + 1, dots - equals - 1), text), to = number(text.substr(dots + 2), text);
  require(from <= to, "--scale {}: {} is more than {}", in_quotes(text), from, to);
  Scale scale;
  scale.tokens = key == "tokens";
  // XCiT's stem halves the width log2(patch) - 1 times.
  const Index halved = model.family == "xcit" ? std::max<Index>(model.patch / 2, 1) : 1;
  const Index step = scale.tokens ? 1 : std::lcm(model.heads, halved);
  const auto size_of = [&](Index n) { return scale.tokens ? n * n : n * step; };
  Index last = 0;
  for (Index n = 1; size_of(n) <= to; ++n) {
    const bool due = static_cast<double>(size_of(n)) >= 7.0 / 6 * static_cast<double>(last) || size_of(n + 1) > to;
    if (size_of(n) < from || !due) continue;
    last = size_of(n);
    scale.sizes.push_back(last);
  }
  require(!scale.sizes.empty(), "--scale {}: no {} in this range", in_quotes(text),
          scale.tokens          ? "square number of patches"
          : step == model.heads ? fmt::format("multiple of {} heads", model.heads)
                                : fmt::format("multiple of {} channels", step));
  return scale;
}

ModelConfig scaled(ModelConfig model, const Scale& scale, Index size) {
  if (scale.tokens) {
    const Index side = std::lround(std::sqrt(static_cast<double>(size)));
    model.image = {side * model.patch.height, side * model.patch.width};
  } else {
    model.hidden = std::max<Index>(1, model.hidden * size / model.dim);
    model.dim = size;
  }
  return model;
}

std::vector<NamedModel> models_of(const CostArguments& a) {
  require(a.attention.empty() || a.compare.size() < 2, "cost: --attention requires one model; found {}",
          a.compare.size());
  const std::vector<std::string> paths = a.model.empty() ? a.compare : std::vector{a.model};
  std::vector<NamedModel> models;
  if (a.attention.empty())
    for (const std::string& path : paths) models.push_back({path, load_experiment(path, a.sets)});
  else
    for (const std::string& mechanism : mechanisms_in(a.attention))
      models.push_back({mechanism, with_mechanism(a, paths.front(), mechanism)});
  return models;
}

int compare_command(const CostArguments& a, const EnergyTable& table) {
  const CostQuery query = query_of(a);
  std::vector<NamedModel> models = models_of(a);
  std::vector<ModelCost> costs;
  std::vector<CostRow> totals;
  for (const NamedModel& model : models) {
    costs.push_back(cost_of(*make_model(model.experiment)));
    totals.push_back(cost_total(costs.back(), query));
  }
  if (a.json) {
    std::vector<std::string> names;
    for (const NamedModel& model : models) names.push_back(model.name);
    std::cout << costs_json(names, costs, query, table) << "\n";
    return ok;
  }
  const std::vector<CountKind> kinds = kinds_of(totals);
  Table printed;
  printed.text(a.attention.empty() ? "model" : "attention").text("parameters", si);
  for (const CountKind& kind : kinds) printed.text(kind.name, si);
  printed.text("attention exp", si).text("energy, pJ", si).text("to the first", fixed(2)).text("bytes moved", si);
  const std::string of_batch = query.batch > 1 ? fmt::format(", batch of {}", query.batch) : "";
  printed.text("activations" + of_batch, [](double bytes) { return si(bytes) + "B"; });
  const double first = energy_pj(table, totals[0].counts), number_bytes = static_cast<double>(table.number_bytes);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const CostRow& total = totals[i];
    const double energy = energy_pj(table, total.counts);
    std::vector<Json> row{models[i].name, costs[i].parameters};
    for (const CountKind& kind : kinds) row.push_back(total.counts.*kind.member);
    row.insert(row.end(),
               {attention_exponentials(costs[i]), energy, first > 0 ? Json(energy / first) : Json(),
                total.moved * number_bytes, static_cast<double>(costs[i].kept * query.batch) * number_bytes});
    printed.add(std::move(row));
  }
  printed.print(std::cout);
  const bool alike = std::ranges::all_of(costs, [&](const ModelCost& c) { return c.example == costs[0].example; });
  std::cout << fmt::format("\n{}, per {}; {}\n{}\n", pass_words(a), alike ? costs[0].example : "example",
                           counted(query.convention), energy_note(table, kinds));
  return ok;
}

int scale_command(const CostArguments& a, const EnergyTable& table) {
  require(!a.json, "cost: --scale writes CSV; expected no --json");
  CostQuery query = query_of(a);
  query.by = CostGroup::layer;
  Table written;
  written.data({"model", "tokens", "dim", "params"});
  for (const CountKind& kind : count_kinds) written.data({kind.name});
  for (const CountKind& kind : count_kinds) written.data({fmt::format("attention_{}", kind.name)});
  written.data({"energy_pj", "attention_energy_pj", "bytes", "activation_bytes"});
  for (const NamedModel& model : models_of(a)) {
    Experiment x = model.experiment;
    require_one_resolution(x.model);
    const ModelConfig base = x.model;
    const Scale scale = scale_of(a.scale, base);
    for (const Index size : scale.sizes) {
      x.model = scaled(base, scale, size);
      const ModelCost cost = cost_of(*make_model(x));
      const CostRow total = cost_total(cost, query);
      Counts attention = attention_counts(cost_rows(cost, query));
      const double attention_energy = energy_pj(table, attention);
      attention.exp = attention_exponentials(cost);
      const Sides grid = x.model.grid();
      std::vector<Json> row{model.name, grid.height * grid.width, x.model.dim, cost.parameters};
      for (const CountKind& kind : count_kinds) row.push_back(total.counts.*kind.member);
      for (const CountKind& kind : count_kinds) row.push_back(attention.*kind.member);
      row.insert(row.end(),
                 {energy_pj(table, total.counts), attention_energy,
                  total.moved * static_cast<double>(table.number_bytes), cost.kept * table.number_bytes * query.batch});
      written.add(std::move(row));
    }
  }
  std::cout << written.csv();
  return ok;
}

}  // namespace heed::cli
