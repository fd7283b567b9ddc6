// What a tape tells of a pass, operation by operation.
#pragma once

#include "heed/cost/counts.h"
#include "heed/base/tensor.h"

#include <string>
#include <vector>

namespace heed {

/// One operation as it was recorded, for cost tables.
struct TraceEntry {
  /// A tensor that the operation reads or makes. The same tensor has the same id; parameters count by themselves.
  struct Value {
    Index id = 0;
    bool parameter = false;
    bool wanted = false;  ///< its gradient
    Index elements = 0;

    bool is(const Value& other) const { return id == other.id && parameter == other.parameter; }
  };

  const char* operation;
  std::string layer;
  Cost cost;
  Value result{};
  std::vector<Value> operands{};  ///< each once
  Index kept = 0;                 ///< numbers that it keeps for its backward pass, besides operands and result
};

}  // namespace heed
