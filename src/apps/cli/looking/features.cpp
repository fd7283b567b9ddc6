// heed features: features of a data set from a trained model.
#include "frozen.h"

#include "heed/base/suggest.h"
#include "heed/io/safetensors.h"

#include <iostream>

namespace heed::cli {

namespace {

struct FeatureArguments : FrozenArguments {
  std::string out;
};

int features_command(const FeatureArguments& a) {
  use_threads(a.threads);
  require_own_file({"-o", a.out}, a.files());
  FrozenFeatures frozen(a);
  require_writable({"-o", a.out});
  const Features<float> features = frozen.of(part_of(a.split), 1);
  const std::vector<std::int64_t> labels(features.labels.begin(), features.labels.end());
  SafetensorsWriter file;
  file.add("features", features.values.view());
  file.add("labels", View<const std::int64_t>(labels.data(), Shape{features.count()}));
  file.write(a.out);
  std::cout << fmt::format("{}: {} of {}, {}\n", a.out, counted(features.width(), "feature"),
                           counted(features.count(), "image"), a.split);
  return ok;
}

}  // namespace

void add_features(Command program) {
  static FeatureArguments a;
  Command command = program.command("features", "Write a model's features: the inputs of its classifier");
  add_frozen_options(command, a, "images whose features are written");
  command.option("-o,--output", &a.out, "safetensors file to write", {.value = "FILE", .required = true});
  command.footer(
      "FILE holds features [count, D] (F32) and labels [count] (I64), in the order of the data set, without "
      "augmentation. Features are the classifier's input: the class token or the mean of all tokens after the final "
      "norm. A directory without test/ is divided as for training: every fifth image of a class is a test image. With "
      "--blocks N, an image has N D features: those of the last N blocks, in order.");
  command.action([] { return features_command(a); });
}

}  // namespace heed::cli
