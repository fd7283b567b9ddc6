// heed features, heed eval --knn, --linear, --shots, and the probes of their computations.
#include "support/cli.h"

#include "heed/io/safetensors.h"
#include "heed/train/features.h"
#include "heed/train/runs/run.h"
#include "heed/train/tasks/classification.h"
#include "run_model.h"

#include <map>
#include <numeric>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// A run of one epoch on easily distinguished patterns.
struct TrainedRun : Workshop {
  std::string run = *this / "run";

  TrainedRun() : Workshop(180, 30) {
    Experiment x = experiment();
    x.train.epochs = 1;
    output_of({"train", write_experiment(*this, x), "--run", run});
  }

  /// Runs `heed features` on the run; returns the features and labels.
  Features<float> features(std::vector<std::string> options) const {
    const std::string file = *this / "features.safetensors";
    options.insert(options.begin(), {"features", run, "-o", file});
    output_of(options);
    const SafetensorsFile written(file);
    const Tensor<std::int64_t> labels = written.read<std::int64_t>("labels");
    return {written.read<float>("features"), {labels.begin(), labels.end()}};
  }
};

/// Returns the fraction of test rows that the k nearest neighbours classify correctly, and the confusion table.
std::pair<double, std::string> by_neighbours(const Features<float>& train, const Features<float>& test, std::size_t k,
                                             double temperature) {
  const auto product = [](const float* a, const float* b, Index width) {
    double sum = 0;
    for (Index i = 0; i < width; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  };
  const Index width = test.width();
  std::vector<int> answers;
  double right = 0;
  for (Index t = 0; t < test.count(); ++t) {
    const float* const row = test.values.data() + t * width;
    std::vector<std::pair<double, int>> nearest;
    for (Index i = 0; i < train.count(); ++i) {
      const float* const other = train.values.data() + i * width;
      const double lengths = std::sqrt(product(row, row, width) * product(other, other, width));
      nearest.emplace_back(product(row, other, width) / lengths, train.labels[static_cast<std::size_t>(i)]);
    }
    std::ranges::sort(nearest, std::greater<>());
    std::vector<double> scores(10);
    for (std::size_t i = 0; i < k; ++i)
      scores[static_cast<std::size_t>(nearest[i].second)] += std::exp(nearest[i].first / temperature);
    answers.push_back(static_cast<int>(std::ranges::max_element(scores) - scores.begin()));
    right += answers.back() == test.labels[static_cast<std::size_t>(t)];
  }
  return {right / static_cast<double>(test.count()), confusion_text(test.labels, answers)};
}

std::vector<std::string> joined_words(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_features)

BOOST_FIXTURE_TEST_CASE(files, TrainedRun) {
  const std::string file = *this / "f.safetensors";
  check_contains(output_of({"features", run, "--split", "train", "--blocks", "2", "-o", file}),
                 {"f.safetensors: 32 features of 160 images, train"});
  const SafetensorsFile features(file);
  BOOST_TEST((features.info("features").shape == Shape{160, 32}));
  BOOST_TEST((features.info("features").dtype == DType::F32));
  BOOST_TEST((features.info("labels").shape == Shape{160}));
  output_of({"features", run, "--pixels", "-o", file});
  BOOST_TEST((SafetensorsFile(file).info("features").shape == Shape{30, 64}));
  check_contains(output_of({"features", run, "--split", "valid", "-o", file}), {"16 features of 20 images, valid"});
  check_contains(output_of({"features", run, "--split", "validation", "-o", file}), {"20 images, validation"});
  // Data named by --data have no validation images.
  check_refusal({"features", run, "--data", "mnist", "--path", data(), "--split", "valid", "-o", file},
                {"no images of mnist are set aside for validation"});
  check_contains(output_of({"features", run, "--data", "mnist", "--path", data(), "--split", "train", "-o", file}),
                 {"of 180 images, train"});
  // The run's data.limit and data.path do not apply to other data.
  const std::string limited = *this / "limited";
  std::filesystem::copy(run, limited);
  Experiment x = load_experiment(run + "/config.toml");
  x.data.limit = 100;
  write_file(limited + "/config.toml", config_toml(x));
  check_contains(output_of({"features", limited, "--split", "train", "-o", file}), {"of 100 images, train"});
  check_contains(output_of({"features", limited, "--data", "mnist", "--path", data(), "--split", "train", "-o", file}),
                 {"of 180 images, train"});
  const Finished elsewhere = heed_with({"features", run, "--data", "cifar10", "-o", file});
  BOOST_TEST(elsewhere.status == 2);
  BOOST_TEST(elsewhere.err.find(data()) == std::string::npos, elsewhere.err);
  check_refusal({"features", run, "--blocks", "3", "-o", file}, {"features of the last 3 blocks", "1 to 2"});
  check_refusal({"features", run}, {"--output"});
  // The run's files and the weights are not overwritten; any other file is.
  const std::string last = run + "/last.safetensors", copy = *this / "copy";
  std::filesystem::copy(last, copy);
  check_refusal({"features", run, "-o", last}, {last + ": is also a file of RUN; expected another file"});
  check_refusal({"features", "--weights", copy, "--model", run + "/config.toml", "-o", copy},
                {copy + ": is also --weights; expected another file"});
  check_refusal({"features", "--weights", copy + ":student", "--model", run + "/config.toml", "-o", copy},
                {copy + ": is also --weights; expected another file"});
  BOOST_TEST((read_file(copy) == read_file(last)));
}

// Each image of the training file is either a training or a validation image; both parts keep the file's order. The
// last 16 columns are the classifier's inputs; the 16 before them would be its inputs if the model ended after the
// first block. 1e-4 is above the rounding error of floats.
BOOST_FIXTURE_TEST_CASE(each_row_is_of_its_image, TrainedRun) {
  const WorkshopImages all(*this, "train"), test(*this, "t10k");
  BOOST_TEST(features({"--pixels"}).labels == test.labels, boost::test_tools::per_element());
  const Features<float> pixels = features({"--pixels"});
  for (Index i = 0; i < pixels.values.size(); ++i)
    BOOST_TEST(std::abs(pixels.values[i] - test.pixels[i]) < 1e-5F, "element " << i);
  std::set<Index> seen;
  for (const char* const part : {"train", "validation"}) {
    const Features<float> own = features({"--pixels", "--split", part});
    Index before = -1;
    for (Index row = 0; row < own.count(); ++row) {
      Index image = 0;
      const auto equals = [&] {
        const float* const given = all.pixels.data() + image * 64;
        return std::equal(given, given + 64, own.values.data() + row * 64,
                          [](float a, float b) { return std::abs(a - b) < 1e-5F; });
      };
      while (image < 180 && !equals()) ++image;
      BOOST_REQUIRE(image < 180);
      BOOST_TEST(image > before);
      BOOST_TEST(own.labels[static_cast<std::size_t>(row)] == all.labels[static_cast<std::size_t>(image)]);
      BOOST_TEST(seen.insert(image).second);
      before = image;
    }
  }
  BOOST_TEST(seen.size() == 180U);

  RunModel whole(run);
  ModelConfig config = whole.x.model;
  config.depth = 1;
  const VisionTransformer shallow(config, {});
  Parameters<float> parameters(shallow.parameters());
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const View<const float> from =
        std::as_const(whole.parameters)[whole.parameters.list().find(parameters.list()[id].name)];
    std::copy_n(from.data(), from.size(), parameters[id].data());
  }
  Tape<float> tape({.parameters = &parameters});
  const Tensor<float> late = whole.logits(test.pixels.view());
  const float* const early = shallow.logits(tape, {.images = test.pixels.view()}).data();
  const auto weights = std::as_const(whole.parameters)[whole.parameters.list().find("head.weight")];
  const auto bias = std::as_const(whole.parameters)[whole.parameters.list().find("head.bias")];
  const Features<float> both = features({"--blocks", "2"}), last = features({});
  BOOST_REQUIRE((both.values.shape() == Shape{30, 32}));
  BOOST_REQUIRE((last.values.shape() == Shape{30, 16}));
  for (Index image = 0; image < 30; ++image) {
    for (Index i = 0; i < 16; ++i)
      BOOST_TEST(std::abs(both.values[32 * image + 16 + i] - last.values[16 * image + i]) < 1e-6F);
    for (Index c = 0; c < 10; ++c) {
      double first = static_cast<double>(bias[c]), second = first;
      for (Index i = 0; i < 16; ++i) {
        const double weight = static_cast<double>(weights[16 * c + i]);
        first += weight * static_cast<double>(both.values[32 * image + i]);
        second += weight * static_cast<double>(both.values[32 * image + 16 + i]);
      }
      BOOST_TEST(std::abs(first - static_cast<double>(early[10 * image + c])) < 1e-4);
      BOOST_TEST(std::abs(second - static_cast<double>(late[10 * image + c])) < 1e-4);
    }
  }
}

// Feature options have the same effect as in heed features; each part is classified by the 160 training images.
BOOST_FIXTURE_TEST_CASE(neighbours_are_those_of_the_features, TrainedRun) {
  struct Case {
    std::vector<std::string> features, options;
    std::size_t k = 20;
    double temperature = 0.07;
    std::string split = "test";
  };
  std::set<std::string> different;
  for (const Case& c : {Case{{}, {}},
                        {{}, {"--k", "3"}, 3},
                        {{}, {"--k", "160", "--temperature", "2"}, 160, 2},
                        {{"--blocks", "2"}, {"--k", "5"}, 5},
                        {{"--untrained"}, {}},
                        {{"--pixels"}, {"--k", "1"}, 1},
                        {{"--set", "data.mean=[0.9]"}, {}},
                        {{}, {"--split", "validation"}, 20, 0.07, "validation"}}) {
    const auto [accuracy, table] =
        by_neighbours(features(joined_words(c.features, {"--split", "train"})),
                      features(joined_words(c.features, {"--split", c.split})), c.k, c.temperature);
    const std::string printed = output_of(joined_words({"eval", run, "--knn"}, joined_words(c.features, c.options)));
    check_contains(printed, {fmt::format("mnist, {}, {} nearest neighbours among 160 training images: {} images\ntop-1 "
                                         "accuracy {:.2f} %\n",
                                         c.split, c.k, c.split == "test" ? 30 : 20, 100 * accuracy),
                             table});
    different.insert(table);
  }
  BOOST_TEST(different.size() > 4U);
}

// Without --blocks, --linear uses the last four blocks; this model has only two, so both are used.
BOOST_FIXTURE_TEST_CASE(a_linear_classifier_is_that_of_the_features, TrainedRun) {
  struct Case {
    std::vector<std::string> features, options;
    Index width;
    double lr = 0.0005;
    std::string split = "test";
  };
  for (const Case& c : {Case{{"--blocks", "2"}, {}, 32},
                        {{"--blocks", "1"}, {"--blocks", "1"}, 16},
                        {{"--blocks", "1"}, {"--blocks", "1", "--lr", "0.05"}, 16, 0.05},
                        {{"--blocks", "2"}, {"--blocks", "2", "--lr", "0.02"}, 32, 0.02},
                        {{"--pixels"}, {"--pixels"}, 64},
                        {{"--blocks", "2"}, {"--split", "validation"}, 32, 0.0005, "validation"}}) {
    const Features<float> train = features(joined_words(c.features, {"--split", "train"})),
                          test = features(joined_words(c.features, {"--split", c.split}));
    const Index count = c.split == "test" ? 30 : 20;
    BOOST_REQUIRE(train.width() == c.width);
    LinearRule rule;
    rule.lr = c.lr;
    const Tensor<float> logits = linear_logits(train, test.values, 10, rule);
    double loss = 0;
    std::vector<int> answers;
    for (Index i = 0; i < count; ++i) {
      const float* const row = logits.data() + 10 * i;
      answers.push_back(static_cast<int>(std::max_element(row, row + 10) - row));
      loss -= std::log(softmax_of(row, 10)[static_cast<std::size_t>(test.labels[static_cast<std::size_t>(i)])]) /
              static_cast<double>(count);
    }
    check_contains(output_of(joined_words({"eval", run, "--linear"}, c.options)),
                   {fmt::format("mnist, {}, linear classifier of {} features: {} images", c.split, c.width, count),
                    fmt::format("\nloss           {:.4f}\n", loss), confusion_text(test.labels, answers)});
  }
}

// --shots N takes N training images of each class, and no validation images. If every class has exactly N training
// images, only their order is random.
BOOST_FIXTURE_TEST_CASE(shots_are_training_images, TrainedRun) {
  const auto of_class = [](const Features<float>& set) {
    std::vector<Index> counts(10);
    for (const int label : set.labels) ++counts[static_cast<std::size_t>(label)];
    return counts;
  };
  const std::vector<Index> counts = of_class(features({"--split", "train"}));
  const Index fewest = *std::ranges::min_element(counts);
  BOOST_REQUIRE(fewest < 18);
  output_of({"eval", run, "--shots", std::to_string(fewest)});
  check_refusal({"eval", run, "--shots", std::to_string(fewest + 1)},
                {fmt::format("class '{}' has {} training images; --shots {} needs this number per class",
                             std::ranges::find(counts, fewest) - counts.begin(), fewest, fewest + 1)});

  const auto accuracies = [&](const std::vector<std::string>& options) {
    const std::string text = output_of(joined_words({"eval", run, "--shots"}, options));
    std::vector<double> numbers;
    std::istringstream words(text.substr(text.find("accuracy ")));
    for (std::string word; words >> word;)
      if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) numbers.push_back(std::stod(word));
    return numbers;
  };
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--pixels"}, {"--blocks", "2"}}) {
    const std::vector<std::string> all = joined_words(options, {"--set", "data.validation=0"});
    const Features<float> train = features(joined_words(all, {"--split", "train"})), test = features(all);
    BOOST_REQUIRE(train.count() == 180);
    const Tensor<double> scores = ridge_scores(train, test.values, 10, {});
    double right = 0;
    for (Index i = 0; i < 30; ++i) {
      const double* const row = scores.data() + 10 * i;
      right += std::max_element(row, row + 10) - row == test.labels[static_cast<std::size_t>(i)];
    }
    const double accuracy = 100 * right / 30;
    // With one seed, only its accuracy is printed, rounded by at most 0.005.
    for (const double number : accuracies(joined_words({"18", "--seeds", "1"}, all)))
      BOOST_TEST(std::abs(number - accuracy) < 0.006);
  }
  // For four seeds, the mean, the deviation, the number of seeds and each accuracy are printed. Values are rounded by
  // at most 0.005, so the printed deviation and the one computed from printed accuracies differ by less than 0.02.
  const std::vector<double> few = accuracies({"1", "--seeds", "4"}), one = accuracies({"1", "--seeds", "1"});
  BOOST_REQUIRE(few.size() == 7U);
  BOOST_TEST(few[2] == 4);
  BOOST_TEST(few[3] == one[0]);
  const double mean = std::accumulate(few.begin() + 3, few.end(), 0.0) / 4;
  double squares = 0;
  for (std::size_t i = 3; i < 7; ++i) squares += (few[i] - mean) * (few[i] - mean);
  BOOST_TEST(squares > 0);
  BOOST_TEST(std::abs(few[0] - mean) < 0.011);
  BOOST_TEST(std::abs(few[1] - std::sqrt(squares / 3)) < 0.02);
}

BOOST_FIXTURE_TEST_CASE(features_that_are_not_finite_are_not_judged, TrainedRun) {
  const std::string file = *this / "f.safetensors";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"features", run, "-o", file},
                                                                                     {"eval", run, "--knn"},
                                                                                     {"eval", run, "--linear"},
                                                                                     {"eval", run, "--shots", "5"}}) {
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), {"--set", "data.mean=[3e38]"});
    const Finished result = heed_with(arguments);
    BOOST_TEST(result.status == 3, words[1]);
    BOOST_TEST(result.out == "");
    check_contains(result.err, {"the model's outputs are not finite: a feature is"});
  }
  BOOST_TEST(!std::filesystem::exists(file));
  const Finished wild = heed_with({"eval", run, "--linear", "--lr", "1e38"});
  BOOST_TEST(wild.status == 3, wild.out);
  check_contains(wild.err, {"a logit of the linear classifier is"});
}

BOOST_FIXTURE_TEST_CASE(judged_features, TrainedRun) {
  check_contains(
      output_of({"eval", run, "--knn", "--pixels"}),
      {"mnist, test, 20 nearest neighbours among 160 training images: 30 images", "top-1 accuracy 100.00 %", "top-5"});
  BOOST_TEST(output_of({"eval", run, "--knn", "--pixels"}).find("loss") == std::string::npos);
  // Four neighbours rank at most four classes, so no top-5 accuracy is printed.
  for (const auto& [k, found] : {std::pair("4", false), {"5", true}})
    BOOST_TEST((output_of({"eval", run, "--knn", "--pixels", "--k", k}).find("top-5") != std::string::npos) == found,
               k);
  check_contains(output_of({"eval", run, "--linear", "--lr", "0.05"}),
                 {"linear classifier of 32 features: 30 images", "top-1 accuracy", "loss"});
  check_contains(
      output_of({"eval", run, "--shots", "5", "--pixels", "--seeds", "2"}),
      {"mnist, test, 5-shot, 30 images", "top-1 accuracy 100.00 %, deviation 0.00 over 2 seeds: 100.00 100.00"});
  const std::string once = output_of({"eval", run, "--shots", "5", "--pixels", "--seeds", "1"});
  BOOST_TEST(once.ends_with("top-1 accuracy 100.00 %\n"));
  BOOST_TEST(output_of({"eval", run, "--knn"}) != output_of({"eval", run, "--knn", "--untrained"}));
  check_refusal({"eval", run, "--knn", "--untrained", "--weights", run + "/best.safetensors"},
                {"--untrained and --weights"});
  check_refusal({"eval", run, "--knn", "--k", "161"}, {"k = 161", "160 training examples", "1 to 160"});
  check_refusal({"eval", run, "--shots", "19"}, {"class '", "training images; --shots 19"});
  check_refusal({"eval", run, "--knn", "--split", "train"}, {"its own nearest neighbour"});
  check_refusal({"eval", run, "--k", "5"}, {"--k requires --knn"});
  check_refusal({"eval", run, "--shots", "5", "--split", "train"}, {"those that the classifier learns from"});
  check_refusal({"eval", run, "--knn", "--lr", "3"}, {"--lr requires --linear"});
  // An option of one kind of classifier requires this kind, even with its default value.
  check_refusal({"eval", run, "--k", "20"}, {"--k requires --knn"});
  check_refusal({"eval", run, "--temperature", "0.07"}, {"--temperature requires --knn"});
  check_refusal({"eval", run, "--seeds", "3"}, {"--seeds requires --shots"});
  check_refusal({"eval", run, "--linear", "--temperature", "3"}, {"--temperature requires --knn"});
  check_refusal({"eval", run, "--linear", "--seeds", "7"}, {"--seeds requires --shots"});
  check_refusal({"eval", run, "--knn", "--temperature", "0.011"}, {"temperature = 0.011", "20 exp(1 / temperature)"});
  check_refusal({"eval", run, "--pixels"}, {"--knn, --linear or --shots"});
  check_refusal({"eval", run, "--knn", "--shots", "3"}, {"--knn, --linear and --shots", "at most one of them"});
  check_refusal({"eval", run, "--linear", "--set", "data.limit=100"}, {"100 training examples", "128"});
}

BOOST_AUTO_TEST_CASE(probes) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const Tensor<double> train(Shape{4, 2}, {5, 0, 0, 2, -1, 0, 0, 1}), test(Shape{2, 2}, {3, 0, 1, 1});
  std::vector<std::int64_t> labels{1, 0, 2, 2};
  const auto write = [&] {
    SafetensorsWriter writer;
    writer.add("train", train.view());
    writer.add("test", test.view());
    writer.add("train_labels", View<const std::int64_t>(labels.data(), Shape{4}));
    writer.write(in);
  };
  write();
  output_of({"probe", "knn", "--set", "k=3", "--set", "temperature=0.5", in, out});
  const SafetensorsFile knn(out);
  const Tensor<double> scores = knn.read<double>("scores");
  BOOST_TEST((scores.shape() == Shape{2, 3}));
  const double expected[] = {1, std::exp(2), 1}, diagonal = std::exp(2 * std::sqrt(0.5));
  for (Index c = 0; c < 3; ++c) {
    BOOST_TEST(std::abs(scores[c] - expected[c]) < 1e-13);
    BOOST_TEST(std::abs(scores[3 + c] - diagonal) < 1e-13);
  }
  BOOST_TEST(knn.read<std::int64_t>("prediction")[0] == 1);
  output_of({"probe", "ridge", "--set", "l2=1", "--set", "bias=2", in, out});
  BOOST_TEST((SafetensorsFile(out).info("scores").shape == Shape{2, 3}));
  check_refusal({"probe", "knn", "--set", "k=5", in, out}, {"k = 5", "1 to 4"});
  check_refusal({"probe", "knn", "--set", "kk=5", in, out}, {"kk"});
  labels[2] = -1;
  write();
  check_refusal({"probe", "ridge", in, out}, {"'train_labels' has value -1 at element 2; expected 0 to"});
}

BOOST_AUTO_TEST_SUITE_END()
