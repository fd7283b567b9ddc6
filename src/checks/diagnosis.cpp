#include "heed/checks/diagnosis.h"

#include "error_patterns.h"

#include <fmt/ranges.h>

#include <limits>
#include <set>

namespace heed {

namespace {

constexpr const char* kind_names[] = {"none",   "not finite", "missing", "superfluous", "negative",    "factor",
                                      "signs",  "transposed", "shifted", "reversed",    "permuted",    "repeated",
                                      "summed", "offset",     "factors", "offsets",     "overwritten", "unknown"};

/// Returns "token 3", "tokens 1 and 5", "tokens 1 to 7" or "tokens 0 to 3, 12 and 14". `indices` ascend.
std::string indices_text(const std::string& axis, const std::vector<Index>& indices) {
  std::vector<std::string> runs;
  for (std::size_t from = 0, to = 0; from < indices.size(); from = to) {
    while (to < indices.size() && indices[to] == indices[from] + static_cast<Index>(to - from)) ++to;
    if (to - from > 2)
      runs.push_back(fmt::format("{} to {}", indices[from], indices[to - 1]));
    else
      for (std::size_t i = from; i < to; ++i) runs.push_back(std::to_string(indices[i]));
  }
  const std::string last = runs.back();
  runs.pop_back();
  return fmt::format("{}{} {}{}{}", axis, indices.size() == 1 ? "" : "s", fmt::join(runs, ", "),
                     runs.empty() ? "" : " and ", last);
}

/// Returns the position of wrong elements in square matrices: "below the diagonal", "on the diagonal" or "above the
/// diagonal"; empty for several of these positions, and if the wrong elements are in a single row or column.
std::string side_of_diagonal(const Shape& shape, const std::vector<std::set<Index>>& indices,
                             const std::vector<Index>& wrong) {
  if (shape.rank() < 2 || shape[-1] != shape[-2] || indices.end()[-1].size() < 2 || indices.end()[-2].size() < 2)
    return "";
  bool below = false, on = false, above = false;
  for (const Index element : wrong) {
    const Index column = element % shape[-1], row = element / shape[-1] % shape[-2];
    below |= row > column, on |= row == column, above |= row < column;
  }
  if (below + on + above > 1) return "";
  return below ? "below the diagonal" : on ? "on the diagonal" : "above the diagonal";
}

/// Returns for each axis the indices with wrong elements.
std::vector<std::set<Index>> wrong_indices(const Shape& shape, const std::vector<Index>& wrong) {
  std::vector<std::set<Index>> indices(static_cast<std::size_t>(shape.rank()));
  for (const Index element : wrong) {
    const std::vector<Index> place = place_of(shape, element);
    for (std::size_t axis = 0; axis < place.size(); ++axis) indices[axis].insert(place[axis]);
  }
  return indices;
}

/// Returns the correct part in words, "for head 0; wrong for heads 1 and 2", along the axis with the largest correct
/// fraction.
std::string right_part(const Shape& shape, std::span<const std::string> axes,
                       const std::vector<std::set<Index>>& wrong) {
  std::string text;
  double most = 0;
  for (std::size_t axis = 0; axis < wrong.size(); ++axis) {
    const Index size = shape[static_cast<int>(axis)];
    std::vector<Index> right, rest(wrong[axis].begin(), wrong[axis].end());
    for (Index i = 0; i < size; ++i)
      if (!wrong[axis].contains(i)) right.push_back(i);
    const double share = static_cast<double>(right.size()) / static_cast<double>(size);
    if (share <= most) continue;
    most = share;
    text = fmt::format("for {}; wrong for {}", indices_text(axes[axis], right), indices_text(axes[axis], rest));
  }
  return text;
}

/// Returns the wrong part: the product of the index sets of wrong elements along each axis.
ErrorPart wrong_part(View<const double> got, View<const double> expected, std::span<const std::string> axes,
                     const std::vector<std::set<Index>>& indices, const Likeness& same) {
  ErrorPart part{.axes = axes, .whole = expected.shape(), .same = same};
  for (const std::set<Index>& of_axis : indices) part.sizes.push_back(static_cast<Index>(of_axis.size()));
  for (Index i = 0; i < expected.size(); ++i) {
    const std::vector<Index> place = place_of(expected.shape(), i);
    bool inside = true;
    for (std::size_t axis = 0; axis < place.size(); ++axis) inside &= indices[axis].contains(place[axis]);
    if (inside) part.got.push_back(got[i]), part.expected.push_back(expected[i]);
  }
  return part;
}

}  // namespace

const char* name_of(ErrorKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

double Likeness::error(double a, double b) const {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::abs(a - b) / std::max({std::abs(a), std::abs(b), floor});
}

Diagnosis diagnose(View<const double> got, View<const double> expected, std::span<const std::string> axes,
                   const Likeness& same) {
  const Shape& shape = expected.shape();
  Diagnosis d;
  d.elements = expected.size();
  std::vector<Index> wrong;
  double most = 0;
  bool finite = true, expected_finite = true;
  for (Index i = 0; i < d.elements; ++i) {
    const double error = same.error(got[i], expected[i]);
    if (error <= same.relative) continue;
    wrong.push_back(i);
    finite &= std::isfinite(got[i]), expected_finite &= std::isfinite(expected[i]);
    if (error <= most) continue;
    most = error;
    d.worst = place_of(shape, i), d.got = got[i], d.expected = expected[i];
  }
  d.wrong = static_cast<Index>(wrong.size());
  if (wrong.empty()) return d;
  const std::vector<std::set<Index>> indices = wrong_indices(shape, wrong);
  const std::string side = side_of_diagonal(shape, indices, wrong);
  d.right = side.empty() ? right_part(shape, axes, indices) : "everywhere except " + side;
  if (!finite || !expected_finite) {
    d.kind = ErrorKind::not_finite;
    d.looks = finite ? "finite where NaN or infinity is expected" : "NaN or infinite in places";
    return d;
  }
  const Likeness alike{10 * same.relative, same.floor};
  ErrorPart all{.axes = axes, .whole = shape, .same = alike};
  all.sizes.assign(shape.begin(), shape.end());
  all.got.assign(got.begin(), got.end()), all.expected.assign(expected.begin(), expected.end());
  ErrorPattern pattern = displacement_of(all);
  if (d.wrong == d.elements || pattern.kind == ErrorKind::unknown)
    pattern = pattern_of(wrong_part(got, expected, axes, indices, alike));
  d.kind = pattern.kind;
  d.looks = pattern.text;
  d.factors = pattern.factors;
  return d;
}

std::vector<std::string> usual_axes(const Shape& shape) {
  static const std::vector<std::string> names{"set", "part", "group", "block", "row", "column"};
  if (shape.rank() == 1) return {"element"};
  return {names.end() - shape.rank(), names.end()};
}

std::string place_text(std::span<const std::string> axes, std::span<const Index> place) {
  std::string text;
  for (std::size_t axis = 0; axis < place.size(); ++axis)
    text += fmt::format("{}{} {}", axis == 0 ? "" : ", ", axes[axis], place[axis]);
  return text;
}

std::vector<Index> place_of(const Shape& shape, Index element) {
  std::vector<Index> place(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0; element /= shape[axis])
    place[static_cast<std::size_t>(axis)] = element % shape[axis];
  return place;
}

}  // namespace heed
