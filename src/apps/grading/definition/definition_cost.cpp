// Cost stated in a definition's header.
#include "definition_text.h"
#include "features.h"

#include "heed/cost/energy.h"

#include <fmt/format.h>

namespace heed {

namespace {

std::string counts_text(const Counts& c) {
  std::string text;
  for (const CountKind& kind : count_kinds)
    if (c.*kind.member > 0) text += fmt::format("{}.{} = {}", text.empty() ? "" : ", ", kind.name, c.*kind.member);
  return "Counts{" + text + "}";
}
std::string value_counts(const FeatureMap& map) { return counts_text(info_of(map.feature).value_counts); }
std::string slope_counts(const FeatureMap& map, Index factors = 1) {
  return counts_text(info_of(map.feature).slope_counts + Counts{.mul = factors});
}

/// Returns the cost of dividing the features of `rows` tokens of d channels by the lengths of the tokens or channels,
/// or the cost of the backward pass of this division.
std::string norm_counts(Norm norm, const char* rows, bool forward) {
  const bool token = norm == Norm::token;
  const std::string lengths = token ? rows : "d", inner = token ? "d" : rows;
  if (norm == Norm::none) return "Counts{}";
  return forward ? fmt::format("{0} * Counts{{.mul = {1}, .add = {1}, .div = {1}, .sqrt = 1}}", lengths, inner)
                 : fmt::format("{0} * Counts{{.mul = 2 * {1}, .add = 2 * {1} - 1, .div = {1}}}", lengths, inner);
}

}  // namespace

std::string cost_text(const Definition& d, const PlantedBugs& bugs) {
  const bool pairs = d.order == ProductOrder::pairs;
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  const bool query_gated = is_map(d.query_gate), key_gated = is_map(d.key_gate);
  line("  Cost cost(const AttentionShape& shape) const override {{\n    const auto [N, M, d, e] = shape.sizes();");
  line("    Cost cost;\n    // F, G and W");
  line("    cost.forward = N * d * {} + {} + M * d * {} + {};", value_counts(d.query),
       norm_counts(d.query_norm, "N", true), value_counts(d.key),
       pick(bugs.forward_cost, norm_counts(d.key_norm, "M", true), {"Counts{}", norm_counts(d.key_norm, "N", true)}));
  if (key_gated) line("    cost.forward += M * e * ({} + Counts{{.mul = 1}});", value_counts(d.key_gate));
  line("    // A or Z, and P");
  if (pairs) {
    line("    cost.forward += product_counts(N, M, d) + N * M * {} + product_counts(N, e, M) + {};",
         value_counts(d.score), d.by_sums ? "N * Counts{.add = M - 1, .div = M}" : "N * Counts{.div = M}");
  } else {
    line("    cost.forward += product_counts(d, e, M) + product_counts(N, e, d) + {};",
         d.by_sums ? "d * Counts{.add = M - 1} + product_counts(N, 1, d) + N * Counts{.div = e}"
                   : "N * Counts{.div = e}");
  }
  if (query_gated) line("    cost.forward += N * e * ({} + Counts{{.mul = 1}});", value_counts(d.query_gate));
  line("    // Backward: the gates, and the products");
  line("    cost.backward = Counts{{}};");
  const auto gate_counts = [&](const char* rows, const FeatureMap& gate) {
    line("    cost.backward += {} * e * ({} + {} + Counts{{.mul = 1}});", rows, slope_counts(gate, 2),
         value_counts(gate));
  };
  if (query_gated) gate_counts("N", d.query_gate);
  if (key_gated) gate_counts("M", d.key_gate);
  const std::string once = "product_counts(M, e, N)";
  if (pairs) {
    line("    cost.backward += product_counts(N, M, e) + {} + product_counts(N, d, M) + product_counts(M, d, N);",
         pick(bugs.backward_cost, once, {"Counts{}", "product_counts(M, e, N + 1)", "2 * " + once}));
    line("    cost.backward += {};",
         d.by_sums ? "N * Counts{.mul = M, .add = 2 * M - 1, .div = M}" : "N * Counts{.div = M}");
    if (is_map(d.score)) line("    cost.backward += N * M * {};", slope_counts(d.score));
  } else {
    line("    cost.backward += product_counts(N, d, e) + product_counts(d, e, N) + {} + product_counts(M, e, d);",
         pick(bugs.backward_cost, "product_counts(M, d, e)",
              {"Counts{}", "product_counts(M, d, e + 1)", "2 * product_counts(M, d, e)"}));
    if (d.by_sums) {
      line("    cost.backward += N * Counts{{.mul = e, .add = e - 1, .div = e + 1}} + product_counts(d, 1, N);");
      line("    cost.backward += N * d * Counts{{.mul = 1, .add = 1}} + M * d * Counts{{.add = 1}};");
    } else {
      line("    cost.backward += N * Counts{{.div = e}};");
    }
  }
  line("    // Lengths and features; dq and dk are added to the gates' contributions, if any");
  line("    cost.backward += {} + N * d * ({}{});", norm_counts(d.query_norm, "N", false), slope_counts(d.query),
       query_gated ? " + Counts{.add = 1}" : "");
  line("    cost.backward += {} + M * d * ({}{});", norm_counts(d.key_norm, "M", false), slope_counts(d.key),
       key_gated ? " + Counts{.add = 1}" : "");
  line("    cost.forward_contractions = {};",
       pairs ? "product_contractions(N, M, d + e)" : "product_contractions(N + M, d, e)");
  line("    cost.bounded = true;  // contractions leave out lengths and row sums");
  line("    cost.backward_contractions = 2 * cost.forward_contractions;\n    return shape.heads * cost;\n  }}\n");
  return text;
}

}  // namespace heed
