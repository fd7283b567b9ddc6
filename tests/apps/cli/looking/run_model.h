// The model of a run directory and images of a Workshop, independent of the program's commands.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "support/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace heed::test {

/// A Workshop's images with 8 x 8 pixels, "train" or "t10k".
struct WorkshopImages {
  std::vector<int> labels;
  Tensor<float> pixels;  ///< [count, 1, 8, 8], (byte / 255 - mean) / std

  WorkshopImages(const Workshop& workshop, const std::string& part, const DataConfig& data = {}) {
    const std::string images = read_file(workshop.data() + "/" + part + "-images-idx3-ubyte");
    const std::string bytes = read_file(workshop.data() + "/" + part + "-labels-idx1-ubyte");
    for (std::size_t i = 8; i < bytes.size(); ++i) labels.push_back(bytes[i]);
    pixels = Tensor<float>(Shape{static_cast<Index>(labels.size()), 1, 8, 8});
    for (Index i = 0; i < pixels.size(); ++i)
      pixels[i] = (static_cast<float>(static_cast<unsigned char>(images[static_cast<std::size_t>(16 + i)])) / 255.0F -
                   static_cast<float>(data.mean[0])) /
                  static_cast<float>(data.std[0]);
  }
};

/// The Vision Transformer of a run, with its best weights or those of a given file.
struct RunModel {
  Experiment x;
  VisionTransformer model;
  Parameters<float> parameters;

  explicit RunModel(const std::string& run, const std::string& weights = "")
      : x(load_experiment(run + "/config.toml")), model(x.model, x.attention), parameters(model.parameters()) {
    load_weights(SafetensorsFile(weights.empty() ? run + "/best.safetensors" : weights), parameters);
  }

  Tensor<float> logits(View<const float> images, const AttentionVisitor<float>& visit = {}) {
    Tape<float> tape({.parameters = &parameters});
    const Var<float> computed = model.logits(tape, {.images = images}, visit ? &visit : nullptr);
    Tensor<float> all(computed.value().shape());
    std::copy_n(computed.data(), all.size(), all.data());
    return all;
  }

  /// Returns each block's attention maps of the images, [images, heads, N, M].
  std::vector<Tensor<float>> maps(View<const float> images) {
    std::vector<Tensor<float>> all;
    logits(images, [&](const AttentionSite<float>& site) { all.push_back(attention_maps(site)); });
    return all;
  }
};

/// Returns softmax(logits), in double.
inline std::vector<double> softmax_of(const float* logits, std::size_t classes) {
  std::vector<double> shares(logits, logits + classes);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share);
  for (double& share : shares) share /= sum;
  return shares;
}

/// Returns the confusion table that heed eval prints after its figures, for the classes 0 to 9.
inline std::string confusion_text(const std::vector<int>& labels, const std::vector<int>& answers) {
  std::string text = "\nconfusion: images of a row's class classified as a column's\n     ";
  for (int c = 0; c < 10; ++c) text += fmt::format(" {:>5}", c);
  text += "  accuracy\n";
  for (int r = 0; r < 10; ++r) {
    text += fmt::format("{:>5}", r);
    int right = 0, all = 0;
    for (int c = 0; c < 10; ++c) {
      int count = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) count += labels[i] == r && answers[i] == c;
      text += fmt::format(" {:>5}", count);
      all += count, right += c == r ? count : 0;
    }
    text += all > 0 ? fmt::format("  {:>6.2f} %\n", 100.0 * right / all) : "       -\n";
  }
  return text;
}

}  // namespace heed::test
