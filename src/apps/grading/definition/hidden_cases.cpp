// Shapes and seeds for marking mechanisms, drawn at the start of a grading run.
#include "src/apps/grading/marks/mechanism_marks.h"

#include "heed/base/suggest.h"

#include <algorithm>
#include <set>

namespace heed {

namespace {

AttentionCaseShape drawn_shape(const RandomStream& random, int kind) {
  const auto from = [&](Index i, Index low, Index high) { return low + random.below(i, high - low + 1); };
  AttentionCaseShape s{"hidden", from(0, 1, 2), from(1, 2, 3), 0, 0, 0, 0, 0, 0};
  const Index height = from(2, 2, 3), width = from(3, height + 1, 5);
  switch (kind) {
    case 0:  // N > d, a grid
      s.grid_height = height, s.grid_width = width;
      s.queries = s.keys = height * width;
      s.dim = s.heads * from(4, 3, 5);
      break;
    case 1:  // N < d, a grid
      s.grid_height = 2, s.grid_width = from(3, 2, 3);
      s.queries = s.keys = s.grid_height * s.grid_width;
      s.dim = s.heads * from(4, 7, 9);
      break;
    case 2:  // a class token
      s.grid_height = height, s.grid_width = width, s.class_token = 1;
      s.queries = s.keys = height * width + 1;
      s.dim = s.heads * from(4, 3, 5);
      break;
    default:  // M > N, M < N
      s.queries = from(2, 3, 6), s.keys = s.queries + from(3, 1, 4);
      s.dim = s.heads * from(4, 3, 5);
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
