// Errors of models on examples and mechanisms that do not fit them; features of several blocks of class attention.
#include "heed/nn/attention.h"
#include "heed/nn/families.h"
#include "heed/nn/sequence.h"
#include "heed/nn/vit.h"
#include "support/families.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

SequenceModel nine_tokens(const char* task) {
  ModelConfig m;
  m.family = "sequence", m.task = task, m.vocab = 7, m.context = 9, m.pool = "mean", m.classes = 3;
  m.dim = 6, m.depth = 1, m.heads = 2, m.hidden = 5;
  return SequenceModel(m, {});
}

/// Returns the error of a pass over these examples.
std::string error_on(const Model& model, const ModelInput<double>& examples, bool training = false) {
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  Tape<double> tape({.parameters = &parameters, .training = training});
  return error_of([&] { model.logits(tape, examples); }, "[model] ");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_refusals)

// A sequence must end within its row, and within the context.
BOOST_AUTO_TEST_CASE(sequences_of_other_lengths) {
  const SequenceModel model = nine_tokens("classify");
  const Tensor<int> long_rows(Shape{2, 12}), short_rows(Shape{2, 4});
  const auto error = [&](const Tensor<int>& rows_given, int first, int second) {
    const Tensor<int> lengths(Shape{2}, {first, second});
    return error_on(model, {.sequences = {rows_given.view(), lengths.view()}});
  };
  BOOST_TEST(error(long_rows, 1, 9) == "no error");
  BOOST_TEST(error(long_rows, 3, 10) == "sequence 1 has 10 tokens; expected 1 to 9");
  BOOST_TEST(error(long_rows, 0, 3) == "sequence 0 has 0 tokens; expected 1 to 9");
  BOOST_TEST(error(short_rows, 4, 5) == "sequence 1 has 5 tokens; expected 1 to 4");
  BOOST_TEST(error_on(model, {.sequences = {long_rows.view(), {}}}) == "sequence 0 has 12 tokens; expected 1 to 9");
}

BOOST_AUTO_TEST_CASE(examples_of_another_kind) {
  const Tensor<int> tokens_given(Shape{2, 4});
  const Sequences some{tokens_given.view(), {}};
  const Tensor<double> images(Shape{2, 1, 4, 4});
  BOOST_TEST(error_on(nine_tokens("classify"), {.images = images.view()}) ==
             "this model expects sequences of tokens, [B, T]");
  BOOST_TEST(error_on(nine_tokens("pair"), {.sequences = some}) == "task = \"pair\" takes pairs of sequences");
  BOOST_TEST(error_on(nine_tokens("classify"), {.sequences = some, .partners = some}) ==
             "task = \"classify\" takes single sequences");
  const auto xcit = make_model(small_experiment("xcit"));
  BOOST_TEST(error_on(*xcit, {.images = images.view()}) == "images have shape [2, 1, 4, 4]; expected [B, 2, 12, 12]");
  Experiment x;
  x.model.image = Sides(8, 4), x.model.channels = 1, x.model.patch = Sides(4, 2), x.model.dim = 4, x.model.depth = 1;
  x.model.heads = 2, x.model.hidden = 5, x.model.classes = 3;
  const Tensor<double> wide(Shape{2, 1, 4, 8});
  BOOST_TEST(error_on(*make_model(x), {.images = wide.view()}) ==
             "images have shape [2, 1, 4, 8]; expected [B, 1, 8, 4]");
}

// On a grid of 1 x 1, an image has one value per channel for the second norm of the stem, and four for the first.
BOOST_AUTO_TEST_CASE(batches_without_a_variance) {
  const Tensor<double> images(Shape{2, 2, 4, 4});
  const auto error = [&](Index count, Index group, bool training) {
    Experiment x = small_experiment("xcit", {"model.image=4"});
    x.attention = {}, x.model.bn_group = group;
    return error_on(*make_model(x), {.images = images.view().part(0, count)}, training);
  };
  const std::string expected =
      "patch_embed.proj.2.1: training needs at least two values per channel, but one image on a 1 x 1 grid has one; "
      "increase train.batch, bn_group or image";
  BOOST_TEST(error(1, 0, true) == expected);
  BOOST_TEST(error(2, 1, true) == expected);
  BOOST_TEST(error(2, 2, true) == "no error");
  BOOST_TEST(error(1, 0, false) == "no error");
}

BOOST_AUTO_TEST_CASE(norms_of_queries_that_do_not_exist) {
  const auto layer_error = [](const char* name, const OptionValues& options) {
    return error_of([&] {
      ParameterList list;
      AttentionLayer(list, "attn", 6, 2, make_mechanism(name, options), AttentionShape{.queries = 4, .keys = 4},
                     {.qk_norm = true});
    });
  };
  BOOST_TEST(layer_error("softmax", {}) == "no error");
  BOOST_TEST(layer_error("aft", {}) ==
             "[model] qk_norm = true is not defined for aft, which has no queries and keys to normalise");
  Experiment x = small_experiment("cvt", {"model.qk_norm=true", "model.kv_stride=1"});
  x.attention.mechanism = {"aft"};
  BOOST_TEST(error_of([&] { make_model(x); }).find("qk_norm = true is not defined for aft") != std::string::npos);
}

// The first of two blocks has the features of a single block, although a single block, as the last one, computes only
// the class token.
BOOST_AUTO_TEST_CASE(features_of_class_attention) {
  const Tensor<double> images = SmallTraining(small_experiment("xcit"), 3).images;
  const auto features = [&](Index blocks) {
    const auto model = make_model(small_experiment("xcit", {fmt::format("model.cls_depth={}", blocks)}));
    BOOST_TEST(model->feature_sizes().blocks == blocks);
    Parameters<double> parameters(model->parameters());
    for (ParameterId id = 0; id < parameters.list().size(); ++id)
      for (Index i = 0; i < parameters[id].size(); ++i)
        parameters[id][i] = RandomStream(3).derive(parameters.list()[id].name).uniform(i, 0.5, 1.5);
    Tape<double> tape({.parameters = &parameters});
    std::vector<Var<double>> all(static_cast<std::size_t>(blocks));
    model->features(tape, ModelInput<double>{.images = images.view()}, std::span(all));
    std::vector<std::vector<double>> values;
    for (const Var<double>& x : all) values.emplace_back(x.data(), x.data() + x.size());
    return values;
  };
  const auto one = features(1), two = features(2);
  BOOST_TEST_REQUIRE(one[0].size() == 18u);
  double apart = 0;
  for (std::size_t i = 0; i < 18; ++i) {
    BOOST_TEST(std::abs(two[0][i] - one[0][i]) < 1e-10);
    apart = std::max(apart, std::abs(two[1][i] - one[0][i]));
  }
  BOOST_TEST(apart > 1e-6);
}

// Two image sizes share all tensors but position embeddings, unless a tensor's shape or its initial values differ.
BOOST_AUTO_TEST_CASE(tensors_that_depend_on_the_image) {
  const auto tied = [](const char* mechanism, const std::map<std::string, std::string>& options) {
    const auto model = [&](Index side) {
      Experiment x;
      x.model.image = side, x.model.channels = 1, x.model.patch = 2, x.model.dim = 4, x.model.depth = 1;
      x.model.heads = 2, x.model.hidden = 5, x.model.classes = 3, x.model.pool = "mean";
      x.attention.mechanism = {mechanism};
      for (const auto& [name, text] : options) x.attention.options[name] = {text, "here"};
      return make_model(x);
    };
    return tensor_of_one_size(model(8)->parameters(), model(4)->parameters());
  };
  BOOST_TEST(tied("softmax", {}) == "");
  BOOST_TEST(tied("linformer", {{"length", "2"}}) == "blocks.0.attn.e");
  // Two landmarks are drawn from 16 or from 4 tokens.
  BOOST_TEST(tied("soft", {{"landmarks", "2"}, {"sampling", "random"}}) == "blocks.0.attn.landmark_index");
}

// Positions are interpolated only between square grids.
BOOST_AUTO_TEST_CASE(positions_of_an_oblong_grid) {
  const auto model_of = [](const Sides& image) {
    ModelConfig m;
    m.image = image, m.channels = 1, m.patch = 2, m.dim = 4, m.depth = 1, m.heads = 2, m.hidden = 5, m.classes = 3;
    return VisionTransformer(m, {});
  };
  const VisionTransformer square = model_of(8), oblong = model_of(Sides(8, 4));
  const Tensor<double> image(Shape{1, 1, 8, 4}), whole(Shape{1, 1, 8, 8});
  const auto error = [](const VisionTransformer& model, const ParameterList& given, const Tensor<double>& images) {
    Parameters<double> parameters(given);
    Tape<double> tape({.parameters = &parameters});
    return error_of([&] { model.logits<double>(tape, {images.view()}); });
  };
  BOOST_TEST(error(oblong, square.parameters(), image) == "[model] image or patch of 4 x 2; expected a square here");
  BOOST_TEST(error(square, oblong.parameters(), whole) ==
             "[interpolate_positions] x has shape [1, 9, 4]; expected [1, 10, D], a grid of 3 x 3");
  BOOST_TEST(error(square, square.parameters(), whole) == "no error");
}

BOOST_AUTO_TEST_SUITE_END()
