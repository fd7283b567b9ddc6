// Trace of a pass, as data for cost tables, as text, and as a graph.
#pragma once

#include "heed/cost/counts.h"
#include "heed/base/parameters.h"
#include "heed/base/tensor.h"

#include <iosfwd>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// A recorded operation.
struct TraceEntry {
  /// An operand or result. A tensor has the same id in the whole trace; ids of parameters are numbered separately.
  struct Value {
    Index id = 0;
    bool parameter = false;
    bool wanted = false;  ///< whether its gradient is computed
    Shape shape{};

    bool is(const Value& other) const { return id == other.id && parameter == other.parameter; }
    Index elements() const { return shape.elements(); }
  };

  const char* operation;
  std::string layer;
  Cost cost;
  Value result{};
  std::vector<Value> operands{};  ///< without duplicates
  Index saved = 0;                ///< elements saved for the backward pass, besides operands and result

  /// Returns the number of additions that add the gradient of operand x to its gradient from another use.
  Index join_additions(const Value& x) const { return cost.joins < 0 ? x.elements() : cost.joins; }
};

/// Visits the operations of a trace in the order of the backward pass from the last result: calls f(i, nullptr, false)
/// for each operation i whose result has a gradient, then f(i, &x, joins) for each operand x whose gradient is
/// computed; `joins` is true if x already has a gradient from another use, to which the tape adds this one.
template <class F>
void for_each_gradient(std::span<const TraceEntry> trace, const F& f) {
  if (trace.empty()) return;
  std::set<std::pair<bool, Index>> begun{{trace.back().result.parameter, trace.back().result.id}};
  for (std::size_t i = trace.size(); i-- > 0;) {
    const TraceEntry& entry = trace[i];
    if (!entry.result.wanted || !begun.contains({entry.result.parameter, entry.result.id})) continue;
    f(i, nullptr, false);
    for (const TraceEntry::Value& x : entry.operands)
      if (x.wanted) f(i, &x, !begun.insert({x.parameter, x.id}).second);
  }
}

/// Writes one line per operation: its result, operands with their shapes, cost and layer.
///
///   %2 [2, 4] = linear(%0 [2, 3], fc.weight [4, 3])  forward 24 mul, 16 add; backward 48 mul, 30 add  in fc
///
/// Values of the tape, including parameters, are numbered from %0; parameters are printed by their names in
/// `parameters` or, without it, by their ids. The cost counts all floating-point operations, except sums of gradients
/// of a tensor that several operations use.
void write_trace(std::ostream& out, std::span<const TraceEntry> trace, const ParameterList* parameters = nullptr);

/// Writes the operations as a Graphviz graph: boxes are operations, ellipses inputs and parameters.
void write_dot(std::ostream& out, std::span<const TraceEntry> trace, const ParameterList* parameters = nullptr);

}  // namespace heed
