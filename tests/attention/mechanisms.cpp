// The list of mechanisms is the only connection to them: only a mechanism's own files use its name, so a new mechanism
// needs no other change. Also checks the declarations of each mechanism: parameters, traits, capabilities, options that
// need others, and sizes of heads.
#include "heed/attention/capabilities/decoding.h"
#include "heed/attention/capabilities/inverse.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/pictures.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/plugin.h"
#include "heed/io/file.h"
#include "support/mechanism.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <regex>
#include <set>

using namespace heed;
namespace fs = std::filesystem;

namespace {

/// The only source outside of src/attention that may name a mechanism: the check of adder attention's surrogate
/// gradient, which defines the function that has the surrogate as its derivative.
const std::string own_check = "src/checks/adder_cases.cpp";

/// Mechanisms with an attention map: all but AFT, whose weights differ between channels.
constexpr const char* with_map[] = {"softmax", "sima",      "pointwise", "soft",      "adder",       "efficient",
                                    "linear",  "linformer", "nystrom",   "cosformer", "synthesizer", "window",
                                    "xca",     "lambda",    "performer", "reformer"};

bool has(const std::string& text, const std::regex& pattern) { return std::regex_search(text, pattern); }

/// A call that creates or finds a mechanism by a literal name.
const std::regex by_name("\\b(make_mechanism|find_mechanism|keep)\\(\\s*\"");

/// Returns a pattern for names in a script: 'softmax', "soft:landmarks=49".
std::regex quoted_name() {
  std::string names;
  for (const MechanismEntry& entry : mechanisms()) names += fmt::format("{}{}", names.empty() ? "" : "|", entry.name);
  return std::regex("[\"'](" + names + ")[:\"']");
}

void check_parameters(const char* name, const OptionValues& options, const AttentionShape& shape,
                      const std::vector<ParameterSpec>& expected) {
  const std::vector<ParameterSpec> found = make_mechanism(name, options)->parameters(shape);
  BOOST_REQUIRE_MESSAGE(found.size() == expected.size(), name << " has " << found.size() << " parameters");
  for (std::size_t i = 0; i < found.size(); ++i) BOOST_TEST_CONTEXT(name << ", " << expected[i].name) {
      BOOST_TEST(found[i].name == expected[i].name);
      BOOST_TEST(to_string(found[i].shape) == to_string(expected[i].shape));
      BOOST_TEST((found[i].initial == expected[i].initial));
      BOOST_TEST(found[i].decay == expected[i].decay);
      BOOST_TEST(found[i].trainable == expected[i].trainable);
    }
}

/// Returns the shape of the first parameter after sizes were read from `tensors`.
std::string first_shape(const char* name, const OptionValues& options, const std::map<std::string, Shape>& tensors) {
  const auto mechanism = make_mechanism(name, options);
  mechanism->read_sizes(tensors);
  return to_string(mechanism->parameters({.heads = 2, .queries = 12, .keys = 12, .width = 4})[0].shape);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(list_of_mechanisms)

BOOST_AUTO_TEST_CASE(source_names_no_mechanism) {
  for (const char* top : {"include", "src"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const std::string path = entry.path();
      if (!entry.is_regular_file() || path.starts_with("src/attention/") || path == own_check) continue;
      BOOST_TEST(!has(read_file(path), by_name), path << " asks for a mechanism by name");
    }
  BOOST_TEST(has(read_file(own_check), by_name));
}

BOOST_AUTO_TEST_CASE(scripts_name_no_mechanism) {
  const std::regex pattern = quoted_name();
  for (const fs::directory_entry& entry : fs::directory_iterator("experiments/tools")) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() && (extension.empty() || extension == ".py"))
      BOOST_TEST(!has(read_file(entry.path().string()), pattern),
                 entry.path() << " names a mechanism; `heed list --settings` has them all");
  }
  BOOST_TEST(has("run('soft:landmarks=49')", pattern));
}

// Weights decay, except for vectors with an element per head, channel or key; buffers neither decay nor train.
BOOST_AUTO_TEST_CASE(parameters_with_their_initial_values) {
  const AttentionShape shape{.heads = 3, .queries = 6, .keys = 5, .width = 4, .value_width = 4};
  const Initial zero = Initial::constant(0), one = Initial::constant(1), small = Initial::truncated_normal(0.02);
  check_parameters("linformer", {{"length", "4"}}, shape,
                   {{"e", {4, 5}, Initial::uniform(0.5)}, {"f", {4, 5}, Initial::uniform(0.5)}});
  check_parameters("lambda", {{"key_dim", "4"}}, shape, {{"e", {6, 5, 4}, Initial::normal(1)}});
  check_parameters("lambda", {{"key_dim", "4"}, {"positions", "false"}}, shape, {});
  check_parameters("synthesizer", {}, shape,
                   {{"w1", {4, 4}, small}, {"b1", {4}, zero, false}, {"w2", {4, 5}, small}, {"b2", {5}, zero, false}});
  check_parameters("synthesizer", {{"kind", "random"}}, shape, {{"logits", {3, 6, 5}, small}});
  check_parameters("xca", {}, shape, {{"temperature", {3}, one, false}});
  check_parameters("performer", {{"features", "7"}}, shape, {{"omega", {7, 4}, Initial::orthogonal(), false, false}});
  check_parameters("aft", {{"rank", "3"}}, shape,
                   {{"u", {6, 3}, Initial::normal(0.1)}, {"p", {5, 3}, Initial::normal(0.1)}});
  check_parameters("aft", {{"param", "dense"}}, shape, {{"w", {6, 5}, Initial::normal(0.1)}});
  check_parameters("aft", {{"variant", "simple"}}, shape, {});
  check_parameters("aft", {{"variant", "conv"}}, shape,
                   {{"w", {3, 3, 3}, Initial::normal(1)}, {"gain", {3}, zero, false}, {"bias", {3}, zero, false}});
  check_parameters("aft", {{"variant", "conv"}, {"dims", "1"}, {"size", "5"}, {"reparam", "false"}}, shape,
                   {{"w", {3, 5}, Initial::normal(1)}});
}

// With buckets=0, Reformer has as many buckets as chunks, rounded down to an even number, but at least two. The
// rotations have one column for every two buckets.
BOOST_AUTO_TEST_CASE(rotations_for_half_of_the_buckets) {
  for (const auto& [queries, chunk, columns] :
       {std::tuple<Index, const char*, Index>{12, "4", 1}, {28, "4", 3}, {32, "4", 4}, {6, "6", 1}})
    check_parameters("reformer", {{"rounds", "2"}, {"buckets", "0"}, {"chunk", chunk}},
                     {.queries = queries, .keys = queries, .width = 5},
                     {{"rotations", {2, 5, columns}, Initial::normal(1), false, false}});
  check_parameters("reformer", {{"rounds", "1"}, {"buckets", "6"}, {"chunk", "4"}}, {.queries = 12, .width = 5},
                   {{"rotations", {1, 5, 3}, Initial::normal(1), false, false}});
}

// The order of SOFT's parameters, with all optional parts, and without landmarks.
BOOST_AUTO_TEST_CASE(parameters_of_landmarks) {
  const AttentionShape shape{.heads = 3, .queries = 7, .keys = 7, .width = 4, .value_width = 4, .class_token = 1};
  const ParameterSpec weight{"landmark.weight", {4, 4, 2, 2}, Initial::uniform(0.25)},
      norm{"landmark_norm.weight", {4}, Initial::constant(1), false},
      bias{"landmark_norm.bias", {4}, Initial::constant(0), false},
      filters{"vconv.weight", {3, 1, 5, 5}, Initial::uniform(1.0 / 5)},
      tokens{"landmark_index", {2}, Initial::distinct(1, 6), false, false};
  check_parameters("soft", {{"sampling", "conv"}, {"ratio", "2"}, {"landmark_act", "true"}, {"vconv", "5"}}, shape,
                   {weight, norm, bias, filters});
  check_parameters("soft", {{"sampling", "random"}, {"landmarks", "2"}, {"vconv", "5"}}, shape, {tokens, filters});
  check_parameters("soft", {{"kernel", "exact"}, {"sampling", "random"}, {"landmarks", "2"}}, shape, {});
  check_parameters("soft", {{"ratio", "2"}}, shape, {});
}

// A given option takes precedence over the shape of a tensor.
BOOST_AUTO_TEST_CASE(sizes_are_read_from_tensors) {
  BOOST_TEST(first_shape("performer", {}, {{"omega", Shape{7, 4}}}) == "[7, 4]");
  BOOST_TEST(first_shape("performer", {{"features", "5"}}, {{"omega", Shape{7, 4}}}) == "[5, 4]");
  BOOST_TEST(first_shape("linformer", {}, {{"e", Shape{3, 12}}}) == "[3, 12]");
  BOOST_TEST(first_shape("linformer", {{"length", "2"}}, {{"e", Shape{3, 12}}}) == "[2, 12]");
  const std::map<std::string, Shape> rotations{{"rotations", Shape{3, 4, 5}}};
  BOOST_TEST(first_shape("reformer", {{"chunk", "2"}}, rotations) == "[3, 4, 5]");
  BOOST_TEST(first_shape("reformer", {{"chunk", "2"}, {"rounds", "1"}}, rotations) == "[1, 4, 5]");
  BOOST_TEST(first_shape("reformer", {{"chunk", "2"}, {"buckets", "4"}}, rotations) == "[3, 4, 2]");
  BOOST_TEST(first_shape("aft", {}, {{"u", Shape{12, 3}}}) == "[12, 3]");
  BOOST_TEST(first_shape("aft", {{"variant", "conv"}}, {{"w", Shape{2, 5, 5}}}) == "[2, 5, 5]");
  BOOST_TEST(first_shape("aft", {{"variant", "conv"}, {"dims", "1"}}, {{"w", Shape{2, 7}}}) == "[2, 7]");
  BOOST_TEST(first_shape("aft", {{"variant", "conv"}}, {{"w", Shape{2, 7}}}) == "[2, 3, 3]");  // no 2-D window: ignored
  const std::map<std::string, Shape> filters{{"vconv.weight", Shape{2, 1, 5, 5}}};
  BOOST_TEST(first_shape("soft", {{"kernel", "exact"}}, filters) == "[2, 1, 5, 5]");
  BOOST_TEST(first_shape("soft", {{"kernel", "exact"}, {"vconv", "3"}}, filters) == "[2, 1, 3, 3]");
  const std::map<std::string, Shape> index{{"landmark_index", Shape{7}}};
  BOOST_TEST(first_shape("soft", {{"sampling", "random"}}, index) == "[7]");
  BOOST_TEST(first_shape("soft", {{"sampling", "random"}, {"landmarks", "4"}}, index) == "[4]");
  BOOST_TEST(error_of([] {
               first_shape("performer", {}, {{"omga", Shape{7, 4}}});
             }) == "tensor 'omega' is missing; expected [features, d]");
  BOOST_TEST(error_of([] {
               first_shape("lambda", {}, {{"k", Shape{2, 1, 9}}});
             }) == "tensor 'k' has shape [2, 1, 9]; expected [B, 1, M, key_dim]");
  BOOST_TEST(first_shape("lambda", {}, {{"k", Shape{2, 1, 9, 3}}}) == "[12, 12, 4]");  // e has the width of q
  const auto lambda = make_mechanism("lambda", {});
  lambda->read_sizes({{"k", Shape{2, 1, 9, 3}}});
  BOOST_TEST(lambda->layout(8, 2).key_width == 3);
}

struct Declared {
  const char* name;
  OptionValues options;
  bool qk_norm, cross, independent_heads;
};

// qk_norm requires distinct queries and keys. Query and key counts may differ in the mechanisms that docs/families.md
// lists. Heads are independent unless parameters, buffers or blocks connect them.
BOOST_AUTO_TEST_CASE(traits_by_option) {
  const std::vector<Declared> all{{"softmax", {}, true, true, true},
                                  {"softmax", {{"causal", "true"}}, true, false, true},
                                  {"sima", {}, true, true, true},
                                  {"aft", {}, false, false, false},
                                  {"aft", {{"variant", "conv"}}, false, false, false},
                                  {"pointwise", {}, true, true, true},
                                  {"pointwise", {{"causal", "true"}}, true, false, true},
                                  {"soft", {}, false, false, true},
                                  {"adder", {}, true, false, true},
                                  {"adder", {{"identity", "false"}}, true, true, true},
                                  {"efficient", {}, true, true, true},
                                  {"linear", {}, true, true, true},
                                  {"linear", {{"causal", "true"}}, true, false, true},
                                  {"linformer", {{"length", "2"}}, true, true, false},
                                  {"nystrom", {}, true, false, true},
                                  {"cosformer", {}, true, false, false},
                                  {"synthesizer", {}, false, false, false},
                                  {"window", {}, true, false, false},
                                  {"xca", {}, true, false, false},
                                  {"lambda", {}, true, false, false},
                                  {"performer", {{"features", "3"}}, true, true, false},
                                  {"performer", {{"features", "3"}, {"causal", "true"}}, true, false, false},
                                  {"reformer", {}, false, false, false}};
  for (const Declared& of : all) BOOST_TEST_CONTEXT(of.name << " with " << of.options.size() << " options") {
      const MechanismTraits traits = make_mechanism(of.name, of.options)->traits();
      BOOST_TEST(traits.qk_norm == of.qk_norm);
      BOOST_TEST(traits.cross == of.cross);
      BOOST_TEST(traits.independent_heads == of.independent_heads);
      BOOST_TEST(traits.surrogate == "");
      for (const auto& [queries, keys] : {std::pair<Index, Index>{4, 5}, {5, 4}})
        if (of.cross)
          BOOST_TEST(refusal(of.name, of.options, {.queries = queries, .keys = keys, .width = 4, .value_width = 4}) ==
                     "");
    }
}

BOOST_AUTO_TEST_CASE(capabilities_by_option) {
  const auto of = [](const char* name, const OptionValues& options) { return make_mechanism(name, options); };
  const AttentionShape shape{.heads = 3, .queries = 6, .keys = 6, .width = 2, .value_width = 2};
  const auto noise = [&](const char* sparsity, const char* dims) {
    return to_string(noise_shape(*of("aft", {{"variant", "conv"}, {"sparsity", sparsity}, {"dims", dims}}), shape));
  };
  BOOST_TEST(noise("gumbel", "2") == "[3, 3, 3]");
  BOOST_TEST(noise("gumbel", "1") == "[3, 3]");
  BOOST_TEST(noise("entropy", "2") == "[0]");
  BOOST_TEST(to_string(noise_shape(*of("aft", {}), shape)) == "[0]");
  const auto has_penalty = [&](const char* sparsity) {
    return of("aft", {{"variant", "conv"}, {"sparsity", sparsity}})->penalty_term() != nullptr;
  };
  BOOST_TEST(has_penalty("entropy"));
  BOOST_TEST((!has_penalty("gumbel") && !has_penalty("none")));
  BOOST_TEST((of("aft", {})->decoding() && !of("aft", {{"variant", "conv"}})->decoding()));
  BOOST_TEST((!of("aft", {})->maps() && !of("aft", {{"variant", "conv"}})->maps()));
  BOOST_TEST((of("soft", {})->inverse() && of("soft", {})->pictures()));
  BOOST_TEST((!of("soft", {{"kernel", "exact"}})->inverse() && !of("soft", {{"kernel", "exact"}})->pictures()));
  BOOST_TEST(of("adder", {})->maps()->map_traits().identity);
  BOOST_TEST(!of("adder", {{"identity", "false"}})->maps()->map_traits().identity);
  BOOST_TEST(of("soft", {{"vconv", "3"}})->maps()->map_traits().partial);
  BOOST_TEST(!of("soft", {})->maps()->map_traits().partial);
  BOOST_TEST(!of("adder", {{"score_grad", "hardtanh"}})->traits().surrogate.empty());
  BOOST_TEST(!of("soft", {{"inverse_grad", "implicit"}})->traits().surrogate.empty());
  BOOST_TEST(of("soft", {{"inverse_grad", "implicit"}, {"kernel", "exact"}})->traits().surrogate == "");
  for (const char* name : with_map) BOOST_TEST(of(name, {})->maps(), name);
}

// Options that have no effect unless another option has one of the listed values.
BOOST_AUTO_TEST_CASE(options_that_need_others) {
  const auto listed = [](const char* name) {
    std::set<std::string> all;
    for (const OptionNeed& need : find_mechanism(name).needs()) {
      std::string values;
      for (const std::string& value : need.values) values += " " + value;
      all.insert(need.option + ": " + need.other + values);
    }
    return all;
  };
  BOOST_TEST((listed("aft") ==
              std::set<std::string>{"param: variant full local", "rank: variant full local", "rank: param factored",
                                    "window: variant local", "size: variant conv", "dims: variant conv",
                                    "reparam: variant conv", "coef: sparsity entropy", "tau: sparsity gumbel"}));
  BOOST_TEST(
      (listed("soft") ==
       std::set<std::string>{"dims: sampling pool", "sampling: kernel nystrom", "ratio: kernel nystrom",
                             "landmarks: kernel nystrom", "dims: kernel nystrom", "ridge: kernel nystrom",
                             "iterations: kernel nystrom", "init: kernel nystrom", "inverse_grad: kernel nystrom"}));
  for (const char* name : with_map)
    if (name != std::string("soft")) BOOST_TEST(find_mechanism(name).needs().empty(), name);
}

// The defaults of all options; a size that a model must set has none.
BOOST_AUTO_TEST_CASE(defaults_of_options) {
  const auto defaults = [](const char* name) {
    std::string all;
    for (const OptionInfo& option : find_mechanism(name).options())
      all += (all.empty() ? "" : " ") + option.name + "=" + option.fallback;
    return all;
  };
  for (const char* name : {"softmax", "linear"}) BOOST_TEST(defaults(name) == "causal=false", name);
  for (const char* name : {"efficient", "xca"}) BOOST_TEST(defaults(name) == "", name);
  BOOST_TEST(defaults("sima") == "norm=l1 order=auto");
  BOOST_TEST(defaults("aft") ==
             "variant=full param=factored rank=128 window=not set size=3 dims=2 reparam=true outside=zero query=true "
             "causal=false sparsity=none coef=0.001 tau=0.5");
  BOOST_TEST(defaults("pointwise") == "phi=relu alpha=1 causal=false");
  BOOST_TEST(defaults("soft") ==
             "sampling=pool ratio=0 landmarks=0 dims=2 ridge=0 iterations=20 init=damped inverse_grad=unrolled "
             "kernel=nystrom normalize=none landmark_act=false vconv=0");
  BOOST_TEST(defaults("adder") == "identity=true score_grad=sign");
  BOOST_TEST(defaults("linformer") == "length=not set");
  BOOST_TEST(defaults("nystrom") == "landmarks=0 ratio=0 iterations=6");
  BOOST_TEST(defaults("cosformer") == "reweight=none");
  BOOST_TEST(defaults("synthesizer") == "kind=dense causal=false");
  BOOST_TEST(defaults("window") == "window=not set dims=1 shift=0");
  BOOST_TEST(defaults("lambda") == "key_dim=not set positions=true");
  BOOST_TEST(defaults("performer") == "features=not set causal=false");
  BOOST_TEST(defaults("reformer") == "rounds=not set buckets=not set chunk=not set");
}

// The longest sequence determines only the shapes of some parameters; without such parameters it has no effect.
BOOST_AUTO_TEST_CASE(longer_sequences_have_no_effect) {
  constexpr Index count = 7;
  const std::vector<std::pair<const char*, OptionValues>> settings{
      {"softmax", {}},
      {"softmax", {{"causal", "true"}}},
      {"sima", {}},
      {"pointwise", {{"phi", "softplus"}, {"alpha", "0.5"}}},
      {"aft", {{"variant", "simple"}}},
      {"soft", {{"kernel", "exact"}}},
      {"soft", {{"dims", "1"}, {"landmarks", "3"}}},
      {"soft", {{"dims", "1"}, {"ratio", "3"}}},
      {"soft", {{"sampling", "first"}, {"landmarks", "3"}}},
      {"adder", {}},
      {"xca", {}},
      {"efficient", {}},
      {"linear", {}},
      {"linear", {{"causal", "true"}}},
      {"nystrom", {{"landmarks", "3"}}},
      {"cosformer", {{"reweight", "1d"}}},
      {"window", {{"window", "3"}}},
      {"lambda", {{"key_dim", "4"}, {"positions", "false"}}},
      {"performer", {{"features", "5"}}},
      {"performer", {{"features", "5"}, {"causal", "true"}}}};
  for (const auto& [name, options] : settings) {
    const auto mechanism = make_mechanism(name, options);
    const AttentionLayout layout = mechanism->layout(8, 2);
    Tensors x;
    for (const auto& [operand, heads, width] : {std::tuple("q", layout.heads, layout.query_width),
                                                {"k", layout.key_heads, layout.key_width},
                                                {"v", layout.key_heads, layout.value_width}})
      if (width > 0) x[operand] = random_tensor({1, heads, count, width}, 1 + x.size());
    for (const ParameterSpec& spec : mechanism->parameters(layout.among(count, {})))
      x[spec.name] = random_tensor(spec.shape, 1 + x.size());
    const auto run = [&, name = name, &options = options](Index longest) {
      return run_mechanism<double>(name, options, x, {.longest = longest, .whole = longest == count});
    };
    check_same(run(12), run(count), 0, std::string(name) + ", " + std::to_string(options.size()) + " options");
  }
}

BOOST_AUTO_TEST_CASE(names_of_options_include_causal_once) {
  const auto names = [](const char* name) { return option_names(find_mechanism(name)); };
  using Names = std::vector<std::string>;
  BOOST_TEST(names("softmax") == (Names{"causal"}), boost::test_tools::per_element());
  BOOST_TEST(names("xca") == (Names{"causal"}), boost::test_tools::per_element());
  BOOST_TEST(names("sima") == (Names{"norm", "order", "causal"}), boost::test_tools::per_element());
  BOOST_TEST(names("performer") == (Names{"features", "causal"}), boost::test_tools::per_element());
}

// For 12 channels in 3 heads: the channels of q, k and v per head, the number of heads of q, and that of k and v.
BOOST_AUTO_TEST_CASE(layouts_of_projections) {
  const auto layout = [](const char* name, const OptionValues& options) {
    const AttentionLayout of = make_mechanism(name, options)->layout(12, 3);
    Index rows = 0;
    for (const RowPart& part : projection_parts(of)) rows += part.rows;
    BOOST_TEST(rows == of.total(), name);
    return fmt::format("{} {} {}, {} and {} heads", of.query_width, of.key_width, of.value_width, of.heads,
                       of.key_heads);
  };
  for (const char* name : {"softmax", "sima", "window", "xca", "performer"})
    BOOST_TEST(layout(name, {}) == "4 4 4, 3 and 3 heads", name);
  for (const char* name : {"soft", "reformer", "synthesizer"})
    BOOST_TEST(layout(name, {}) == "4 0 4, 3 and 3 heads", name);
  BOOST_TEST(layout("synthesizer", {{"kind", "random"}}) == "0 0 4, 3 and 3 heads");
  BOOST_TEST(layout("aft", {}) == "12 12 12, 1 and 1 heads");
  BOOST_TEST(layout("aft", {{"variant", "conv"}}) == "4 1 4, 3 and 3 heads");
  BOOST_TEST(layout("lambda", {{"key_dim", "5"}}) == "5 5 4, 3 and 1 heads");

  const AttentionLayout apart{3, 4, 6, 7, 2}, alike{3, 4, 4, 7}, values{2, 0, 0, 5};
  BOOST_TEST(apart.total() == 3 * 4 + 2 * (6 + 7));
  BOOST_TEST((apart.key_channels(9) == 6 && alike.key_channels(9) == 9 && values.key_channels(9) == 0));
  const AttentionShape cross = apart.among(8, 9, {.heads = 99, .class_token = 1, .longest = 11}),
                       own = values.among(8, {});
  BOOST_TEST((cross.heads == 3 && cross.queries == 8 && cross.keys == 9 && cross.width == 4));
  BOOST_TEST((cross.value_width == 7 && cross.class_token == 1 && cross.longest == 11 && cross.body() == 7));
  BOOST_TEST((cross.sequence() && !cross.full_length() && !own.sequence() && own.full_length()));
  BOOST_TEST((own.heads == 2 && own.queries == 8 && own.keys == 8 && own.width == 5 && own.value_width == 5));
  BOOST_TEST(values.among(8, {.longest = 8}).full_length());
}

// A plugin's mechanism with the name of a listed mechanism is refused, and the list is not changed.
BOOST_AUTO_TEST_CASE(mechanism_names_are_unique) {
  const MechanismEntry softmax = find_mechanism("softmax");
  const std::size_t count = mechanisms().size();
  BOOST_TEST(error_of([&] {
               add_mechanism(softmax, {"/tmp/x.so", "/tmp/x.h", "0"});
             }) == "/tmp/x.so: mechanism 'softmax' already exists, built into heed; choose another name");
  BOOST_TEST(mechanisms().size() == count);
  BOOST_TEST((plugin_of("softmax") == nullptr && plugin_of("nonsense") == nullptr));
}

// Layers have separate states and use the same scratch memory in turn.
BOOST_AUTO_TEST_CASE(states_of_two_layers) {
  for (const bool swapped : {false, true}) {
    AttentionStateSize sum = swapped ? AttentionStateSize{10, 20, 3} : AttentionStateSize{1, 2, 9};
    sum += swapped ? AttentionStateSize{1, 2, 9} : AttentionStateSize{10, 20, 3};
    BOOST_TEST((sum.state == 11 && sum.sums == 22 && sum.scratch == 9));
  }
}

BOOST_AUTO_TEST_SUITE_END()
