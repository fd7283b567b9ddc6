// heed cost: operations, memory and energy of a model.
#include "cost_forms.h"

#include "heed/analysis/cost_json.h"
#include "heed/config/energy_table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/nn/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <map>

namespace heed::cli {

namespace {

/// Joins rows of consecutive blocks with equal cost into their sum: "blocks.0-11.attn.qkv".
std::vector<CostRow> joined_blocks(const std::vector<CostRow>& rows) {
  struct Run {
    CostRow row;
    CostRow sum;
    BlockName first;
    Index last;
  };
  std::vector<Run> runs;
  for (const CostRow& row : rows) {
    const BlockName name(row.name);
    const auto same = [&](const Run& run) {
      return name.number > 0 && run.last == name.number - 1 && run.first.stem == name.stem &&
             run.first.rest == name.rest && run.row.counts == row.counts && run.row.moved == row.moved &&
             run.row.parameters == row.parameters;
    };
    const auto run = std::ranges::find_if(runs, same);
    if (run == runs.end()) {
      runs.push_back({row, row, name, name.number});
      continue;
    }
    run->last = name.number;
    run->sum.counts += row.counts;
    run->sum.moved += row.moved;
    run->sum.parameters += row.parameters;
  }
  std::vector<CostRow> joined;
  for (Run& run : runs) {
    const BlockName& first = run.first;
    if (run.last > first.number)
      run.sum.name = fmt::format("{}{}-{}{}", first.stem, first.number, run.last, first.rest);
    joined.push_back(std::move(run.sum));
  }
  return joined;
}

/// Returns the total number of operations, over all kinds.
double operations_in(const Counts& counts) {
  double sum = 0;
  for (const CountKind& kind : count_kinds) sum += static_cast<double>(counts.*kind.member);
  return sum;
}

/// Returns the quantity for percentages: energy, or the number of operations if the table has no price for any
/// operation in `total`.
double weight_of(const EnergyTable& table, const Counts& counts, const Counts& total) {
  return energy_pj(table, total) > 0 ? energy_pj(table, counts) : operations_in(counts);
}

/// Returns up to four layers, the most expensive after summing over blocks: "mlp.fc1 27.9 %, mlp.fc2 27.9 %, ...".
std::string dominating(const std::vector<CostRow>& rows, const EnergyTable& table, const Counts& total) {
  std::map<std::string, double> shares;
  for (const CostRow& row : rows) {
    const BlockName block(row.name);
    const std::string name = block.number < 0 ? row.name : block.rest.empty() ? "blocks" : block.rest.substr(1);
    shares[name] += weight_of(table, row.counts, total) / std::max(weight_of(table, total, total), 1.0);
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, share] : shares) sorted.emplace_back(-share, name);
  std::ranges::sort(sorted);
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 4) && sorted[i].first < 0; ++i)
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", sorted[i].second, -100 * sorted[i].first);
  return text;
}

void print_model(const CostArguments& a, const ModelCost& model, const CostQuery& query, const EnergyTable& table) {
  const std::vector<CostRow> rows = cost_rows(model, query);
  const CostRow total = cost_total(model, query);
  const std::vector<CountKind> kinds = kinds_of(rows);
  const double number_bytes = static_cast<double>(table.number_bytes);
  Table printed;
  printed.text(a.by.empty() ? "layer" : a.by);
  for (const CountKind& kind : kinds) printed.text(kind.name, si);
  printed.text("energy, pJ", si).text("share", fixed(1, " %")).text("bytes moved", si);
  for (const EnergyFigure& memory : table.memory) printed.text(memory.of + ", pJ", si);
  const auto add_row = [&](const CostRow& row) {
    std::vector<Json> cells{row.name};
    for (const CountKind& kind : kinds) cells.push_back(row.counts.*kind.member);
    const double share =
        weight_of(table, row.counts, total.counts) / std::max(weight_of(table, total.counts, total.counts), 1.0);
    cells.insert(cells.end(), {energy_pj(table, row.counts), 100 * share, row.moved * number_bytes});
    for (const EnergyFigure& memory : table.memory) cells.push_back(memory.pj * row.moved * number_bytes);
    printed.add(std::move(cells));
  };
  for (const CostRow& row : query.by == CostGroup::kind ? rows : joined_blocks(rows)) add_row(row);
  add_row(total);

  std::cout << fmt::format("{}: {}, per {}; {}\n\n", printable(a.model), pass_words(a), model.example,
                           counted(query.convention));
  printed.print(std::cout);
  std::cout << fmt::format(
      "\nlargest shares           {}\nparameters               {}\nexponentials in attention {} in a forward pass\n"
      "activations              {}B saved for the backward pass of a batch of {}\nenergy                   {}\n",
      dominating(rows, table, total.counts), grouped(model.parameters), grouped(attention_exponentials(model)),
      si(static_cast<double>(model.kept * table.number_bytes * query.batch)), query.batch, energy_note(table, kinds));
  if (!table.memory.empty()) std::cout << "memory                   not included in the energy: moving all bytes from";
  for (const EnergyFigure& memory : table.memory)
    std::cout << fmt::format(" {} ({} pJ/B)", printable(memory.of), memory.pj);
  if (!table.memory.empty()) std::cout << "\n";
}

int cost_command(const CostArguments& a) {
  require(!a.model.empty() || !a.compare.empty(), "cost: no model is given; expected MODEL.toml or --compare");
  require(a.model.empty() || a.compare.empty(), "cost: {} and --compare exclude each other", in_quotes(a.model));
  if (a.time) return time_command(a);
  require(a.measured.empty(), "cost: --measured requires --time");
  const bool several = !a.compare.empty() || !a.attention.empty();
  require(a.operations.empty() || (!several && a.scale.empty() && a.energy.empty() && a.convention.empty() &&
                                   a.pass.empty() && a.by.empty() && a.batch == 0 && !a.json),
          "cost: --operations combines with MODEL and --set only");
  require(a.by.empty() || (a.scale.empty() && (!several || a.json)), "cost: --by requires one model, or --json");
  const EnergyTable table = a.energy.empty() ? default_energy_table() : load_energy_table(a.energy);
  if (!a.scale.empty()) return scale_command(a, table);
  if (several) return compare_command(a, table);
  const std::unique_ptr<Model> model = make_model(load_experiment(a.model, a.sets));
  if (!a.operations.empty()) {
    (a.operations == "dot" ? write_dot : write_trace)(std::cout, trace_of(*model, true), &model->parameters());
    return ok;
  }
  const ModelCost cost = cost_of(*model);
  if (a.json)
    std::cout << cost_json(cost, query_of(a), table) << "\n";
  else
    print_model(a, cost, query_of(a), table);
  return ok;
}

/// Returns the enumerator of this name; the first if the name is empty.
template <class E>
E named(const std::string& name, std::initializer_list<const char*> names) {
  return name.empty() ? E{} : static_cast<E>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

CostQuery query_of(const CostArguments& a) {
  return {named<Convention>(a.convention, {"contractions", "all"}),
          named<CostPass>(a.pass, {"forward", "backward", "step"}), named<CostGroup>(a.by, {"layer", "block", "kind"}),
          std::max<Index>(a.batch, 1)};
}

std::vector<CountKind> kinds_of(const std::vector<CostRow>& rows) {
  std::vector<CountKind> kinds;
  for (const CountKind& kind : count_kinds)
    if (kinds.size() < 2 || std::ranges::any_of(rows, [&](const CostRow& row) { return row.counts.*kind.member > 0; }))
      kinds.push_back(kind);
  return kinds;
}

std::string energy_note(const EnergyTable& table, const std::vector<CountKind>& kinds) {
  std::vector<std::string> prices, free;
  for (const CountKind& kind : kinds) {
    const auto figure = std::ranges::find(table.operations, kind.name, &EnergyFigure::of);
    if (figure == table.operations.end())
      free.push_back(kind.name);
    else
      prices.push_back(fmt::format("{} {} pJ", kind.name, figure->pj));
  }
  std::vector<std::string> parts;
  if (!prices.empty()) parts.push_back(fmt::format("{}", fmt::join(prices, ", ")));
  if (!free.empty()) parts.push_back(fmt::format("{} without a price, counted as 0", fmt::join(free, ", ")));
  return fmt::format("{}: {}", printable(table.name), fmt::join(parts, "; "));
}

std::string pass_words(const CostArguments& a) {
  return a.pass == "step" ? "forward and backward pass" : a.pass == "backward" ? "backward pass" : "forward pass";
}

void add_cost(Command program) {
  static CostArguments a;
  Command command = program.command("cost", "Count a model's operations, memory and energy per example");
  command.option("MODEL", &a.model, "model or experiment file (TOML)");
  add_sets(command, a.sets, "override a key of the file; repeatable", config_keys());
  command.option("--batch", &a.batch, "examples per pass over the weights; default 1, or train.batch with --time",
                 {.range = {{1, 1'000'000}}});
  command.option("--convention", &a.convention,
                 "contractions (default): matrix products and weighted sums, as papers count; all: every operation",
                 {.one_of = {"contractions", "all"}});
  command.option("--pass", &a.pass, "forward (default), backward, or both as in a training step",
                 {.one_of = {"forward", "backward", "step"}});
  command.option("--by", &a.by, "rows: layer (default), block, or kind of operation",
                 {.one_of = {"layer", "block", "kind"}});
  command.option("--energy", &a.energy, "energy table (TOML), such as models/energy/int8-45nm.toml");
  command.option("--compare", &a.compare, "compare several models", {.value = "MODEL..."});
  command.option("--attention", &a.attention,
                 "compare one model with several mechanisms: softmax,sima,soft:landmarks=49",
                 {.value = "NAME[:OPTION=VALUE]...,..."});
  command.option("--scale", &a.scale, "CSV of the cost by size: tokens=49..4096 or dim=64..1024",
                 {.value = "tokens|dim=FROM..TO"});
  command.option("--time", &a.time,
                 "predict the speed of training and inference on a machine measured by heed bench, without running the "
                 "model; with --attention also the number of tokens from which one mechanism is faster than another");
  command.option("--measured", &a.measured, "measurements for --time; default: bench.json", {.value = "BENCH.json"});
  command.option("--operations", &a.operations,
                 "list the operations of a training example's forward pass, as recorded by the tape: one line each "
                 "with shapes and cost, or a graph for Graphviz",
                 {.one_of = {"list", "dot"}});
  command.option("--json", &a.json, "print one JSON object");
  command.action([] { return cost_command(a); });
}

}  // namespace heed::cli
