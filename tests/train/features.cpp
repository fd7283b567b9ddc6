// Features: the classifier's input, for one block or several, and the linear classifier on them.
#include "heed/train/features.h"
#include "heed/nn/families.h"
#include "heed/train/evaluate.h"
#include "heed/train/inference.h"
#include "support/training.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

Tensor<double> random_images(const Model& model, Index count) {
  const Shape one = model.image_shape();
  Tensor<double> images(Shape{count, one[0], one[1], one[2]});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(3).normal(i);
  return images;
}

/// Returns the features of the last blocks, each [B, D].
std::vector<Tensor<double>> features_of_blocks(const Model& model, Parameters<double>& parameters,
                                               const Tensor<double>& images, Index blocks) {
  Tape<double> tape({.parameters = &parameters});
  std::vector<Var<double>> features(static_cast<std::size_t>(blocks));
  model.features(tape, ModelInput<double>{.images = images.view()}, std::span(features));
  std::vector<Tensor<double>> copies;
  for (const Var<double>& x : features) {
    copies.emplace_back(x.shape());
    std::copy(x.data(), x.data() + x.size(), copies.back().data());
  }
  return copies;
}

/// Checks that logits are head.weight features + head.bias.
void check_head(const Experiment& x) {
  const std::unique_ptr<Model> model = make_model(x);
  Parameters<double> parameters(model->parameters());
  parameters.initialise(5);
  const Tensor<double> images = random_images(*model, 3);
  Tape<double> tape({.parameters = &parameters});
  const Var<double> logits = model->logits(tape, ModelInput<double>{.images = images.view()});
  const Tensor<double> features = features_of_blocks(*model, parameters, images, 1)[0];
  const Index width = model->feature_sizes().width, classes = model->outputs()[0];
  const View<double> W = parameters[model->parameters().find("head.weight")];
  const View<double> bias = parameters[model->parameters().find("head.bias")];
  BOOST_TEST((features.shape() == Shape{3, width}));
  for (Index i = 0; i < logits.size(); ++i) {
    double y = bias[i % classes];
    for (Index d = 0; d < width; ++d) y += W[i % classes * width + d] * features[i / classes * width + d];
    BOOST_TEST(std::abs(logits.data()[i] - y) < 1e-13);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_features)

BOOST_AUTO_TEST_CASE(a_classifier_reads_them) {
  Experiment x = Workshop().experiment();
  check_head(x);
  x.model.pool = "mean";
  check_head(x);
  for (const char* family : {"xcit", "cvt", "soft"}) {
    BOOST_TEST_CONTEXT(family)
    check_head(load_experiment(fmt::format("models/{}-micro.toml", family)));
  }
}

// A model with fewer blocks has the first tensors of one with three, so its features equal the features of the earlier
// blocks.
BOOST_AUTO_TEST_CASE(of_earlier_blocks) {
  Experiment x = Workshop().experiment();
  for (const char* pool : {"cls", "mean"}) {
    x.model.pool = pool;
    x.model.depth = 3;
    const std::unique_ptr<Model> model = make_model(x);
    Parameters<double> parameters(model->parameters());
    parameters.initialise(5);
    const Tensor<double> images = random_images(*model, 3);
    const std::vector<Tensor<double>> all = features_of_blocks(*model, parameters, images, 3);
    for (Index depth = 1; depth <= 3; ++depth) {
      x.model.depth = depth;
      const std::unique_ptr<Model> shorter = make_model(x);
      Parameters<double> own(shorter->parameters());
      own.initialise(5);
      const Tensor<double> last = features_of_blocks(*shorter, own, images, 1)[0];
      for (Index i = 0; i < last.size(); ++i) BOOST_TEST(std::abs(all[depth - 1][i] - last[i]) < 1e-13);
    }
    BOOST_TEST(error_of([&] { model->require_features(4); }) ==
               "[model] features of the last 4 blocks; expected 1 to 3 blocks");
  }
  const std::unique_ptr<Model> text = make_model(load_experiment("models/text-micro.toml"));
  BOOST_TEST(error_of([&] { text->require_features(1); }) ==
             "[model] this model has no features: it does not accept images");
}

// Features are in the order of the images, for any number of threads, with the two blocks of an image concatenated.
// There are more images than the 256 that are read at a time, in an order different from the file's.
BOOST_AUTO_TEST_CASE(of_a_data_set) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  const std::unique_ptr<Model> model = make_model(x);
  Parameters<float> parameters(model->parameters());
  parameters.initialise(5);
  const std::unique_ptr<Dataset> set = open_dataset("mnist", workshop.data(), Split::train);
  std::vector<Index> chosen;
  for (Index i = 0; i < 600; ++i) chosen.push_back((7 * i + 3) % 132);
  const ImageSelection selection{set.get(), chosen, x.data, {1, 8, 8}};
  const Features<float> pixels = pixels_of<float>(selection);
  std::vector<Tensor<float>> found;
  for (const int count : {1, 3}) {
    const WithThreads with(count);
    Features<float> features = features_of(*model, parameters, selection, 2, 3);
    BOOST_TEST((features.values.shape() == Shape{600, 32}));
    for (std::size_t i = 0; i < chosen.size(); ++i) BOOST_TEST(features.labels[i] == set->label(chosen[i]));
    found.push_back(std::move(features.values));
  }
  BOOST_TEST(std::equal(found[0].begin(), found[0].end(), found[1].begin()));
  Image image;
  for (const Index i : {0, 1, 255, 256, 300, 511, 512, 599}) {
    set->read(chosen[static_cast<std::size_t>(i)], image);
    for (Index p = 0; p < 64; ++p)
      BOOST_TEST(std::abs(pixels.values[i * 64 + p] - (image.pixels[p] / 255.0 - 0.1307) / 0.3081) < 1e-6);
    Tape<float> tape({.parameters = &parameters});
    std::vector<Var<float>> blocks(2);
    model->features(tape, ModelInput<float>{.images = {pixels.values.data() + i * 64, Shape{1, 1, 8, 8}}},
                    std::span(blocks));
    for (Index d = 0; d < 32; ++d)
      BOOST_TEST(std::abs(found[0][i * 32 + d] - blocks[static_cast<std::size_t>(d / 16)].data()[d % 16]) < 1e-5);
  }
}

// Detects a tape that holds the activations of all blocks instead of one: twelve blocks take less than twice the memory
// of two.
BOOST_AUTO_TEST_CASE(a_pass_holds_the_activations_of_one_block) {
  const auto reserved = [](Index depth) {
    Experiment x = Workshop().experiment();
    x.model.depth = depth, x.model.dim = 64, x.model.hidden = 512;
    const std::unique_ptr<Model> model = make_model(x);
    Parameters<double> parameters(model->parameters());
    const Tensor<double> images = random_images(*model, 16);
    Index bytes = 0;
    Inference<double>(*model, parameters, 16).for_microbatches({0, 16}, [&](Tape<double>& tape, ExampleRange) {
      model->logits(tape, ModelInput<double>{.images = images.view()});
      bytes = tape.reserved();
    });
    return bytes;
  };
  BOOST_TEST(reserved(12) < 2 * reserved(2));
}

// Classes around the corners of a triangle are almost linearly separable; the result does not depend on threads.
BOOST_AUTO_TEST_CASE(a_linear_classifier_learns) {
  Features<float> teachers{Tensor<float>(Shape{60, 2}), {}};
  for (Index i = 0; i < 60; ++i) {
    teachers.labels.push_back(static_cast<int>(i % 3));
    teachers.values[2 * i] = static_cast<float>((i % 3 == 1 ? 3 : 0) + 0.5 * RandomStream(1).normal(2 * i));
    teachers.values[2 * i + 1] = static_cast<float>((i % 3 == 2 ? 3 : 0) + 0.5 * RandomStream(1).normal(2 * i + 1));
  }
  const LinearRule rule{.epochs = 100, .batch = 20, .lr = 0.3};
  std::vector<Tensor<float>> found;
  for (const int count : {1, 3}) {
    const WithThreads with(count);
    found.push_back(linear_logits(teachers, teachers.values, 3, rule));
  }
  BOOST_TEST(std::equal(found[0].begin(), found[0].end(), found[1].begin()));
  Index right = 0;
  for (Index i = 0; i < 60; ++i)
    right += std::max_element(found[0].data() + 3 * i, found[0].data() + 3 * i + 3) - found[0].data() - 3 * i == i % 3;
  BOOST_TEST(right >= 57);
  BOOST_TEST(error_of([&] { linear_logits(teachers, teachers.values, 3, {.batch = 61}); }) ==
             "a linear classifier with 60 training examples; expected at least 61, one batch");
}

// DINO's rule: 100 epochs, with a learning rate of 0.001 for a batch of 256, so 0.0005 for one of 128.
BOOST_AUTO_TEST_CASE(a_linear_classifier_has_the_published_rule) {
  BOOST_TEST(LinearRule().epochs == 100);
  BOOST_TEST(LinearRule().batch == 128);
  BOOST_TEST(LinearRule().lr == 0.0005);
}

// The first number that is not finite is named.
BOOST_AUTO_TEST_CASE(non_finite_outputs_are_refused) {
  const auto refusal = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const Diverged& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const float numbers[] = {1, -INFINITY, INFINITY};
  const auto among = [&](std::size_t count) {
    return refusal([&] { require_finite_answers(std::span<const float>(numbers, count), "feature"); });
  };
  BOOST_TEST(among(1) == "none");
  BOOST_TEST(among(3) == "the model's outputs are not finite: a feature is -inf");
  const Features<double> teachers{Tensor<double>(Shape{2, 1}, {1e300, -1e300}), {0, 0}};  // one is misclassified
  const Tensor<double> one(Shape{1, 1}, {1});
  const LinearRule rule{.epochs = 2, .batch = 2, .lr = 1e10};
  const std::string learned = refusal([&] { linear_logits(teachers, one, 2, rule); });
  BOOST_TEST(learned.starts_with("the model's outputs are not finite: a logit of the linear classifier is "), learned);
}

// SGD with momentum 0.9: four epochs, each of two batches of 20 of the 50 examples in a new order, and a cosine
// schedule of the rate by epoch. Without training, the logits of the unit vectors are the initial weights.
BOOST_AUTO_TEST_CASE(a_linear_classifier_follows_its_formulas) {
  constexpr Index width = 2, classes = 3, count = 50, batch = 20, epochs = 4;
  Features<double> teachers{Tensor<double>(Shape{count, width}), {}};
  for (Index i = 0; i < count; ++i) {
    teachers.labels.push_back(static_cast<int>(i * i % classes));
    for (Index d = 0; d < width; ++d) teachers.values[width * i + d] = RandomStream(2).normal(width * i + d);
  }
  const Tensor<double> units(Shape{3, width}, {1, 0, 0, 1, 0, 0});
  LinearRule rule{.epochs = 0, .batch = batch, .lr = 0.3, .seed = 5};
  const Tensor<double> initial = linear_logits(teachers, units, classes, rule);
  rule.epochs = epochs;
  const Tensor<double> found = linear_logits(teachers, units, classes, rule);

  double w[classes][width + 1], momentum[classes][width + 1] = {};  // weights, then the bias
  for (Index c = 0; c < classes; ++c) {
    BOOST_TEST(initial[width * classes + c] == 0);
    for (Index d = 0; d <= width; ++d) w[c][d] = initial[d * classes + c];
  }
  const RandomStream order = RandomStream(5).derive("order");
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    std::vector<Index> examples = all_images(count);
    shuffle(examples, order.derive(static_cast<std::uint64_t>(epoch)));
    const double lr = 0.3 * (1 + std::cos(M_PI * static_cast<double>(epoch) / epochs)) / 2;
    for (std::size_t first = 0; first + batch <= examples.size(); first += batch) {
      double gradient[classes][width + 1] = {};
      for (std::size_t i = first; i < first + batch; ++i) {
        const double x[] = {teachers.values[width * examples[i]], teachers.values[width * examples[i] + 1], 1};
        double p[classes], mass = 0;
        for (Index c = 0; c < classes; ++c) mass += p[c] = std::exp(w[c][0] * x[0] + w[c][1] * x[1] + w[c][2]);
        const int label = teachers.labels[static_cast<std::size_t>(examples[i])];
        for (Index c = 0; c < classes; ++c)
          for (Index d = 0; d <= width; ++d) gradient[c][d] += (p[c] / mass - (c == label)) * x[d] / batch;
      }
      for (Index c = 0; c < classes; ++c)
        for (Index d = 0; d <= width; ++d) w[c][d] -= lr * (momentum[c][d] = 0.9 * momentum[c][d] + gradient[c][d]);
    }
  }
  // Rounding of eight updates of numbers below 1.
  for (Index d = 0; d <= width; ++d)
    for (Index c = 0; c < classes; ++c) {
      const double expected = (d < width ? w[c][d] : 0) + w[c][width];
      BOOST_TEST(std::abs(found[d * classes + c] - expected) < 1e-13, "row " << d << ", class " << c);
    }
}

BOOST_AUTO_TEST_SUITE_END()
