// Loading of one model's weights into another, where they match.
#include "heed/io/weights.h"

#include "tensor_reading.h"
#include "heed/base/suggest.h"

#include <algorithm>
#include <optional>

namespace heed {

namespace {

using Status = TakenTensor::Status;

/// Returns true if `name` matches the pattern, in which each * matches any text.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && name[0] == pattern[0] && matches(name.substr(1), pattern.substr(1));
  return matches(name, pattern.substr(1)) || (!name.empty() && matches(name.substr(1), pattern));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Rows of the file's tensor copied to rows of the model's.
struct RowCopy {
  Index from, to, rows;
};

/// The match of a model's tensor in the file.
struct Match {
  TakenTensor taken;
  std::vector<RowCopy> copies{};
  PositionRows rows{};  ///< the file's rows of a position embedding to be interpolated
};

Index rows_of(const std::vector<RowPart>& parts) {
  Index rows = 0;
  for (const RowPart& part : parts) rows += part.rows;
  return rows;
}

/// Returns the first row of the part that has the name and number of rows of `wanted`; none if there is no such part.
std::optional<Index> place_of(const std::vector<RowPart>& parts, const RowPart& wanted) {
  Index at = 0;
  for (const RowPart& part : parts) {
    if (part.name == wanted.name && part.rows == wanted.rows) return at;
    at += part.rows;
  }
  return std::nullopt;
}

/// Returns the division of `rules` whose parts have this number of rows in total; null if there is none.
const std::vector<RowPart>* division_of(const MatchingRules& rules, Index rows) {
  const auto found = std::find_if(rules.divisions.begin(), rules.divisions.end(),
                                  [&](const std::vector<RowPart>& parts) { return rows_of(parts) == rows; });
  return found != rules.divisions.end() ? &*found : nullptr;
}

/// Matches the parts named in `rules` for which the file, with the parts `theirs`, has a part of the same name and
/// number of rows.
void match_parts(const ParameterSpec& spec, const std::vector<RowPart>& theirs, const MatchingRules& rules,
                 Match& match) {
  Index to = 0;
  std::string left;
  for (const RowPart& part : spec.parts) {
    const std::optional<Index> from = place_of(theirs, part);
    if (from && contains(rules.parts, part.name)) {
      match.copies.push_back({*from, to, part.rows});
      match.taken.rows += part.rows;
    } else {
      const bool there =
          std::any_of(theirs.begin(), theirs.end(), [&](const RowPart& x) { return x.name == part.name; });
      left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", part.name,
                          from    ? "excluded by train.init_parts"
                          : there ? "different number of rows in the file"
                                  : "not in the file");
    }
    to += part.rows;
  }
  match.taken.status = left.empty() ? Status::loaded : match.copies.empty() ? Status::fresh : Status::part;
  if (!left.empty()) match.taken.reason = "without " + left;
}

Match match_tensor(const SafetensorsFile& file, const ParameterSpec& spec, const MatchingRules& rules) {
  const Shape& wanted = spec.shape;
  Match match{{.name = spec.name, .of = wanted[0]}};
  const auto skip = std::find_if(rules.skip.begin(), rules.skip.end(),
                                 [&](const std::string& pattern) { return matches(spec.name, pattern); });
  if (skip != rules.skip.end()) {
    match.taken.reason = fmt::format("skipped by {}", in_quotes(*skip));
    return match;
  }
  if (!file.contains(spec.name)) {
    match.taken.reason = "not in the file";
    return match;
  }
  const Shape& found = file.info(spec.name).shape;
  const bool all_parts = std::all_of(spec.parts.begin(), spec.parts.end(),
                                     [&](const RowPart& part) { return contains(rules.parts, part.name); });
  const bool as_wide = found.rank() == wanted.rank() && (wanted.rank() < 2 || found[1] == wanted[1]);
  const std::vector<RowPart>* const theirs = !spec.parts.empty() && as_wide ? division_of(rules, found[0]) : nullptr;
  const PositionRows rows = other_positions(found, spec, rules.from);
  const bool other_grid = rows.height > 0;
  if (found == wanted && all_parts && !other_grid) {
    match.taken.status = Status::loaded;
    match.taken.rows = wanted[0];
    match.copies.push_back({0, 0, wanted[0]});
  } else if (theirs) {
    match_parts(spec, *theirs, rules, match);
  } else if (rules.positions && other_grid) {
    match.taken.status = Status::interpolated;
    match.rows = rows;
    match.taken.rows = wanted[0];
  } else if (other_grid && found == wanted) {
    match.taken.reason = fmt::format("a grid of {} x {} patches in the file, {} x {} in the model", rows.height,
                                     rows.width, spec.positions.height, spec.positions.width);
  } else {
    match.taken.reason = fmt::format("shape {} in the file, {} in the model", found, wanted);
  }
  return match;
}

/// Throws Error if a pattern of train.init_skip matches neither a tensor of the file nor one of the model.
void require_patterns_match(const SafetensorsFile& file, const ParameterList& list, const MatchingRules& rules) {
  std::vector<std::string> names = file.names();
  for (const ParameterSpec& spec : list) names.push_back(spec.name);
  for (const std::string& pattern : rules.skip)
    require(std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(name, pattern); }),
            "train.init_skip: {} matches no tensor of the model or of {}{}", in_quotes(pattern), file.path(),
            nearest(pattern, names).empty() ? "" : suggestion(pattern, names));
}

}  // namespace

template <class T>
TakenWeights load_matching(const SafetensorsFile& file, Parameters<T>& parameters, const MatchingRules& rules) {
  const ParameterList& list = parameters.list();
  require_patterns_match(file, list, rules);
  file.check();
  TakenWeights taken;
  std::vector<std::string> used;
  Parameters<T> changed = parameters;
  for (ParameterId id = 0; id < list.size(); ++id) {
    const ParameterSpec& spec = list[id];
    if (spec.prepared || spec.training_only) continue;
    Match match = match_tensor(file, spec, rules);
    taken.tensors.push_back(match.taken);
    if (match.taken.status == Status::fresh) continue;
    used.push_back(spec.name);
    const Index width = spec.shape.elements() / spec.shape[0];
    taken.numbers += match.taken.rows * width;
    Tensor<T> values = read_numbers<T>(file, spec);
    if (match.taken.status == Status::interpolated) {
      values = interpolated(spec, values, match.rows, rules.antialias);
      match.copies.push_back({0, 0, spec.shape[0]});
    }
    for (const RowCopy& copy : match.copies)
      std::copy_n(values.data() + copy.from * width, copy.rows * width, changed[id].data() + copy.to * width);
  }
  if (used.empty()) require_own_names(file);
  require(!used.empty(), "{}: no tensor of the file matches the model; nothing would be loaded", file.path());
  for (const std::string& name : file.names())
    if (!contains(used, name) && !is_no_weight(name)) taken.unused.push_back(name);
  std::copy(changed.data(), changed.data() + changed.size(), parameters.data());
  return taken;
}

template TakenWeights load_matching(const SafetensorsFile&, Parameters<float>&, const MatchingRules&);
template TakenWeights load_matching(const SafetensorsFile&, Parameters<double>&, const MatchingRules&);

}  // namespace heed
