// heed features, heed eval --knn, --linear, --shots, and the probes of their computations.
#include "support/cli.h"

#include "heed/io/safetensors.h"

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
};

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
  // Another data set has no validation images.
  check_refusal({"features", run, "--data", "mnist", "--path", data(), "--split", "valid", "-o", file},
                {"no images of mnist are set aside for validation"});
  check_contains(output_of({"features", run, "--data", "mnist", "--path", data(), "--split", "train", "-o", file}),
                 {"of 180 images, train"});
  check_refusal({"features", run, "--blocks", "3", "-o", file}, {"features of the last 3 blocks", "1 to 2"});
  check_refusal({"features", run}, {"--output"});
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
  check_refusal({"eval", run, "--knn", "--lr", "3"}, {"--lr requires --linear"});
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
