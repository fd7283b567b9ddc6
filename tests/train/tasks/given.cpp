// Batches of given tensors: examples, second sequences, lengths and labels match the file, in its order.
#include "heed/io/given_tensors.h"
#include "heed/nn/families.h"
#include "heed/train/tasks/task.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <utility>

using namespace heed;

namespace {

/// A task with weights that are not small, and a file of tensors for it.
struct Given {
  TemporaryDirectory directory;
  std::string path = directory / "given.safetensors";
  std::unique_ptr<Model> model;
  std::unique_ptr<Task<double>> task;
  Parameters<double> parameters;
  std::map<std::string, Tensor<std::int64_t>> integers;
  std::map<std::string, Tensor<double>> numbers;

  explicit Given(const Experiment& x)
      : model(make_model(x)), task(make_task<double>(x, *model)), parameters(model->parameters()) {
    parameters.initialise(3);
    for (Index i = 0; i < parameters.trainable_size(); ++i) parameters.data()[i] += 0.3 * RandomStream(8).normal(i);
  }

  std::unique_ptr<TaskBatch<double>> batch() const {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : integers) writer.add(name, tensor.view());
    for (const auto& [name, tensor] : numbers) writer.add(name, tensor.view());
    writer.write(path);
    GivenTensors tensors(path);
    std::unique_ptr<TaskBatch<double>> batch = task->given_batch(tensors);
    tensors.finish();
    return batch;
  }

  std::string refusal() const {
    return error_of([&] { batch(); }, path + ": ");
  }

  /// Checks that example i of the batch has the same logits, loss and score as the single input `alone` with these
  /// labels, one per row, -1 for none.
  void check(const TaskBatch<double>& batch, Index i, const ModelInput<double>& alone, std::vector<Index> labels) {
    Tape<double> tape({.parameters = &parameters}), other({.parameters = &parameters});
    const Var<double> found = batch.logits(*model, tape, {i, 1}), expected = model->logits(other, alone);
    BOOST_REQUIRE(found.size() == expected.size());
    for (Index c = 0; c < found.size(); ++c) BOOST_TEST(std::abs(found.data()[c] - expected.data()[c]) < 1e-12);
    const Index classes = found.size() / static_cast<Index>(labels.size());
    Score score;
    for (std::size_t r = 0; r < labels.size(); ++r) {
      if (labels[r] < 0) continue;
      const double* const row = expected.data() + static_cast<Index>(r) * classes;
      double sum = 0;
      for (Index c = 0; c < classes; ++c) sum += std::exp(row[c]);
      const bool right = std::max_element(row, row + classes) - row == labels[r];
      score = score + Score{1, std::log(sum) - row[labels[r]], right ? 1.0 : 0.0};
    }
    BOOST_TEST(std::abs(*batch.loss(found, {i, 1}, 1).data() - score.loss) < 1e-11);
    BOOST_TEST(static_cast<double>(batch.correct(found.value(), {i, 1})) == score.correct);
    std::vector<double> counts(static_cast<std::size_t>(task->counts()));
    const Score judged = batch.judge(found.value(), {i, 1}, counts);
    BOOST_TEST(judged.terms == score.terms);
    BOOST_TEST(std::abs(judged.loss - score.loss) < 1e-11);
    BOOST_TEST(judged.correct == score.correct);
  }
};

Experiment pair_experiment() {
  Experiment x;
  x.model.family = "sequence", x.model.task = "pair", x.model.vocab = 7, x.model.context = 5;
  x.model.dim = 8, x.model.depth = 1, x.model.heads = 2, x.model.hidden = 10, x.model.classes = 3;
  x.model.pool = "mean", x.data.name = "pairs";
  return x;
}

Experiment language_experiment() {
  Experiment x = pair_experiment();
  x.model.task = "lm", x.data.name = "text";
  return x;
}

Experiment image_experiment(const char* output) {
  Experiment x;
  x.model.image = {4, 6}, x.model.channels = 2, x.model.patch = 2, x.model.output = output;
  x.model.dim = 8, x.model.depth = 1, x.model.heads = 2, x.model.hidden = 5, x.model.classes = 3;
  return x;
}

/// Returns three images, all different.
Tensor<double> drawn_images() {
  Tensor<double> images(Shape{3, 2, 4, 6});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(5).normal(i);
  return images;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_given)

// The two sequences of a pair have separate tokens and lengths; without lengths, all tokens are valid. Tokens after the
// end of a sequence may have any value.
BOOST_AUTO_TEST_CASE(pairs_have_tokens_and_lengths_of_their_own) {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      Given given(pair_experiment());
      const std::vector<int> lengths = first ? std::vector{4, 1, 3} : std::vector{4, 4, 4};
      const std::vector<int> lengths2 = second ? std::vector{2, 5, 1} : std::vector{5, 5, 5};
      const auto fill = [&](const std::string& ending, Index width, const std::vector<int>& of) {
        Tensor<std::int64_t>& tokens = given.integers["tokens" + ending] = Tensor<std::int64_t>(Shape{3, width});
        for (Index i = 0; i < tokens.size(); ++i)
          tokens[i] = i % width < of[static_cast<std::size_t>(i / width)] ? (i * i + width) % 7 : 99;
      };
      fill("", 4, lengths), fill("2", 5, lengths2);
      if (first) given.integers["lengths"] = Tensor<std::int64_t>(Shape{3}, {4, 1, 3});
      if (second) given.integers["lengths2"] = Tensor<std::int64_t>(Shape{3}, {2, 5, 1});
      given.integers["labels"] = Tensor<std::int64_t>(Shape{3}, {2, 0, 1});
      const std::unique_ptr<TaskBatch<double>> batch = given.batch();
      BOOST_TEST(batch->size() == 3);
      for (Index i = 0; i < 3; ++i) {
        const auto valid = [&](const std::string& name, Index length) {
          const Tensor<std::int64_t>& from = given.integers.at(name);
          Tensor<int> row(Shape{1, length});
          for (Index t = 0; t < length; ++t) row[t] = static_cast<int>(from[i * from.shape()[1] + t]);
          return row;
        };
        const Tensor<int> a = valid("tokens", lengths[static_cast<std::size_t>(i)]);
        const Tensor<int> b = valid("tokens2", lengths2[static_cast<std::size_t>(i)]);
        given.check(*batch, i, {.sequences = {a.view(), {}}, .partners = {b.view(), {}}},
                    {given.integers.at("labels")[i]});
      }
    }
}

BOOST_AUTO_TEST_CASE(errors_name_the_sequence_and_the_element) {
  Given given(pair_experiment());
  given.integers = {{"tokens", Tensor<std::int64_t>(Shape{3, 4})},
                    {"tokens2", Tensor<std::int64_t>(Shape{3, 5})},
                    {"lengths2", Tensor<std::int64_t>(Shape{3}, {2, 5, 1})},
                    {"labels", Tensor<std::int64_t>(Shape{3})}};
  BOOST_TEST(given.refusal() == "no error");
  const auto refusal = [&](const std::string& name, Index element, std::int64_t value) {
    const std::int64_t before = std::exchange(given.integers.at(name)[element], value);
    const std::string message = given.refusal();
    given.integers.at(name)[element] = before;
    return message;
  };
  BOOST_TEST(refusal("tokens2", 4, 7) == "no error");  // after the end
  BOOST_TEST(refusal("tokens2", 7, 7) == "tensor 'tokens2' has value 7 at element 7; expected 0 to 6");
  BOOST_TEST(refusal("tokens", 7, -1) == "tensor 'tokens' has value -1 at element 7; expected 0 to 6");
  BOOST_TEST(refusal("lengths2", 1, 6) == "tensor 'lengths2' has value 6 at element 1; expected 1 to 5");
  BOOST_TEST(refusal("lengths2", 2, 0) == "tensor 'lengths2' has value 0 at element 2; expected 1 to 5");
  BOOST_TEST(refusal("labels", 2, 3) == "tensor 'labels' has value 3 at element 2; expected 0 to 2");
  given.integers["tokens2"] = Tensor<std::int64_t>(Shape{2, 5});
  given.integers.erase("lengths2");
  BOOST_TEST(given.refusal() == "tensor 'tokens2' has shape [2, 5]; expected [3, 5]");
  given.integers["tokens2"] = Tensor<std::int64_t>(Shape{3, 6});
  BOOST_TEST(given.refusal() == "tensor 'tokens2' has shape [3, 6]; expected [B, T] with T at most context, 5");
}

// Random images have the model's channels, height and width.
BOOST_AUTO_TEST_CASE(random_images_fit_the_model) {
  for (const bool patches : {false, true}) {
    Given given(image_experiment(patches ? "tokens" : "class"));
    const std::unique_ptr<TaskBatch<double>> batch = given.task->random_batch(4);
    BOOST_TEST(batch->size() == 4);
    BOOST_TEST(batch->terms() == (patches ? 4 * 6 : 4));
    Tape<double> tape({.parameters = &given.parameters});
    const Var<double> logits = batch->logits(*given.model, tape, {1, 3});
    BOOST_TEST((logits.shape() == (patches ? Shape{3, 6, 3} : Shape{3, 3})));
  }
}

// Positions without a target are not terms of the loss.
BOOST_AUTO_TEST_CASE(tokens_have_targets_of_their_own) {
  Given given(language_experiment());
  Tensor<std::int64_t>&tokens = given.integers["tokens"] = Tensor<std::int64_t>(Shape{2, 4}, {3, 4, 0, 5, 6, 6, 1, 2}),
  &targets = given.integers["targets"] = Tensor<std::int64_t>(Shape{2, 4}, {-1, 3, 0, 6, 2, -1, -1, 5});
  const std::unique_ptr<TaskBatch<double>> batch = given.batch();
  BOOST_TEST(batch->size() == 2);
  BOOST_TEST(batch->terms() == 5);
  for (Index i = 0; i < 2; ++i) {
    Tensor<int> row(Shape{1, 4});
    for (Index t = 0; t < 4; ++t) row[t] = static_cast<int>(tokens[4 * i + t]);
    given.check(*batch, i, {.sequences = {row.view(), {}}},
                std::vector<Index>(targets.begin() + 4 * i, targets.begin() + 4 * (i + 1)));
  }
  const auto refusal = [&](const std::string& name, std::int64_t value) {
    const std::int64_t before = std::exchange(given.integers.at(name)[5], value);
    const std::string message = given.refusal();
    given.integers.at(name)[5] = before;
    return message;
  };
  BOOST_TEST(refusal("tokens", 7) == "tensor 'tokens' has value 7 at element 5; expected 0 to 6");
  BOOST_TEST(refusal("tokens", -1) == "tensor 'tokens' has value -1 at element 5; expected 0 to 6");
  BOOST_TEST(refusal("targets", 7) == "tensor 'targets' has value 7 at element 5; expected -1 to 6");
  BOOST_TEST(refusal("targets", -2) == "tensor 'targets' has value -2 at element 5; expected -1 to 6");
  std::fill(targets.begin(), targets.end(), -1);
  BOOST_TEST(given.refusal() == "all elements of tensor 'targets' are -1; expected at least one target");
  given.integers["targets"] = Tensor<std::int64_t>(Shape{2, 3});
  BOOST_TEST(given.refusal() == "tensor 'targets' has shape [2, 3]; expected [2, 4]");
  given.integers["tokens"] = Tensor<std::int64_t>(Shape{8});
  BOOST_TEST(given.refusal() == "tensor 'tokens' has shape [8]; expected 2 axes");
}

// One label for each image, or one for each of its six patches.
BOOST_AUTO_TEST_CASE(images_have_labels_of_their_own) {
  for (const bool patches : {false, true}) {
    Given given(image_experiment(patches ? "tokens" : "class"));
    const Index rows = patches ? 6 : 1;
    const Tensor<double>& images = given.numbers["images"] = drawn_images();
    Tensor<std::int64_t>& labels = given.integers["labels"] = Tensor<std::int64_t>(patches ? Shape{3, rows} : Shape{3});
    for (Index i = 0; i < labels.size(); ++i) labels[i] = (i * i + 2) % 3;
    const std::unique_ptr<TaskBatch<double>> batch = given.batch();
    BOOST_TEST(batch->size() == 3);
    BOOST_TEST(batch->terms() == 3 * rows);
    for (Index i = 0; i < 3; ++i)
      given.check(*batch, i, {.images = images.view().part(i, 1)},
                  std::vector<Index>(labels.begin() + i * rows, labels.begin() + (i + 1) * rows));
    labels[labels.size() - 1] = 3;
    BOOST_TEST(given.refusal() ==
               fmt::format("tensor 'labels' has value 3 at element {}; expected 0 to 2", labels.size() - 1));
    given.numbers["images"] = Tensor<double>(Shape{3, 2, 6, 4});
    BOOST_TEST(given.refusal() == "tensor 'images' has shape [3, 2, 6, 4]; expected [3, 2, 4, 6]");
  }
}

BOOST_AUTO_TEST_SUITE_END()
