#include "heed/tape/trace.h"

#include "heed/cost/energy.h"

#include <ostream>
#include <set>

namespace heed {

namespace {

using Value = TraceEntry::Value;

std::string name_of(const Value& value, const ParameterList* parameters) {
  if (!value.parameter) return fmt::format("%{}", value.id);
  return parameters ? (*parameters)[static_cast<ParameterId>(value.id)].name : fmt::format("parameter {}", value.id);
}

/// Formats the counts that are not zero, "24 mul, 16 add"; "0" if all are zero.
std::string counts_text(const Counts& counts) {
  std::string text;
  for (const CountKind& kind : count_kinds)
    if (const Index n = counts.*kind.member; n != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, kind.name);
  return text.empty() ? "0" : text;
}

std::string cost_text(const Cost& cost) {
  return fmt::format("forward {}; backward {}", counts_text(cost.forward), counts_text(cost.backward));
}

/// Returns the name of a value's node in the graph.
std::string node_of(const Value& value) { return (value.parameter ? "p" : "v") + std::to_string(value.id); }

}  // namespace

void write_trace(std::ostream& out, std::span<const TraceEntry> trace, const ParameterList* parameters) {
  for (const TraceEntry& entry : trace) {
    out << fmt::format("{} {} = {}(", name_of(entry.result, parameters), entry.result.shape, entry.operation);
    for (const Value& x : entry.operands)
      out << fmt::format("{}{} {}", &x == entry.operands.data() ? "" : ", ", name_of(x, parameters), x.shape);
    out << fmt::format(")  {}{}{}\n", cost_text(entry.cost), entry.layer.empty() ? "" : "  in ", entry.layer);
  }
}

void write_dot(std::ostream& out, std::span<const TraceEntry> trace, const ParameterList* parameters) {
  out << "digraph tape {\n  rankdir = BT;\n  node [fontname = \"sans-serif\", fontsize = 10];\n";
  std::set<std::string> drawn;
  for (const TraceEntry& entry : trace) {
    const std::string node = node_of(entry.result);
    drawn.insert(node);
    out << fmt::format("  {} [shape = box, label = \"{}\\n{}\", tooltip = \"{}\"];\n", node, entry.operation,
                       entry.result.shape, cost_text(entry.cost));
    for (const Value& x : entry.operands) {
      if (drawn.insert(node_of(x)).second)
        out << fmt::format("  {} [shape = ellipse, label = \"{}\\n{}\"];\n", node_of(x), name_of(x, parameters),
                           x.shape);
      out << fmt::format("  {} -> {};\n", node_of(x), node);
    }
  }
  out << "}\n";
}

}  // namespace heed
