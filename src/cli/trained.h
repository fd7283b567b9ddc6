// A model as a run left it, for the verbs that use one.
#pragma once

#include "commands.h"

#include "heed/data/loader.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "heed/train/run.h"

#include <filesystem>

namespace heed::cli {

/// The configuration and the best weights of a run. Evaluation takes float whatever it was trained in.
struct TrainedModel {
  /// `weights` empty: best.safetensors of the run, or last.safetensors where no epoch is complete yet.
  TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights)
      : experiment(load(run, sets)), model(experiment.model, experiment.attention), parameters(model.parameters()) {
    const RunPaths paths(run);
    const bool has_best = std::filesystem::exists(paths.best());
    load_weights(SafetensorsFile(!weights.empty() ? weights : has_best ? paths.best() : paths.last()), parameters);
  }

  ImageSize input() const { return {experiment.model.channels, experiment.model.image, experiment.model.image}; }

  Experiment experiment;
  VisionTransformer model;
  Parameters<float> parameters;

 private:
  static Experiment load(const std::string& run, const std::vector<std::string>& sets) {
    require(RunPaths(run).exists(), "{}: holds no run; expected a directory that heed train has filled", run);
    return load_experiment(RunPaths(run).config(), sets);
  }
};

/// Takes the first `most` test images of the run's data, or all if they are fewer, through the model and calls
/// visit(block, layer, x) as VisionTransformer::visit_attention does, for one batch after the other. Returns how many.
Index visit_test_images(TrainedModel& trained, Index most, const VisionTransformer::AttentionVisitor<float>& visit);

/// The image in a file at the model's size and with its channels.
Image model_image(const TrainedModel& trained, const std::string& file);

/// Such images, normalised as the model's training data were: [B, C, H, W].
Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images);

}  // namespace heed::cli
