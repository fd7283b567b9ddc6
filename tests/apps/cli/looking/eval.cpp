// Figures of a classifier, as heed train and heed eval print them, recomputed from its weights and image files.
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "heed/train/inference.h"
#include "heed/train/runs/history.h"
#include "run_model.h"
#include "support/cli.h"

#include <array>
#include <cmath>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// 37 test images, in classes of different sizes.
struct Evaluated : Workshop {
  Experiment x = experiment();
  std::string run_directory = *this / "run";

  Evaluated() : Workshop(132, 37) { x.optim.lr = 3e-3, x.train.epochs = 4, x.train.ema = 0.5; }

  std::vector<int> labels;
  /// Reads the labels of the test images into `labels`; returns the best weights' logits, computed from the bytes of
  /// the image file.
  Tensor<float> judge() {
    const std::string images = read_file(data() + "/t10k-images-idx3-ubyte");
    const std::string bytes = read_file(data() + "/t10k-labels-idx1-ubyte");
    for (std::size_t i = 8; i < bytes.size(); ++i) labels.push_back(bytes[i]);
    Tensor<float> pixels(Shape{37, 1, 8, 8}), logits(Shape{37, 10});
    for (Index i = 0; i < pixels.size(); ++i)
      pixels[i] = (static_cast<float>(static_cast<unsigned char>(images[static_cast<std::size_t>(16 + i)])) / 255.0F -
                   static_cast<float>(x.data.mean[0])) /
                  static_cast<float>(x.data.std[0]);
    const VisionTransformer model(x.model, x.attention);
    Parameters<float> parameters(model.parameters());
    load_weights(SafetensorsFile(run_directory + "/best.safetensors"), parameters);
    Inference<float>(model, parameters, 5).run({.images = std::as_const(pixels).view()}, logits.data());
    return logits;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_eval, Evaluated)

BOOST_AUTO_TEST_CASE(numbers_are_those_of_the_weights) {
  const std::string trained = output_of({"train", write_experiment(*this, x), "--run", run_directory});
  const Tensor<float> logits = judge();
  std::array<std::array<int, 10>, 10> table{};
  std::array<int, 10> of_class{};
  int right = 0, among_five = 0;
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float* const row = logits.data() + 10 * static_cast<Index>(i);
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto answer = static_cast<std::size_t>(std::max_element(row, row + 10) - row);
    ++table[label][answer], ++of_class[label];
    right += answer == label;
    among_five += std::count_if(row, row + 10, [&](float other) { return other > row[label]; }) < 5;
    double mass = 0;
    for (int c = 0; c < 10; ++c) mass += std::exp(static_cast<double>(row[c]));
    loss += (std::log(mass) - static_cast<double>(row[label])) / 37;
  }
  BOOST_TEST((right > 5 && right < 37));  // so that the table has both right and wrong entries
  std::string expected =
      fmt::format("mnist, test, 37 images\ntop-1 accuracy {:.2f} %\ntop-5 accuracy {:.2f} %\nloss           {:.4f}\n",
                  100 * right / 37.0, 100 * among_five / 37.0, loss);
  expected += "\nconfusion: images of a row's class classified as a column's\n     ";
  for (int c = 0; c < 10; ++c) expected += fmt::format(" {:>5}", c);
  expected += "  accuracy\n";
  for (std::size_t r = 0; r < 10; ++r) {
    expected += fmt::format("{:>5}", r);
    for (const int count : table[r]) expected += fmt::format(" {:>5}", count);
    expected += fmt::format("  {:>6.2f} %\n", 100.0 * table[r][r] / of_class[r]);
  }
  BOOST_TEST(output_of({"eval", run_directory}) == expected);
  check_contains(trained,
                 {fmt::format("test accuracy {:.2f} % ({} of 37), loss {:.4f}\n", 100 * right / 37.0, right, loss)});
  // Epoch lines show the rows of metrics.csv.
  for (const EpochRecord& epoch : read_history(RunPaths(run_directory)).epochs)
    check_contains(
        trained, {fmt::format("epoch {}/4  loss {:.4f}  accuracy {:6.2f} %  validation loss {:.4f}  accuracy {:6.2f} %",
                              epoch.epoch, *epoch.loss, 100 * *epoch.accuracy, *epoch.validation_loss,
                              100 * *epoch.validation_accuracy)});
}

// Labels and pixels of each part are taken from heed features, which features.cpp compares with the files.
BOOST_AUTO_TEST_CASE(every_part_is_judged_by_the_chosen_weights) {
  output_of({"train", write_experiment(*this, x), "--run", run_directory});
  const std::string file = *this / "pixels.safetensors";
  std::set<double> losses;
  for (const char* const part : {"train", "validation", "test"})
    for (const char* const weights : {"best", "last"}) {
      output_of({"features", run_directory, "--pixels", "--split", part, "-o", file});
      const SafetensorsFile written(file);
      Tensor<float> pixels = written.read<float>("features");
      const Tensor<std::int64_t> own = written.read<std::int64_t>("labels");
      const Index count = own.size();
      const std::string path = fmt::format("{}/{}.safetensors", run_directory, weights);
      const Tensor<float> logits =
          RunModel(run_directory, path).logits(View<const float>(pixels.data(), Shape{count, 1, 8, 8}));
      std::vector<int> answers;
      double loss = 0, among_five = 0, right = 0;
      for (Index i = 0; i < count; ++i) {
        const float* const row = logits.data() + 10 * i;
        answers.push_back(static_cast<int>(std::max_element(row, row + 10) - row));
        loss -= std::log(softmax_of(row, 10)[static_cast<std::size_t>(own[i])]) / static_cast<double>(count);
        among_five += std::count_if(row, row + 10, [&](float other) { return other > row[own[i]]; }) < 5;
        right += answers.back() == own[i];
      }
      BOOST_TEST(losses.insert(loss).second);
      const std::string head = fmt::format(
          "mnist, {}, {} images\ntop-1 accuracy {:.2f} %\ntop-5 accuracy {:.2f} %\nloss           {:.4f}\n", part,
          count, 100 * right / static_cast<double>(count), 100 * among_five / static_cast<double>(count), loss);
      const Finished finished = heed_with({"eval", run_directory, "--split", part, "--weights", path});
      BOOST_TEST(finished.out == head + confusion_text({own.begin(), own.end()}, answers));
    }
}

// One line for each image: its classes, most likely first, with softmax probabilities.
BOOST_AUTO_TEST_CASE(predictions_are_probabilities_in_order) {
  output_of({"train", write_experiment(*this, x), "--run", run_directory});
  RunModel model(run_directory);
  for (const auto& [split, part] : {std::pair("test", "t10k"), {"train", "train"}}) {
    const WorkshopImages images(*this, part);
    const Tensor<float> logits = model.logits(images.pixels.view());
    for (const std::size_t top : {1U, 3U, 10U, 12U}) {
      std::string expected;
      for (const Index image : {Index{36}, Index{0}, Index{11}}) {
        const std::vector<double> shares = softmax_of(logits.data() + 10 * image, 10);
        std::vector<std::pair<double, int>> order;
        for (int c = 0; c < 10; ++c) order.emplace_back(-shares[static_cast<std::size_t>(c)], c);
        std::ranges::sort(order);
        expected += fmt::format("mnist {} {} (label {})", split, image, images.labels[static_cast<std::size_t>(image)]);
        for (std::size_t i = 0; i < std::min<std::size_t>(top, 10); ++i)
          expected += fmt::format("{} {} {:.1f} %", i == 0 ? ":" : ",", order[i].second, -100 * order[i].first);
        expected += "\n";
      }
      BOOST_TEST(output_of({"predict", run_directory, "--index", "36,0,11", "--split", split, "--top",
                            std::to_string(top)}) == expected);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
