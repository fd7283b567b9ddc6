#include "heed/base/parameters.h"

#include <numeric>

namespace heed {

namespace {

double dot(Index n, const double* a, const double* b) { return std::inner_product(a, a + n, b, 0.0); }

/// Subtracts from `row` its projections onto `count` orthonormal rows of n elements and normalises it. Makes two
/// passes, since the first leaves rounding errors along the other rows if the remainder is small.
void orthonormalise(Index count, Index n, const double* rows, double* row) {
  for (int pass = 0; pass < 2; ++pass) {
    for (Index r = 0; r < count; ++r) {
      const double along = dot(n, rows + r * n, row);
      for (Index c = 0; c < n; ++c) row[c] -= along * rows[r * n + c];
    }
    const double length = std::sqrt(dot(n, row, row));
    for (Index c = 0; c < n; ++c) row[c] /= length;
  }
}

/// Returns element i of a random permutation of 0..count - 1, by the first i + 1 swaps of a Fisher-Yates shuffle.
Index draw_distinct(Index count, const RandomStream& stream, Index i) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index k = 0; k <= i; ++k)
    std::swap(order.at(static_cast<std::size_t>(k)),
              order.at(static_cast<std::size_t>(k + stream.below(k, count - k))));
  return order[static_cast<std::size_t>(i)];
}

}  // namespace

double detail::draw_initial(const Initial& initial, const RandomStream& stream, Index i) {
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
    case Initial::Kind::orthogonal:
      break;
  }
  HEED_ASSERT(false);
}

// Rows of normally distributed values have no preferred direction, and neither has their Gram-Schmidt basis.
std::vector<double> detail::draw_orthogonal(const RandomStream& stream, Index rows, Index columns) {
  const RandomStream directions = stream.derive("direction"), lengths = stream.derive("length");
  std::vector<double> all(static_cast<std::size_t>(rows * columns)), other(static_cast<std::size_t>(columns));
  for (Index r = 0; r < rows; ++r) {
    double* const row = all.data() + r * columns;
    const Index in_block = r % columns;
    for (Index c = 0; c < columns; ++c) row[c] = directions.normal(r * columns + c);
    orthonormalise(in_block, columns, row - in_block * columns, row);
  }
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) other[static_cast<std::size_t>(c)] = lengths.normal(r * columns + c);
    const double length = std::sqrt(dot(columns, other.data(), other.data()));
    for (Index c = 0; c < columns; ++c) all[static_cast<std::size_t>(r * columns + c)] *= length;
  }
  return all;
}

ParameterId ParameterList::add(ParameterSpec spec) {
  require(ids_.emplace(spec.name, size()).second, "[parameters] two tensors have the name '{}'", spec.name);
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
