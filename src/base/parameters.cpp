#include "heed/base/parameters.h"

#include <numeric>

namespace heed {

namespace {

/// Element i of a random order of 0..count - 1: the first i + 1 exchanges of a Fisher-Yates shuffle.
Index draw_distinct(Index count, const RandomStream& stream, Index i) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index k = 0; k <= i; ++k)
    std::swap(order.at(static_cast<std::size_t>(k)),
              order.at(static_cast<std::size_t>(k + stream.below(k, count - k))));
  return order[static_cast<std::size_t>(i)];
}

}  // namespace

double draw_initial(const Initial& initial, const RandomStream& stream, Index i) {
  switch (initial.kind) {
    case Initial::Kind::constant:
      return initial.value;
    case Initial::Kind::normal:
      return initial.value * stream.normal(i);
    case Initial::Kind::uniform:
      return stream.uniform(i, -initial.value, initial.value);
    case Initial::Kind::distinct:
      return initial.value + static_cast<double>(draw_distinct(initial.count, stream, i));
    case Initial::Kind::truncated_normal:
      for (std::uint64_t attempt = 0;; ++attempt) {
        const double z = stream.derive(attempt).normal(i);
        if (std::abs(z) <= 2) return initial.value * z;
      }
  }
  HEED_ASSERT(false);
}

ParameterId ParameterList::add(ParameterSpec spec) {
  require(ids_.emplace(spec.name, size()).second, "[parameters] two tensors are called '{}'", spec.name);
  specs_.push_back(std::move(spec));
  return size() - 1;
}

ParameterId ParameterList::find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

Index ParameterList::trainable_elements() const {
  Index sum = 0;
  for (const ParameterSpec& spec : specs_)
    if (spec.trainable) sum += spec.shape.elements();
  return sum;
}

}  // namespace heed
