// Options of mechanisms by block or stage: lists, and tables of a mechanism, which override the options of all
// mechanisms.
#include "src/nn/mechanism_choice.h"

#include "support/families.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns the shape of a parameter of the mechanism at this position; [] if it has no parameter of this name.
Shape shape_at(const AttentionConfig& attention, Index place, const std::string& tensor) {
  for (const ParameterSpec& spec :
       mechanism_of(attention, place)
           ->parameters({.queries = 16, .keys = 16, .width = 3, .value_width = 3, .grid_height = 4, .grid_width = 4}))
    if (spec.name == tensor) return spec.shape;
  return Shape{};
}

OptionValue listed(std::vector<std::string> list) { return {"", "here", std::move(list)}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_options)

BOOST_AUTO_TEST_CASE(each_stage_has_its_item) {
  AttentionConfig attention;
  attention.mechanism = {"soft", "linformer", "soft"};
  attention.options["sampling"] = {"random", "here"};
  attention.options["landmarks"] = listed({"2", "3", "4"});
  attention.options["length"] = {"5", "here"};  // an option of linformer only
  BOOST_TEST(shape_at(attention, 0, "landmark_index") == Shape{2});
  BOOST_TEST(shape_at(attention, 1, "e") == Shape({5, 16}));
  BOOST_TEST(shape_at(attention, 2, "landmark_index") == Shape{4});
  // A mechanism's own table, as a list or with one value for all stages, overrides the common options.
  attention.per_mechanism["soft"]["landmarks"] = listed({"6", "7", "8"});
  BOOST_TEST(shape_at(attention, 0, "landmark_index") == Shape{6});
  BOOST_TEST(shape_at(attention, 2, "landmark_index") == Shape{8});
  attention.per_mechanism["soft"]["landmarks"] = {"9", "here"};
  attention.per_mechanism["linformer"]["length"] = listed({"1", "2", "3"});
  for (const Index place : {0, 2}) BOOST_TEST(shape_at(attention, place, "landmark_index") == Shape{9});
  BOOST_TEST(shape_at(attention, 1, "e") == Shape({2, 16}));
  // A single mechanism serves all stages, with an item of the option for each.
  attention.mechanism = {"soft"}, attention.per_mechanism.clear();
  for (const Index place : {0, 1, 2}) BOOST_TEST(shape_at(attention, place, "landmark_index") == Shape{place + 2});
}

// Models take the items in order: stage by stage in the staged families, block by block in the others.
BOOST_AUTO_TEST_CASE(models_take_them_in_order) {
  const auto shapes = [](const Experiment& x, const std::vector<std::string>& names) {
    const auto model = make_model(x);
    std::vector<Shape> found;
    for (const std::string& name : names) {
      const ParameterId id = model->parameters().find(name);
      found.push_back(id < 0 ? Shape{} : model->parameters()[id].shape);
    }
    return found;
  };
  const std::string random = "attention.sampling=random", one = "attention.mechanism=soft";
  const std::vector<Shape> pyramid =
      shapes(small_experiment("soft", {one, random, "attention.landmarks=[5,4]", "attention.vconv=[3,5]"}),
             {"block1.0.attn.landmark_index", "block2.0.attn.landmark_index", "block2.1.attn.landmark_index",
              "block1.0.attn.vconv.weight", "block2.1.attn.vconv.weight"});
  BOOST_TEST((pyramid == std::vector<Shape>{{5}, {4}, {4}, {2, 1, 3, 3}, {3, 1, 5, 5}}));
  const std::vector<Shape> cvt =
      shapes(small_experiment("cvt", {"attention.mechanism=[\"linformer\",\"soft\"]", "attention.length=[7,8]",
                                      "model.kv_stride=1", random, "attention.soft.landmarks=[2,3]"}),
             {"stage0.blocks.0.attn.e", "stage1.blocks.0.attn.landmark_index", "stage1.blocks.1.attn.landmark_index"});
  BOOST_TEST((cvt == std::vector<Shape>{{7, 25}, {3}, {3}}));
  const std::vector<Shape> xcit =
      shapes(small_experiment("xcit", {"attention.mechanism=[\"linformer\",\"xca\"]", "attention.length=4"}),
             {"blocks.0.attn.e", "blocks.0.attn.temperature", "blocks.1.attn.e", "blocks.1.attn.temperature"});
  BOOST_TEST((xcit == std::vector<Shape>{{4, 9}, {}, {}, {2, 1, 1}}));
  Experiment x;
  x.model.image = 6, x.model.channels = 1, x.model.patch = 2, x.model.dim = 6, x.model.depth = 2, x.model.heads = 2;
  x.model.hidden = 5, x.model.classes = 3, x.model.pool = "mean";
  x.attention.mechanism = {"linformer", "xca"};
  x.attention.options["length"] = {"4", "here"};
  const std::vector<Shape> vit = shapes(x, {"blocks.0.attn.e", "blocks.0.attn.temperature", "blocks.1.attn.e"});
  BOOST_TEST((vit == std::vector<Shape>{{4, 9}, {}, {}}));
}

// An option is in the mechanism's own table or, if it is not there, among the options of all mechanisms.
BOOST_AUTO_TEST_CASE(errors_name_the_place_of_an_option) {
  AttentionConfig attention;
  attention.mechanism = {"softmax", "pointwise"};
  attention.options["alpha"] = {"2", "a.toml:3"};
  attention.options["phi"] = {"relu7", "a.toml:4"};
  const std::string error = "[pointwise] alpha is 2; expected 0 to 1";
  BOOST_TEST(place_of_option(attention, error) == "a.toml:3: ");
  BOOST_TEST(place_of_option(attention, "[pointwise] phi is 'relu7'; did you mean 'relu'?") == "a.toml:4: ");
  attention.per_mechanism["softmax"]["alpha"] = {"2", "a.toml:8"};
  BOOST_TEST(place_of_option(attention, error) == "a.toml:3: ");
  attention.per_mechanism["pointwise"]["alpha"] = {"2", "a.toml:9"};
  BOOST_TEST(place_of_option(attention, error) == "a.toml:9: ");
  BOOST_TEST(place_of_option(attention, "[pointwise] phi is 'relu7'; did you mean 'relu'?") == "a.toml:4: ");
  for (const char* other : {"[soft] alpha is 2; expected 0 to 1", "[pointwise] alphas is 2", "[model] depth = 0"})
    BOOST_TEST(place_of_option(attention, other) == "", other);
}

BOOST_AUTO_TEST_CASE(options_that_no_mechanism_has) {
  AttentionConfig attention;
  attention.mechanism = {"soft", "softmax"};
  attention.options["landmarks"] = listed({"2", "3"});
  attention.options["causal"] = {"false", "here"};
  const auto refusal = [&](Index stages) { return error_of([&] { check_options(attention, stages); }); };
  BOOST_TEST(refusal(2) == "no error");
  BOOST_TEST(refusal(3) == "here: 'landmarks' has 2 values; expected one, or one for each of the 3 stages");
  attention.per_mechanism["soft"]["ratio"] = listed({"2", "3", "4"});
  BOOST_TEST(refusal(2) == "here: 'ratio' has 3 values; expected one, or one for each of the 2 stages");
  attention.per_mechanism["soft"] = {{"rati", {"2", "b.toml:6"}}};
  BOOST_TEST(refusal(2) == "b.toml:6: soft has no option 'rati'; did you mean 'ratio'?");
  attention.per_mechanism.clear();
  attention.options["landmark"] = {"2", "b.toml:5"};
  BOOST_TEST(refusal(2) == "b.toml:5: no mechanism of this model has an option 'landmark'; did you mean 'landmarks'?");
  attention.options.erase("landmark");
  attention.mechanism = {"soft", "softmacks"};
  BOOST_TEST(
      error_of([&] { check_options(attention, 2, 1); }).starts_with("[model] stage 2: unknown mechanism 'softmacks'"));
  BOOST_TEST(refusal(2).starts_with("[model] stage 1: unknown mechanism 'softmacks'"));
  BOOST_TEST(refusal(0).starts_with("unknown mechanism 'softmacks'"));
}

BOOST_AUTO_TEST_SUITE_END()
