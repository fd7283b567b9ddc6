// Shapes and seeds for marking mechanisms, drawn at the start of a grading run.
#include "src/apps/grading/marks/mechanism_marks.h"

#include "heed/base/suggest.h"

#include <algorithm>
#include <set>

namespace heed {

namespace {

/// Returns a shape of one of five kinds: 0: a grid with N > d, 1: a grid with N < d, 2: a grid with a class token,
/// 3: M > N, 4: M < N.
AttentionCaseShape drawn_shape(const RandomStream& random, int kind) {
  const auto from = [&](Index i, Index low, Index high) { return low + random.below(i, high - low + 1); };
  AttentionCaseShape s{"hidden", from(0, 1, 2), from(1, 2, 3), 0, 0, 0, 0, 0, 0};
  s.dim = s.heads * (kind == 1 ? from(4, 7, 9) : from(4, 3, 5));
  if (kind < 3) {
    s.grid_height = kind == 1 ? 2 : from(2, 2, 3);
    s.grid_width = kind == 1 ? from(3, 2, 3) : from(3, s.grid_height + 1, 5);
    s.class_token = kind == 2 ? 1 : 0;
    s.queries = s.keys = s.grid_height * s.grid_width + s.class_token;
  } else {
    s.queries = from(2, 3, 6), s.keys = s.queries + from(3, 1, 4);
    if (kind == 4) std::swap(s.queries, s.keys);
  }
  return s;
}

}  // namespace

std::vector<HiddenCase> draw_cases(const Mechanism* reference, bool smooth, const RandomStream& random) {
  std::vector<HiddenCase> cases;
  for (int kind = 0; kind < 5; ++kind) {
    const RandomStream stream = random.derive(static_cast<std::uint64_t>(kind));
    HiddenCase hidden{drawn_shape(stream, kind), 0};
    const auto c = reference ? attention_case(reference->name(), *reference, hidden.shape) : std::nullopt;
    if (reference && !c) continue;
    // Near a kink, finite differences do not approximate derivatives, so such inputs are redrawn.
    for (Index again = 0; again < 20; ++again) {
      hidden.seed = stream.bits(100 + again);
      if (smooth || !c || !c->note.empty()) break;
      const std::vector<CheckRow> rows = gradcheck(*c, hidden.seed);
      if (std::ranges::all_of(rows, &CheckRow::passed)) break;
    }
    cases.push_back(hidden);
  }
  // There is a reference here, since without a reference every shape gives a case.
  if (cases.empty()) fail("[{}] accepts none of the shapes that labs are graded with", reference->name());
  return cases;
}

void check_mechanism_point(const std::string& name, bool has_reference) {
  static const std::set<std::string> fixed{"output", "memory", "cost forward", "cost backward"};
  const bool gradient = name.starts_with(gradient_prefix) && name.size() > gradient_prefix.size();
  require(gradient || fixed.contains(name),
          "unknown point of a mechanism {}; expected output, gradient TENSOR, cost forward, cost backward or memory",
          in_quotes(name));
  require(has_reference || name != "output", "point 'output' requires a reference");
}

void check_tensor_of_point(const std::string& name, const Mechanism& reference, const std::vector<HiddenCase>& cases) {
  if (!name.starts_with(gradient_prefix)) return;
  const std::string tensor = name.substr(gradient_prefix.size());
  std::vector<std::string> known;
  for (const HiddenCase& hidden : cases) {
    const auto made = attention_case(reference.name(), reference, hidden.shape);
    for (const CheckInput& input : made->inputs)
      if (std::ranges::find(known, input.name) == known.end()) known.push_back(input.name);
  }
  require(std::ranges::find(known, tensor) != known.end(), "point {}: the reference has no tensor {}; expected {}",
          in_quotes(name), in_quotes(tensor), quoted_list(known));
}

}  // namespace heed
