// Options of mechanisms by block or stage: lists, and tables of a mechanism, which override those of all.
#include "src/nn/mechanism_choice.h"

#include "support/families.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns the shape of a parameter of the mechanism at this position; [] if it has none of this name.
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
  // A single mechanism serves all stages, with an item for each.
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
}

BOOST_AUTO_TEST_SUITE_END()
