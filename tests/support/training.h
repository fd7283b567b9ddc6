// A small task and runs of it.
#pragma once

#include "heed/io/file.h"
#include "heed/base/random.h"
#include "heed/base/with_threads.h"
#include "heed/train/trainer.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace heed::test {

/// Writes MNIST's four files with grey images of side x side pixels: each of the ten classes has a distinct pattern of
/// bright and dark pixels, with noise.
inline void write_patterns(const std::string& directory, Index train_images, Index test_images, Index side) {
  const auto big_endian = [](std::string& bytes, Index value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  };
  std::filesystem::create_directories(directory);
  for (const bool train : {true, false}) {
    const Index count = train ? train_images : test_images;
    std::string images("\0\0\x08\x03", 4), labels("\0\0\x08\x01", 4);
    big_endian(images, count);
    big_endian(images, side);
    big_endian(images, side);
    big_endian(labels, count);
    for (Index i = 0; i < count; ++i) {
      const Index label = i % 10;
      const RandomStream pattern = RandomStream(77).derive(static_cast<std::uint64_t>(label));
      const RandomStream noise = RandomStream(train ? 78 : 79).derive(static_cast<std::uint64_t>(i));
      for (Index p = 0; p < side * side; ++p)
        images += static_cast<char>(150 * pattern.below(p, 2) + noise.below(p, 100));
      labels += static_cast<char>(label);
    }
    const std::string start = directory + (train ? "/train-" : "/t10k-");
    write_file(start + "images-idx3-ubyte", images);
    write_file(start + "labels-idx1-ubyte", labels);
  }
}

/// A directory with the files of write_patterns() in data/, for runs on them.
class Workshop {
 public:
  explicit Workshop(Index train_images = 132, Index test_images = 30) {
    write_patterns(data(), train_images, test_images, 8);
  }

  std::string data() const { return directory_ / "data"; }
  std::string operator/(const std::string& name) const { return directory_ / name; }

  /// Returns an experiment with a transformer of 5 tokens; 132 images give 7 batches of 16, and 20 images for
  /// validation.
  Experiment experiment() const {
    Experiment x;
    x.model.image = 8;
    x.model.channels = 1;
    x.model.patch = 4;
    x.model.dim = 16;
    x.model.depth = 2;
    x.model.heads = 2;
    x.model.hidden = 24;
    x.model.classes = 10;
    x.data.path = data();
    x.data.validation = 20;
    x.data.augment = {};
    x.train.epochs = 3;
    x.train.batch = 16;
    x.train.microbatch = 4;
    return x;
  }

 private:
  TemporaryDirectory directory_;
};

/// Returns an experiment with two large views of 8 x 8 and two small ones of 4 x 4 of each grey image; 112 images give
/// 7 batches.
inline Experiment dino_experiment(const Workshop& workshop) {
  Experiment x = workshop.experiment();
  x.model.patch = 2;
  x.train.method = "dino";
  x.optim.clip = 3;
  x.optim.weight_decay_end = 0.4;
  x.dino.out_dim = 24;
  x.dino.hidden = 20;
  x.dino.bottleneck = 8;
  x.dino.local_crops = 2;
  x.dino.local_size = 4;
  x.dino.local_scale = {0.1, 0.4};
  x.dino.ema = 0.9;
  return x;
}

/// Returns dino_experiment() with a family that has batch norm, so that the views of a step depend on each other.
inline Experiment dino_with_batch_norm(const Workshop& workshop) {
  Experiment x = dino_experiment(workshop);
  x.model.family = "xcit";
  x.model.cls_depth = 1;
  return x;
}

/// Enables all features that draw random numbers or have state.
inline void ask_for_everything(Experiment& x) {
  x.data.augment = {"crop", "flip", "randaugment", "erase", "mixup", "cutmix"};
  x.data.crop_padding = 1;
  x.train.dropout = 0.1;
  x.train.drop_path = 0.2;
  x.train.label_smoothing = 0.1;
  x.train.ema = 0.9;
}

/// Observer that calls a function after every step.
class AfterStep : public TrainObserver {
 public:
  explicit AfterStep(std::function<void(const StepReport&)> f) : f_(std::move(f)) {}
  void step(const StepReport& report) override { f_(report); }

 private:
  std::function<void(const StepReport&)> f_;
};

inline Outcome run(const Experiment& x, const std::string& directory, bool resume = false,
                   const std::string& init = "") {
  TrainObserver silent;
  TrainOptions options;
  options.run = directory;
  options.resume = resume;
  options.init = init;
  return train(x, options, silent);
}

/// Trains until `steps` updates in total, then interrupts like Ctrl-C.
inline Outcome run_until(Index steps, const Experiment& x, const std::string& directory, bool resume = false) {
  std::atomic<bool> interrupt{false};
  AfterStep observer([&](const StepReport& report) { interrupt = report.step >= steps; });
  TrainOptions options;
  options.run = directory;
  options.resume = resume;
  options.interrupt = &interrupt;
  return train(x, options, observer);
}

/// Returns the rows of metrics.csv without the last column, the images per second.
inline std::vector<std::string> metrics_of(const std::string& directory) {
  std::vector<std::string> rows;
  std::istringstream text(read_file(directory + "/metrics.csv"));
  for (std::string row; std::getline(text, row);) rows.push_back(row.substr(0, row.rfind(',')));
  return rows;
}

/// Checks that two runs have the same weights files, gradients.csv and, except for the images per second, metrics.csv.
inline void check_same_run(const std::string& a, const std::string& b) {
  for (const char* name : {"/last.safetensors", "/best.safetensors"})
    BOOST_TEST((read_file(a + name) == read_file(b + name)), b << name << " differs from " << a << name);
  BOOST_TEST(metrics_of(a) == metrics_of(b), boost::test_tools::per_element());
  BOOST_TEST(read_file(a + "/gradients.csv") == read_file(b + "/gradients.csv"));
}

}  // namespace heed::test
