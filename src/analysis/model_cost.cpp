#include "heed/analysis/model_cost.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

namespace heed {

namespace {

using Value = TraceEntry::Value;

void add_traffic(Traffic& traffic, const Value& value, Index times = 1) {
  (value.parameter ? traffic.weights : traffic.activations) += times * value.elements();
}

Traffic forward_traffic(const TraceEntry& entry) {
  Traffic traffic;
  for (const Value& x : entry.operands) add_traffic(traffic, x);
  add_traffic(traffic, entry.result);
  traffic.activations += entry.saved;
  return traffic;
}

/// Adds the backward costs to operations that already have forward costs.
void add_backward(const std::vector<TraceEntry>& trace, std::vector<OperationCost>& operations) {
  for (OperationCost& operation : operations) operation.cost.backward = operation.cost.backward_contractions = {};
  for_each_gradient(trace, [&](std::size_t i, const Value* x, bool joins) {
    const TraceEntry& entry = trace[i];
    OperationCost& operation = operations[i];
    if (x) {
      add_traffic(operation.backward, *x, joins ? 2 : 1);
      if (joins) operation.cost.backward.add += entry.join_additions(*x);
      return;
    }
    operation.cost.backward += entry.cost.backward;
    operation.cost.backward_contractions += entry.cost.backward_contractions;
    add_traffic(operation.backward, entry.result);
    operation.backward.activations += entry.saved;
    for (const Value& operand : entry.operands) add_traffic(operation.backward, operand);
  });
}

std::vector<OperationCost> operations_of(const std::vector<TraceEntry>& trace) {
  std::vector<OperationCost> operations;
  std::set<Index> owned;  // parameters already assigned to an operation
  for (const TraceEntry& entry : trace) {
    OperationCost& operation = operations.emplace_back();
    operation.layer = entry.layer;
    operation.operation = entry.operation;
    operation.cost = entry.cost;
    operation.forward = forward_traffic(entry);
    operation.held = entry.result.elements() + entry.saved;
    Index weights = 0;  // elements of the largest parameter: the weight, not its bias
    for (const Value& x : entry.operands) {
      if (!x.parameter) continue;
      weights = std::max(weights, x.elements());
      if (x.wanted && owned.insert(x.id).second) operation.parameters += x.elements();
    }
    // Elements of rows [R, I] multiplied by weights [I, O]: R I = (R I O)^2 / (R O I O).
    if (const double multiplied = static_cast<double>(entry.cost.forward_contractions.mul);
        weights > 0 && entry.result.elements() > 0)
      operation.rows = multiplied * multiplied / static_cast<double>(entry.result.elements() * weights);
  }
  add_backward(trace, operations);
  return operations;
}

/// Returns "blocks.3" for "blocks.3.attn.qkv", "norm" for "norm".
std::string block_of(const std::string& layer) {
  const BlockName name(layer);
  return name.number < 0 ? layer.substr(0, layer.find('.')) : fmt::format("{}{}", name.stem, name.number);
}

std::string name_of(const OperationCost& operation, CostGroup by) {
  if (by == CostGroup::layer) return operation.layer;
  return by == CostGroup::block ? block_of(operation.layer) : operation.operation;
}

void add_operation(CostRow& row, const OperationCost& operation, const CostQuery& query) {
  const Cost& cost = operation.cost;
  const bool all = query.convention == Convention::all;
  const double batch = static_cast<double>(query.batch);
  const auto add = [&](const Counts& counts, const Traffic& traffic) {
    row.counts += counts;
    row.moved += static_cast<double>(traffic.activations) + static_cast<double>(traffic.weights) / batch;
  };
  if (query.pass != CostPass::backward) add(all ? cost.forward : cost.forward_contractions, operation.forward);
  if (query.pass != CostPass::forward) add(all ? cost.backward : cost.backward_contractions, operation.backward);
  row.parameters += operation.parameters;
}

const std::vector<OperationCost>& operations_for(const ModelCost& model, CostPass pass) {
  return pass == CostPass::forward ? model.inference : model.training;
}

}  // namespace

std::string counted(Convention convention) {
  const std::string what = convention == Convention::contractions
                               ? "matrix products, convolutions, distances and weighted sums"
                               : "every floating-point operation";
  return what + ", by the textbook algorithm; float may use a faster one";
}

BlockName::BlockName(const std::string& layer) : stem(layer) {
  const std::size_t digits = layer.find('.', layer.find("block")) + 1;
  const char* const end = layer.data() + layer.size();
  if (digits == 0) return;  // no '.' was found: npos + 1 is 0
  const auto [after, error] = std::from_chars(layer.data() + digits, end, number);
  if (error != std::errc()) return;
  stem = layer.substr(0, digits);
  rest.assign(after, end);
}

ModelCost cost_of(const Model& model) {
  require(model.most_operations() < 9e18, "[cost] a pass may execute {:.0e} operations, too many for a 64-bit counter",
          model.most_operations());
  ModelCost cost;
  cost.example = model.example_name();
  const std::vector<TraceEntry> trace = trace_of(model, true);
  cost.training = operations_of(trace);
  cost.inference = operations_of(trace_of(model, false));
  cost.parameters = model.parameters().trainable_elements();
  for (const TraceEntry& entry : trace) cost.kept += entry.result.elements() + entry.saved;
  return cost;
}

std::vector<TraceEntry> trace_of(const Model& model, bool training, bool as_run) {
  auto shapes = Parameters<float>::shapes_of(model.parameters());
  std::vector<TraceEntry> trace;
  Tape<float> tape({.parameters = &shapes,
                    .prepared = as_run,
                    .training = training,
                    .execution = {.dry_run = true},
                    .observers = {.trace = &trace, .trace_fused = as_run}});
  model.logits(tape, model.example());
  return trace;
}

std::vector<OperationCost> operations_as_run(const Model& model, bool training) {
  return operations_of(trace_of(model, training, true));
}

std::vector<CostRow> cost_rows(const ModelCost& model, const CostQuery& query) {
  std::vector<CostRow> rows;
  std::unordered_map<std::string, std::size_t> places;
  for (const OperationCost& operation : operations_for(model, query.pass)) {
    const std::string name = name_of(operation, query.by);
    const auto [place, is_new] = places.emplace(name, rows.size());
    if (is_new) rows.push_back({name, {}});
    add_operation(rows[place->second], operation, query);
  }
  return rows;
}

CostRow cost_total(const ModelCost& model, const CostQuery& query) {
  CostRow total{"total", {}};
  for (const OperationCost& operation : operations_for(model, query.pass)) add_operation(total, operation, query);
  return total;
}

Index attention_exponentials(const ModelCost& model) {
  Index sum = 0;
  for (const OperationCost& operation : model.inference) sum += operation.cost.attention_exp;
  return sum;
}

}  // namespace heed
