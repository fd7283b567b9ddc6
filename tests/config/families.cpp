// Keys of the model families, and errors.
#include "heed/config/experiment.h"
#include "heed/io/file.h"
#include "heed/nn/families.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Returns the error of a model; empty if it is valid.
std::string family_refusal(const std::string& file, const std::vector<std::string>& sets) {
  try {
    make_model(load_experiment("models/" + file + ".toml", sets));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_refused(const std::string& file, const std::vector<std::string>& sets,
                   const std::vector<std::string>& pieces) {
  const std::string message = family_refusal(file, sets);
  for (const std::string& piece : pieces)
    BOOST_TEST(message.find(piece) != std::string::npos, "'" << message << "' lacks '" << piece << "'");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_families)

BOOST_AUTO_TEST_CASE(a_family_has_its_own_keys) {
  check_refused("xcit-micro", {"model.kv_stride=2"}, {"--set: [model] kv_stride is not a key of family = \"xcit\""});
  check_refused("xcit-micro", {"model.pool=cls"}, {"--set: [model] pool is not a key of family = \"xcit\""});
  check_refused("cvt-micro", {"model.pos_embed=true"}, {"[model] pos_embed is not a key of family = \"cvt\""});
  check_refused("soft-micro", {"model.patch=[1,1,1]"}, {"[model] patch is not a key of family = \"soft-pyramid\""});
  check_refused("vit-micro", {"model.bn_group=0"}, {"[model] bn_group is not a key of family = \"vit\""});
  check_refused("cvt-micro", {"model.kv_strid=2"}, {"unknown key 'model.kv_strid'; did you mean 'model.kv_stride'?"});
  // If the model file and --set both name a family, that of --set counts.
  check_refused("cvt-micro", {"model.family=xcit"},
                {"models/cvt-micro.toml:", "'model.depth': expected an integer, found a list"});
  check_refused("vit-micro", {"model.family=xcti"}, {"--set: [model] family = 'xcti'", "'xcit'"});
  check_refused("xcit-micro", {"model.family=resnet"}, {"--set: [model] family = 'resnet'; expected one of vit, xcit"});
  // A stride of [data] is not suggested, since a key of [model] is meant.
  check_refused("xcit-micro", {"model.stride=2"},
                {"stride is not a key of family = \"xcit\"; expected one of family, image"});
}

BOOST_AUTO_TEST_CASE(lists_have_an_item_for_each_stage) {
  check_refused("cvt-micro", {"model.heads=[2,4]"},
                {"[model] heads has 2 values, dim has 3; expected one for each stage"});
  check_refused("cvt-micro", {"model.heads=2"}, {"'model.heads': expected a list of integers", "found an integer"});
  check_refused("xcit-micro", {"model.dim=[64]"}, {"'model.dim': expected an integer, found a list"});
  check_refused("cvt-micro", {"model.act=[\"gelu\",\"relu\"]"},
                {"[model] act has 2 values; expected one, or one for each of the 3 stages"});
  check_refused("soft-micro", {"attention.landmarks=[16,16]"},
                {"--set: 'landmarks' has 2 values; expected one, or one for each of the 3 stages"});
  check_refused("xcit-micro", {"attention.mechanism=aft", "attention.rank=[3,4,5,6]"},
                {"'attention.rank': expected a string, number or boolean, found a list"});
  check_refused("xcit-micro", {"attention.mechanism=[\"xca\",\"sima\"]"}, {"one for each of the 4 blocks"});
}

// Errors number stages as the tensors' names do: from 0 in CvT, from 1 in SOFT's pyramid.
BOOST_AUTO_TEST_CASE(items_of_lists_name_their_stage) {
  check_refused("cvt-micro", {"model.depth=[1,0,2]"}, {"[model] stage 1: depth = 0; expected at least 1"});
  check_refused("soft-micro", {"model.depth=[1,0,2]"}, {"[model] stage 2: depth = 0; expected at least 1"});
  check_refused("cvt-micro", {"model.kv_stride=[2,2,0]"}, {"[model] stage 2: kv_stride = 0; expected at least 1"});
  check_refused("cvt-micro", {"model.kv_stride=0"}, {"--set: [model] kv_stride = 0; expected at least 1"});
  check_refused("cvt-micro", {"model.kv_stride=[2,\"x\",2]"},
                {"'model.kv_stride': expected an integer or a list of integers, found a string for stage 1"});
  check_refused("soft-micro", {"model.act=[\"relo\",\"relu\",\"relu\"]"},
                {"[model] stage 1: act = 'relo'; did you mean 'relu'?"});
  check_refused("cvt-micro", {"model.depth=[1,\"x\",2]"},
                {"'model.depth': expected a list of integers, one for each stage, found a string for stage 1"});
  check_refused("soft-micro", {"model.hidden=[64,2.5,2]"}, {"'model.hidden': expected a list", "a float for stage 2"});
  check_refused("soft-micro", {"attention.mechanism=[\"soft\",3,\"softmax\"]"},
                {"'attention.mechanism': expected a string or a list of strings, found an integer for stage 2"});
  check_refused("cvt-micro", {"attention.mechanism=[\"softmax\",\"sima\",\"sotfmax\"]"},
                {"stage 2: unknown mechanism 'sotfmax'; did you mean 'softmax'?"});
  check_refused("soft-micro", {"attention.landmarks=[16,[4],1]"},
                {"'attention.landmarks': expected a string, number or boolean, found a list for stage 2"});
  check_refused("vit-micro", {"optim.betas=[0.9,\"x\"]"},
                {"'optim.betas': expected a list of numbers, found a string as item 2"});
  check_refused("vit-micro", {"attention.mechanism=[\"softmax\",1]"}, {"found an integer as item 2"});
}

// The signs of initial weights are symmetric, so a negative scale is equivalent to a positive one.
BOOST_AUTO_TEST_CASE(a_layer_scale_is_any_finite_float) {
  for (const char* scale : {"-1", "0", "1e-5", "3.4e38"})
    BOOST_TEST(family_refusal("xcit-micro", {std::string("model.layer_scale=") + scale}) == "");
  check_refused("xcit-micro", {"model.layer_scale=nan"}, {"[model] layer_scale = nan; expected a finite number"});
}

BOOST_AUTO_TEST_CASE(numbers_that_no_float_holds_are_refused) {
  const auto refused = [](const std::string& set, const std::string& beginning) {
    check_refused("xcit-micro", {set},
                  {beginning + "; expected a number that float32 rounds neither to 0 nor to infinity"});
  };
  refused("model.layer_scale=1e300", "[model] layer_scale = 1e+300");
  refused("data.mean=[-1e300]", "[data] mean = -1e+300");
  refused("data.std=[1e-320]", "[data] std = 1e-320");
  refused("optim.eps=1e-320", "[optim] eps = 1e-320");
  refused("optim.eps=7e-46", "[optim] eps = 7e-46");
  refused("optim.lr=3.5e38", "[optim] lr = 3.5e+38");
  refused("train.dropout=1e-50", "[train] dropout = 1e-50");
  for (const char* set : {"optim.eps=1.5e-45", "optim.lr=3.4e38", "optim.weight_decay=0", "data.mean=[-1e-45]"})
    BOOST_TEST(family_refusal("xcit-micro", {set}) == "");
}

// XCiT needs the bound, too: it computes positions for each row of its grid.
BOOST_AUTO_TEST_CASE(a_side_has_a_bound_in_each_family) {
  for (const char* model : {"vit-micro", "xcit-micro", "cvt-micro", "soft-micro"}) {
    check_refused(model, {"model.image=65536"}, {"[model] image = 65536; expected at least 1 and at most 65535"});
    BOOST_TEST(family_refusal(model, {"model.image=1000000"}).find("image = 1000000; expected") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_name_their_stage) {
  check_refused("xcit-micro", {"model.patch=7"}, {"[model] patch = 7; expected 2, 4, 8 or 16"});
  check_refused("xcit-micro", {"model.patch=8"}, {"[model] patch = 8 does not divide image = 28"});
  check_refused("xcit-micro", {"model.patch=[4,2]"},
                {"[model] patch = [4, 2]; family = \"xcit\" requires square patches"});
  for (const char* model : {"xcit-micro", "cvt-micro", "soft-micro"})
    check_refused(model, {"model.image=[32,64]"}, {"[model] image = [32, 64]; family = '", "' requires square images"});
  check_refused("xcit-micro", {"model.image=32", "model.patch=16", "model.dim=12"}, {"dim = 12", "a multiple of 8"});
  check_refused("cvt-micro", {"model.image=1", "model.padding=[1,0,1]"},
                {"[model] stage 1: no window of 3 x 3 fits a grid of 1 x 1 with padding = 0"});
  check_refused("cvt-micro", {"model.padding=[1,3,1]"},
                {"[model] stage 1: padding = 3 on a grid of 14 x 14; expected less than patch = 3"});
  check_refused("cvt-micro", {"model.heads=[2,5,6]"}, {"[model] stage 1: heads = 5 does not divide dim = 64"});
  check_refused("soft-micro", {"model.stride=[2,4,2]"}, {"[model] stage 2: stride = 4; expected 1 or 2"});
  check_refused("soft-micro", {"model.stride=[3,2,2]"}, {"[model] stage 1: stride = 3; expected 1, 2 or 4"});
  check_refused("cvt-micro", {"train.method=dino"},
                {"[train] method = \"dino\" requires family = vit or xcit, found 'cvt'"});
  check_refused("soft-micro", {"attention.landmarks=[15,16,1]"},
                {"[model] stage 1, on a grid of 14 x 14", "landmarks is 15"});
  check_refused("soft-tiny", {"attention.ratio=[9,4,2,1]"},
                {"stage 1, on a grid of 56 x 56", "ratio is 9; it must divide both sides of the image grid"});
}

BOOST_AUTO_TEST_CASE(fewer_keys_than_queries_are_not_for_every_mechanism) {
  check_refused("cvt-micro", {"attention.mechanism=xca"},
                {"stage 0, on a grid of 14 x 14", "N = 196", "M = 49", "xca"});
  check_refused("cvt-micro", {"attention.mechanism=softmax", "attention.causal=true"},
                {"stage 0", "N = 196", "M = 49"});
  check_refused("cvt-micro", {"attention.mechanism=cosformer"}, {"stage 0", "N = 196", "M = 49", "cosformer"});
  check_refused("cvt-micro", {"attention.mechanism=adder"}, {"stage 0", "N = 196", "M = 49", "adder"});
  for (const std::string mechanism : {"softmax", "sima", "pointwise", "efficient", "linear"})
    BOOST_TEST(family_refusal("cvt-micro", {"attention.mechanism=" + mechanism}) == "");
  BOOST_TEST(family_refusal("cvt-micro", {"attention.mechanism=adder", "attention.identity=false"}) == "");
  BOOST_TEST(family_refusal("cvt-micro", {"attention.mechanism=performer", "attention.features=8"}) == "");
  BOOST_TEST(family_refusal("cvt-micro", {"attention.mechanism=linformer", "attention.length=4"}) == "");
  BOOST_TEST(family_refusal("cvt-micro", {"attention.mechanism=xca", "model.kv_stride=1"}) == "");
}

BOOST_AUTO_TEST_CASE(what_is_printed_is_read_again) {
  const TemporaryDirectory directory;
  const std::string file = directory / "again.toml";
  for (const char* name : {"xcit-micro", "cvt-13", "soft-tiny", "soft-micro", "xcit-tiny-24-p16-sima"}) {
    const Experiment experiment = load_experiment(std::string("models/") + name + ".toml", {"model.bn_group=2"});
    write_file(file, to_toml(experiment));
    BOOST_TEST((load_experiment(file) == experiment), name);
    BOOST_TEST((to_toml(experiment).find("weight_scale") == std::string::npos), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
