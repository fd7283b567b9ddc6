// Decoding token by token, in memory of the stated size, gives the rows of the full pass. Keys and values have
// different widths if there are two heads. tests/train/tasks/sequence_models.cpp compares decoding with full passes in
// models.
#include "heed/attention/capabilities/decoding.h"

#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace heed;

namespace {

constexpr Index longest = 6;

/// Memory of a given size, filled with NaN and followed by a guard region.
class GuardedMemory {
 public:
  explicit GuardedMemory(Index size)
      : values_(static_cast<std::size_t>(size) + 8, std::numeric_limits<double>::quiet_NaN()) {
    std::fill(values_.end() - 8, values_.end(), guard);
  }
  double* data() { return values_.data(); }
  bool intact() const {
    return std::all_of(values_.end() - 8, values_.end(), [](double x) { return x == guard; });
  }

 private:
  static constexpr double guard = 12345.5;
  std::vector<double> values_;
};

/// Returns row t of each head of x [1, heads, tokens, channels].
Heads<const double> row_of(const Tensor<double>& x, Index t) {
  const Shape& s = x.shape();
  return {{x.data() + t * s[3], 1, s[3]}, s[1], s[2] * s[3]};
}

void check_decoding(const char* name, OptionValues options) {
  options["causal"] = "true";
  const auto mechanism = make_mechanism(name, options);
  const Index heads = mechanism->layout(8, 2).heads, e = heads == 1 ? 3 : 4;
  const AttentionShape one{.heads = heads,
                           .queries = 1,
                           .keys = 1,
                           .width = 3,
                           .value_width = e,
                           .longest = longest,
                           .whole = false,
                           .growing = true};
  AttentionShape all = one;
  all.queries = all.keys = longest;
  Tensors x{{"q", random_tensor({1, heads, longest, 3}, 1, 2)},
            {"k", random_tensor({1, heads, longest, 3}, 2, 2)},
            {"v", random_tensor({1, heads, longest, e}, 3)}};
  std::vector<View<const double>> parameters;
  const std::vector<ParameterSpec> specs = mechanism->parameters(all);
  for (const ParameterSpec& spec : specs) x[spec.name] = random_tensor(spec.shape, 4 + x.size());
  for (const ParameterSpec& spec : specs) parameters.push_back(std::as_const(x.at(spec.name)).view());
  Tensors used = x;
  if (mechanism->layout(8, 2).key_width == 0) used.erase("k");
  if (mechanism->layout(8, 2).query_width == 0) used.erase("q");
  const Tensor<double> full =
      run_mechanism<double>(name, options, used, {.longest = longest, .growing = true}).at("out");

  const DecodingCapability* const decoding = mechanism->decoding();
  BOOST_REQUIRE(decoding);
  const AttentionStateSize size = decoding->state_size(one, longest);
  GuardedMemory state(size.state), sums(size.sums), scratch(size.scratch);
  for (Index t = 0; t < longest; ++t) {
    Tensor<double> out(Shape{heads, e});
    AttentionDecoding<double> call;
    call.in = {
        .shape = one, .q = row_of(x["q"], t), .k = row_of(x["k"], t), .v = row_of(x["v"], t), .parameters = parameters};
    call.position = t, call.out = {{out.data(), 1, e}, heads, e};
    call.state = state.data(), call.sums = sums.data(), call.scratch = scratch.data();
    decoding->decode(call);
    for (Index h = 0; h < heads; ++h)
      for (Index c = 0; c < e; ++c)
        BOOST_TEST(std::abs(out[h * e + c] - full[(h * longest + t) * e + c]) < 1e-12,
                   "token " << t << ", head " << h << ", channel " << c);
  }
  BOOST_TEST((state.intact() && sums.intact() && scratch.intact()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_decoding)

BOOST_AUTO_TEST_CASE(rows_of_the_full_pass) {
  const std::vector<std::pair<const char*, OptionValues>> settings{
      {"softmax", {}},
      {"pointwise", {{"phi", "gelu"}, {"alpha", "0.6"}}},
      {"synthesizer", {}},
      {"synthesizer", {{"kind", "random"}}},
      {"linear", {}},
      {"performer", {{"features", "5"}}},
      {"aft", {{"variant", "simple"}}},
      {"aft", {{"rank", "2"}}},
      {"aft", {{"param", "dense"}, {"query", "false"}}},
      {"aft", {{"variant", "local"}, {"window", "1"}, {"param", "dense"}}},
      {"aft", {{"variant", "local"}, {"window", "2"}, {"rank", "2"}}},
      {"aft", {{"variant", "local"}, {"window", "9"}, {"param", "dense"}}},
      {"aft", {{"variant", "local"}, {"window", "2"}, {"rank", "2"}, {"outside", "masked"}}}};
  for (const auto& [name, options] : settings) BOOST_TEST_CONTEXT(name << ", " << options.size() << " options")
  check_decoding(name, options);
}

BOOST_AUTO_TEST_SUITE_END()
