// The plan that a run announces before its first step, and the checkpoints that it writes.
#include "heed/base/split.h"
#include "heed/base/warnings.h"
#include "heed/io/checksum.h"
#include "heed/io/json.h"
#include "heed/io/safetensors.h"
#include "heed/nn/families.h"
#include "src/train/runs/initial_weights.h"

#include "support/tasks.h"
#include "support/training.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace heed;
using namespace heed::test;

namespace {

struct Planned : TrainObserver {
  TrainPlan plan;
  void begin(const TrainPlan& given) override { plan = given; }
};

Index number_in(const std::string& checkpoint, const std::string& key) {
  return std::stoll(SafetensorsFile(checkpoint).metadata().at("heed." + key));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_plan)

// Labels are i mod 10: 132 images for training and validation, 33 for testing.
BOOST_AUTO_TEST_CASE(a_plan_counts_parts_classes_and_weights) {
  const Workshop workshop(132, 33);
  Experiment x = workshop.experiment();
  Planned observer;
  std::atomic<bool> interrupt{true};
  train(x, {.run = workshop / "run", .interrupt = &interrupt}, observer);
  const TrainPlan& plan = observer.plan;
  BOOST_TEST(plan.train_examples == 112);
  BOOST_TEST(plan.validation_examples == 20);
  BOOST_TEST(plan.test_examples == 33);
  BOOST_TEST(plan.example == "image");
  BOOST_TEST(plan.measure == "accuracy by class");
  BOOST_TEST(plan.steps_per_epoch == 7);
  BOOST_REQUIRE(plan.train_classes.size() == 10u);
  BOOST_REQUIRE(plan.validation_classes.size() == 10u);
  BOOST_REQUIRE(plan.test_classes.size() == 10u);
  Index validation = 0;
  for (std::size_t c = 0; c < 10; ++c) {
    BOOST_TEST(plan.train_classes[c] + plan.validation_classes[c] == (c < 2 ? 14 : 13), "class " << c);
    BOOST_TEST(plan.test_classes[c] == (c < 3 ? 4 : 3), "class " << c);
    BOOST_TEST(plan.class_names[c] == std::to_string(c));
    validation += plan.validation_classes[c];
  }
  BOOST_TEST(validation == 20);
  // A transformer of 16 channels: patches of 16 pixels, 5 positions, a class token, and ten classes.
  const Index block = 2 * 2 * 16 + 16 * 48 + 48 + 16 * 16 + 16 + 2 * 16 * 24 + 24 + 16;
  BOOST_TEST(plan.parameters == 16 * 16 + 16 + 5 * 16 + 16 + 2 * block + 2 * 16 + 16 * 10 + 10);
  // Multiplications of the forward pass: 4 patches, two blocks of 5 tokens, and the head. The backward pass has two
  // products for each product of the forward pass, but one for the patches. There are as many additions.
  const Index patches = 4 * 16 * 16, of_block = 5 * 16 * (3 * 16 + 2 * 5 + 16 + 2 * 24),
              forward = patches + 2 * of_block + 16 * 10, step = 3 * forward - patches;
  BOOST_TEST(plan.operations == 2 * step);
  BOOST_TEST(std::abs(plan.energy_pj / (4.6 * static_cast<double>(step)) - 1) < 1e-12);
  const Json cost = Json::parse(read_file(workshop / "run/cost.json"));
  BOOST_TEST(cost.at("contractions").at("pass").text() == "step");
  BOOST_TEST(cost.at("contractions").at("batch").integer() == 16);
  BOOST_TEST(cost.at("contractions").at("total").at("mul").integer() == step);
  BOOST_TEST(!plan.own_validation);
  BOOST_TEST(plan.run == workshop / "run");
  BOOST_TEST(plan.init.empty());
  BOOST_TEST((plan.epoch == 0 && plan.step == 0 && plan.epochs_before == 0));
}

// Documents have separate files for validation.
BOOST_AUTO_TEST_CASE(a_plan_states_separate_validation_data) {
  const TaskData data;
  for (const std::string name : {"documents", "pixels"}) {
    Planned observer;
    std::atomic<bool> interrupt{true};
    train(data.experiment(name), {.run = data.path(name + " run"), .interrupt = &interrupt}, observer);
    BOOST_TEST(observer.plan.own_validation == (name == "documents"), name);
    BOOST_TEST(observer.plan.example == "sequence");
    BOOST_TEST(observer.plan.validation_examples == 12);
    BOOST_TEST(observer.plan.class_names.size() == (name == "documents" ? 3u : 10u));
  }
}

BOOST_AUTO_TEST_CASE(a_resumed_plan_begins_where_the_run_stopped) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  run_until(9, x, workshop / "run");
  x.train.epochs = 5;
  Planned observer;
  std::atomic<bool> interrupt{true};
  train(x, {.run = workshop / "run", .resume = true, .interrupt = &interrupt}, observer);
  BOOST_TEST(observer.plan.epoch == 1);
  BOOST_TEST(observer.plan.step == 9);
  BOOST_TEST(observer.plan.epochs_before == 3);
}

BOOST_AUTO_TEST_CASE(a_plan_names_the_initial_weights) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.max_steps = 1;
  run(x, workshop / "first");
  Planned observer;
  train(x, {.run = workshop / "second", .init = workshop / "first"}, observer);
  BOOST_TEST(observer.plan.init == workshop / "first/last.safetensors");
  BOOST_TEST(observer.plan.taken.numbers == observer.plan.parameters);
  const Json init = Json::parse(read_file(workshop / "second/init.json"));
  BOOST_TEST(init.at("file").text() == workshop / "first/last.safetensors");
  BOOST_TEST(init.at("crc32").text() == file_checksum(workshop / "first/last.safetensors").substr(0, 8));
  BOOST_TEST(init.at("numbers").integer() == observer.plan.parameters);
}

// The stages of a pyramid have different widths, and so have the parts of their qkv layers. CvT has separate layers for
// q, k and v.
BOOST_AUTO_TEST_CASE(stages_start_from_those_of_another_mechanism) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  for (const std::string name : {"models/soft-micro.toml", "models/cvt-micro.toml"}) {
    Experiment x = load_experiment(name), softmax = x;
    softmax.attention = {};
    x.train.init = "matching";
    const std::unique_ptr<Model> source = make_model(softmax), model = make_model(x);
    Parameters<float> given(source->parameters()), parameters(model->parameters());
    given.initialise(1), parameters.initialise(2);
    SafetensorsWriter writer;
    add_weights(writer, given);
    writer.write(path);
    std::vector<Index> rows;
    for (const TakenTensor& tensor : take_initial_weights(path, x, parameters).taken.tensors) {
      BOOST_TEST((tensor.rows == tensor.of || tensor.reason == "not in the file"), tensor.name);
      if (tensor.name.ends_with("attn.qkv.weight")) rows.push_back(tensor.rows);
    }
    const std::vector<Index> expected{2 * 32, 2 * 64, 3 * 96, 3 * 96};
    BOOST_TEST((name == "models/soft-micro.toml" ? rows == expected : rows.empty()));
  }
}

// Fashion-MNIST has MNIST's format and number of classes. Weights without a run directory, or loaded without the
// classifier, cause no warning.
BOOST_AUTO_TEST_CASE(a_classifier_of_other_classes_is_announced) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.max_steps = 1;
  run(x, workshop / "first");
  const std::string first = workshop / "first", other = workshop / "other", alone = workshop / "alone.safetensors";
  std::filesystem::copy(first, other);
  std::filesystem::copy_file(first + "/last.safetensors", alone);
  take_warnings();
  const auto warnings = [&](const std::string& init) {
    Planned observer;
    train(x, {.run = "", .init = init, .check = true}, observer);
    return take_warnings();
  };
  BOOST_TEST(warnings(first).empty());
  x.data.name = "fashion-mnist";
  for (const auto& [run, init] : {std::pair(first, first), {other, other + "/last.safetensors"}}) {
    const std::vector<std::string> found = warnings(init);
    BOOST_REQUIRE(found.size() == 1u);
    BOOST_TEST(found[0] ==
               run +
                   "/last.safetensors: its classifier was trained on other classes: label 0 is '0', in these "
                   "data 'T-shirt/top'; for a new classifier, add --set train.init=matching --set "
                   "'train.init_skip=[\"head*\"]'");
  }
  BOOST_TEST(warnings(alone).empty());
  x.train.init = "matching", x.train.init_skip = {"head*"};
  BOOST_TEST(warnings(first).empty());
}

// When a step is reported, the last checkpoint was written at the latest earlier step that is a multiple of the
// interval or ends an epoch. Epochs have seven steps.
BOOST_AUTO_TEST_CASE(checkpoints_are_written_at_their_steps) {
  for (const Index interval : {0, 1, 3, 8}) {
    const Workshop workshop;
    Experiment x = workshop.experiment();
    x.train.checkpoint_steps = interval;
    const std::string last = workshop / "run/last.safetensors";
    Index reports = 0;
    AfterStep observer([&](const StepReport& report) {
      Index expected = report.step - 1;
      while (expected % 7 != 0 && (interval == 0 || expected % interval != 0)) --expected;
      BOOST_TEST(number_in(last, "step") == expected, "every " << interval << ", step " << report.step);
      BOOST_TEST(number_in(last, "epoch") == expected / 7);
      BOOST_TEST(number_in(last, "batch") == expected % 7);
      ++reports;
    });
    train(x, {.run = workshop / "run"}, observer);
    BOOST_TEST(reports == 21);
    BOOST_TEST(number_in(last, "step") == 21);
    BOOST_TEST(number_in(last, "epoch") == 3);
  }
}

// A step reports means over the epoch so far. Steps that take at least 5 ms each bound the rate; the images of an
// earlier process do not count.
BOOST_AUTO_TEST_CASE(a_step_reports_its_place_and_the_rate_of_this_process) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.log_steps = true;
  std::vector<StepReport> reports;
  AfterStep observer([&](const StepReport& report) {
    reports.push_back(report);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  run_until(10, x, workshop / "run");
  train(x, {.run = workshop / "run", .resume = true}, observer);
  BOOST_REQUIRE(reports.size() == 11u);
  std::vector<double> losses, accuracies;
  for (const std::string& row : metrics_of(workshop / "run")) {
    const std::vector<std::string> cells = split(row, ',');
    if (cells[0] == "step") losses.push_back(std::stod(cells[3])), accuracies.push_back(std::stod(cells[4]));
  }
  BOOST_REQUIRE(losses.size() == 21u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto step = static_cast<Index>(11 + i), epoch = (step - 1) / 7, batch = step - 7 * epoch;
    const StepReport& report = reports[i];
    BOOST_TEST(report.step == step);
    BOOST_TEST(report.epoch == epoch + 1);
    BOOST_TEST(report.batch == batch);
    double loss = 0, accuracy = 0;
    for (Index k = 7 * epoch; k < step; ++k)
      loss += losses[static_cast<std::size_t>(k)], accuracy += accuracies[static_cast<std::size_t>(k)];
    BOOST_TEST(std::abs(report.loss - loss / static_cast<double>(batch)) < 1e-12);  // sums of at most seven values
    BOOST_TEST(std::abs(report.accuracy - accuracy / static_cast<double>(batch)) < 1e-12);
    // The rate is measured over `own` steps with own - 1 pauses between them: since the start of the epoch or, in the
    // second epoch, since the process started at its fourth batch.
    const Index own = epoch == 1 ? batch - 3 : batch;
    BOOST_TEST(report.images_per_s > 0);
    if (own > 1)
      BOOST_TEST(report.images_per_s <= static_cast<double>(16 * own) / (0.005 * static_cast<double>(own - 1)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
