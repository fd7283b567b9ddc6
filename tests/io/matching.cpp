// Loading weights of one model into another: tensors that are loaded whole or in part, interpolated, new, or unused.
#include "heed/attention/mechanism.h"
#include "heed/io/json.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "heed/train/runs/run.h"
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

using Status = TakenTensor::Status;

Experiment with_mechanism(const std::string& mechanism, const std::map<std::string, std::string>& options = {}) {
  Experiment x = Workshop(10, 10).experiment();
  x.attention.mechanism = {mechanism};
  for (const auto& [name, text] : options) x.attention.options[name].text = text;
  return x;
}

Parameters<float> weights_of(const Experiment& x, std::uint64_t seed) {
  Parameters<float> parameters(VisionTransformer(x.model, x.attention).parameters());
  parameters.initialise(seed);
  return parameters;
}

/// Weights of one model, loaded into another.
struct Given {
  TemporaryDirectory directory;
  std::string path = directory / "w.safetensors";
  Parameters<float> source, before, model;

  Given(const Experiment& from, const Experiment& to)
      : source(weights_of(from, 1)), before(weights_of(to, 2)), model(before) {
    SafetensorsWriter writer;
    add_weights(writer, source);
    writer.write(path);
  }
  TakenWeights take(MatchingRules rules) {
    if (rules.parts.empty()) rules.parts = {"q", "k", "v"};
    if (rules.divisions.empty()) rules.divisions = {{{"q", 16}, {"k", 16}, {"v", 16}}};
    return load_matching(SafetensorsFile(path), model, rules);
  }
  View<const float> in_source(const std::string& name) const { return std::as_const(source)[source.list().find(name)]; }
  View<const float> in_model(const std::string& name) const { return std::as_const(model)[model.list().find(name)]; }
  View<const float> in_before(const std::string& name) const { return std::as_const(before)[before.list().find(name)]; }
};

TakenTensor find(const TakenWeights& taken, const std::string& name) {
  for (const TakenTensor& tensor : taken.tensors)
    if (tensor.name == name) return tensor;
  BOOST_FAIL("no tensor " << name);
  return {};
}

bool same(View<const float> a, View<const float> b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

const std::string qkv = "blocks.1.attn.qkv.weight";

}  // namespace

BOOST_AUTO_TEST_SUITE(io_matching)

BOOST_AUTO_TEST_CASE(the_same_model_is_loaded_whole) {
  const Experiment x = with_mechanism("softmax");
  Given given(x, x);
  const TakenWeights taken = given.take({});
  for (const TakenTensor& tensor : taken.tensors) BOOST_TEST((tensor.status == Status::loaded), tensor.name);
  BOOST_TEST(taken.unused.empty());
  BOOST_TEST(taken.numbers == given.model.list().trainable_elements());
  BOOST_TEST(std::equal(given.source.data(), given.source.data() + given.source.size(), given.model.data()));
}

BOOST_AUTO_TEST_CASE(softmax_into_aft_takes_all_of_qkv) {
  Given given(with_mechanism("softmax"), with_mechanism("aft", {{"variant", "full"}}));
  const TakenWeights taken = given.take({});
  BOOST_TEST((find(taken, qkv).status == Status::loaded));
  BOOST_TEST(same(given.in_model(qkv), given.in_source(qkv)));
  BOOST_TEST(std::any_of(taken.tensors.begin(), taken.tensors.end(), [&](const TakenTensor& tensor) {
    return tensor.status == Status::fresh && tensor.reason == "not in the file" &&
           same(given.in_model(tensor.name), given.in_before(tensor.name));
  }));
  BOOST_TEST(taken.unused.empty());
}

// SOFT has only q and v; its queries are also its keys.
BOOST_AUTO_TEST_CASE(softmax_into_soft_takes_q_and_v) {
  Given given(with_mechanism("softmax"), with_mechanism("soft", {{"landmarks", "4"}}));
  const TakenWeights taken = given.take({});
  const TakenTensor tensor = find(taken, qkv);
  BOOST_TEST((tensor.status == Status::loaded), tensor.reason);
  BOOST_TEST(tensor.rows == 32);
  const View<const float> from = given.in_source(qkv), to = given.in_model(qkv);
  BOOST_TEST(std::equal(to.begin(), to.begin() + 16 * 16, from.begin()));
  BOOST_TEST(std::equal(to.begin() + 16 * 16, to.end(), from.begin() + 32 * 16));
}

BOOST_AUTO_TEST_CASE(soft_into_softmax_has_no_k) {
  Given given(with_mechanism("soft", {{"landmarks", "4"}}), with_mechanism("softmax"));
  const TakenTensor tensor = find(given.take({.divisions = {{{"q", 16}, {"v", 16}}}}), qkv);
  BOOST_TEST((tensor.status == Status::part));
  BOOST_TEST(tensor.rows == 32);
  BOOST_TEST(tensor.reason == "without k (not in the file)");
}

// Loads only v from qkv, and neither positions nor the class token, as in AFT-conv's paper.
BOOST_AUTO_TEST_CASE(parts_and_patterns_choose) {
  Experiment to = with_mechanism("softmax");
  to.model.pool = "mean";
  Given given(with_mechanism("softmax"), to);
  const TakenWeights taken = given.take({.skip = {"pos_*", "cls_token"}, .parts = {"v"}});
  const TakenTensor tensor = find(taken, qkv);
  BOOST_TEST((tensor.status == Status::part));
  BOOST_TEST(tensor.rows == 16);
  BOOST_TEST(tensor.of == 48);
  BOOST_TEST(tensor.reason == "without q (excluded by train.init_parts), k (excluded by train.init_parts)");
  const View<const float> from = given.in_source(qkv), to_rows = given.in_model(qkv), before = given.in_before(qkv);
  BOOST_TEST(std::equal(to_rows.begin(), to_rows.begin() + 32 * 16, before.begin()));
  BOOST_TEST(std::equal(to_rows.begin() + 32 * 16, to_rows.end(), from.begin() + 32 * 16));
  BOOST_TEST((find(taken, "pos_embed").status == Status::fresh));
  BOOST_TEST(find(taken, "pos_embed").reason == "skipped by 'pos_*'");
  BOOST_TEST(taken.unused == (std::vector<std::string>{"cls_token", "pos_embed"}), boost::test_tools::per_element());
}

// A * matches any text, even none, at any position; other characters match themselves.
BOOST_AUTO_TEST_CASE(patterns_have_stars_anywhere) {
  struct Choice {
    const char* pattern;
    bool (*skipped)(const std::string&);
  };
  const Choice choices[] = {
      {"*.bias", [](const std::string& name) { return name.ends_with(".bias"); }},
      {"norm.weight", [](const std::string& name) { return name == "norm.weight"; }},
      {"norm*", [](const std::string& name) { return name.starts_with("norm"); }},
      {"*norm*", [](const std::string& name) { return name.find("norm") != name.npos; }},
      {"blocks.*.norm1.*",
       [](const std::string& name) { return name.starts_with("blocks.") && name.find(".norm1.") != name.npos; }},
      {"blocks.1.*weight*",
       [](const std::string& name) { return name.starts_with("blocks.1.") && name.ends_with("weight"); }}};
  for (const Choice& choice : choices) {
    Given given(with_mechanism("softmax"), with_mechanism("softmax"));
    Index skipped = 0;
    for (const TakenTensor& tensor : given.take({.skip = {choice.pattern}}).tensors) {
      const bool expected = choice.skipped(tensor.name);
      BOOST_TEST((tensor.status == (expected ? Status::fresh : Status::loaded)), choice.pattern << ": " << tensor.name);
      skipped += expected;
    }
    BOOST_TEST(skipped > 0);
  }
}

BOOST_AUTO_TEST_CASE(positions_of_another_grid) {
  Experiment to = with_mechanism("softmax");
  to.model.image = 16;
  Given given(with_mechanism("softmax"), to);
  BOOST_TEST(find(given.take({}), "pos_embed").reason == "shape [1, 5, 16] in the file, [1, 17, 16] in the model");
  BOOST_TEST(same(given.in_model("pos_embed"), given.in_before("pos_embed")));
  BOOST_TEST((find(given.take({.positions = true}), "pos_embed").status == Status::interpolated));
  const View<const float> rows = given.in_model("pos_embed"), from = given.in_source("pos_embed");
  BOOST_TEST(std::equal(rows.begin(), rows.begin() + 16, from.begin()));  // the class token's
  BOOST_TEST(!same(rows, given.in_before("pos_embed")));
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  Experiment wide = with_mechanism("softmax");
  wide.model.dim = 32;
  wide.model.hidden = 40;
  wide.model.classes = 7;
  wide.model.patch = 2;
  Given given(with_mechanism("softmax"), wide);
  BOOST_TEST(error_of([&] { given.take({}); }, given.path) ==
             ": no tensor of the file matches the model; nothing would be loaded");
  BOOST_TEST(error_of([&] { given.take({.skip = {"pos_embd"}}); }) ==
             "train.init_skip: 'pos_embd' matches no tensor of the model or of " + given.path +
                 "; did you mean 'pos_embed'?");
  BOOST_TEST(std::equal(given.before.data(), given.before.data() + given.before.size(), given.model.data()));
}

// A run started from another run's directory loads its best weights and records their origin.
BOOST_AUTO_TEST_CASE(a_run_begins_with_weights_of_another_mechanism) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.epochs = 1;
  run(x, workshop / "softmax");
  x.attention.mechanism = {"aft"};
  x.attention.options["variant"].text = "full";
  BOOST_TEST(error_of([&] {
               run(x, workshop / "aft", false, workshop / "softmax");
             }).ends_with("; to load only matching tensors, add --set train.init=matching"));
  x.train.init = "matching";
  x.train.init_skip = {"head.*"};
  run(x, workshop / "aft", false, workshop / "softmax");
  const Json json = Json::parse(read_file(workshop / "aft/init.json"));
  const std::string file = workshop / "softmax/best.safetensors";
  BOOST_TEST(json.at("file").text() == file);
  BOOST_TEST(json.at("crc32").text() == SafetensorsFile(file).checksum());
  BOOST_TEST(json.at("tensors").at("head.bias").at("status").text() == "new");
  BOOST_TEST(json.at("tensors").at(qkv).at("status").text() == "loaded");
  BOOST_TEST(json.at("unused").items().size() == 2u);
  BOOST_TEST(error_of([&] { run(x, workshop / "other", false, workshop / "data"); }).ends_with("or a file of weights"));

  // A resumed run ignores train.init and train.init_skip.
  x.train.init = "strict";
  x.train.init_skip = {};
  BOOST_TEST((run(x, workshop / "aft", true) == Outcome::finished));
}

// A run's positions are on its grid, here 1 x 4, even if a square has as many patches.
BOOST_AUTO_TEST_CASE(positions_of_a_run_are_on_its_grid) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.epochs = 1;
  x.data.resize = "squash";
  x.model.image = {4, 16};
  run(x, workshop / "first");
  x.model.image = 8;
  BOOST_TEST(error_of([&] { run(x, workshop / "next", false, workshop / "first"); })
                 .ends_with("is for a grid of 1 x 4 patches; the model has 2 x 2; to interpolate it, add --set "
                            "train.init_positions=true"));
  for (const bool matching : {false, true}) {
    const std::string next = workshop / (matching ? "matching" : "next");
    x.train.init = matching ? "matching" : "strict";
    x.train.init_positions = matching ? "none" : "plain";
    run(x, next, false, workshop / "first");
    const Json positions = Json::parse(read_file(next + "/init.json")).at("tensors").at("pos_embed");
    BOOST_TEST(positions.at("status").text() == (matching ? "new" : "interpolated"));
    if (matching)
      BOOST_TEST(positions.at("reason").text() == "a grid of 1 x 4 patches in the file, 2 x 2 in the model");
  }
}

// The error for a model that does not fit suggests a remedy.
BOOST_AUTO_TEST_CASE(cures_are_named) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.epochs = 1;
  run(x, workshop / "first");
  const auto refusal = [&](const Experiment& y) {
    return error_of([&] { run(y, workshop / "next", false, workshop / "first"); });
  };
  Experiment other = x;
  other.model.patch = 2;
  BOOST_TEST(refusal(other).ends_with("; to interpolate it, add --set train.init_positions=true"));
  other = x;
  other.model.hidden = 25;
  BOOST_TEST(refusal(other).ends_with("; to load only matching tensors, add --set train.init=matching"));
  BOOST_TEST(!std::filesystem::exists(workshop / "next"));
}

// A part with a different number of rows in the file is left out; the other parts are found by name, in any order.
BOOST_AUTO_TEST_CASE(parts_are_found_by_name_and_rows) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  ParameterList list;
  list.add({.name = "qkv", .shape = {6, 2}, .initial = Initial::constant(-1)});
  list.divide("qkv", {{"q", 2}, {"k", 3}, {"v", 1}});
  Tensor<float> theirs(Shape{6, 2});
  for (Index i = 0; i < 12; ++i) theirs[i] = static_cast<float>(i);
  SafetensorsWriter writer;
  writer.add("qkv", std::as_const(theirs).view());
  writer.write(path);
  Parameters<float> parameters(list);
  parameters.initialise(1);
  // The shapes are the same, but k is not wanted. The file has v in row 0, q in rows 1 and 2, and k in rows 3 to 5.
  const TakenWeights taken = load_matching(SafetensorsFile(path), parameters,
                                           {.parts = {"v", "q"}, .divisions = {{{"v", 1}, {"q", 2}, {"k", 3}}}});
  const std::vector<float> expected{2, 3, 4, 5, -1, -1, -1, -1, -1, -1, 0, 1};
  BOOST_TEST(std::vector<float>(parameters.data(), parameters.data() + 12) == expected,
             boost::test_tools::per_element());
  BOOST_TEST(taken.tensors[0].rows == 3);
  BOOST_TEST(taken.tensors[0].of == 6);
  BOOST_TEST(taken.numbers == 6);
  BOOST_TEST(taken.tensors[0].reason == "without k (excluded by train.init_parts)");
  parameters.initialise(1);
  const TakenTensor fewer = load_matching(SafetensorsFile(path), parameters,
                                          {.parts = {"v", "q"}, .divisions = {{{"v", 2}, {"q", 2}, {"k", 2}}}})
                                .tensors[0];
  BOOST_TEST(fewer.rows == 2);
  BOOST_TEST(fewer.reason ==
             "without k (different number of rows in the file), v (different number of rows in the file)");
}

// Biases are divided in the same way as weights. A tensor is not loaded in part if its width differs from the model's,
// or if its number of rows is not the sum over the file's parts.
BOOST_AUTO_TEST_CASE(parts_are_rows_of_equal_width) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  ParameterList list;
  list.add({.name = "bias", .shape = {7}, .initial = Initial::constant(-1)});
  list.divide("bias", {{"q", 2}, {"k", 4}, {"v", 1}});
  list.add({.name = "narrow", .shape = {7, 3}, .initial = Initial::constant(-1)});
  list.divide("narrow", {{"q", 2}, {"k", 4}, {"v", 1}});
  const Tensor<float> bias(Shape{6}, {0, 1, 2, 3, 4, 5}), narrow(Shape{6, 2}), state(Shape{1});
  SafetensorsWriter writer;
  writer.add("bias", bias.view()), writer.add("narrow", narrow.view());
  for (const char* name : {"heed.step", "mask_token", "more"}) writer.add(name, state.view());
  writer.write(path);
  Parameters<float> parameters(list);
  parameters.initialise(1);
  const std::vector<std::string> all{"q", "k", "v"};
  const TakenWeights taken =
      load_matching(SafetensorsFile(path), parameters, {.parts = all, .divisions = {{{"q", 2}, {"k", 3}, {"v", 1}}}});
  const View<const float> found = std::as_const(parameters)[0], unchanged = std::as_const(parameters)[1];
  BOOST_TEST(std::vector<float>(found.begin(), found.end()) == (std::vector<float>{0, 1, -1, -1, -1, -1, 5}),
             boost::test_tools::per_element());
  BOOST_TEST((find(taken, "bias").status == Status::part));
  BOOST_TEST(find(taken, "bias").rows == 3);
  BOOST_TEST((find(taken, "narrow").status == Status::fresh));
  BOOST_TEST(find(taken, "narrow").reason == "shape [6, 2] in the file, [7, 3] in the model");
  BOOST_TEST(std::all_of(unchanged.begin(), unchanged.end(), [](float x) { return x == -1; }));
  BOOST_TEST(taken.numbers == 3);
  BOOST_TEST(taken.unused == (std::vector<std::string>{"narrow", "more"}), boost::test_tools::per_element());
  BOOST_TEST(
      error_of(
          [&] {
            load_matching(SafetensorsFile(path), parameters, {.parts = all, .divisions = {{{"q", 2}, {"k", 3}}}});
          },
          path) == ": no tensor of the file matches the model; nothing would be loaded");
}

BOOST_AUTO_TEST_SUITE_END()
