// A model as a run left it, for the verbs that use one.
#pragma once

#include "commands.h"

#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/nn/vit.h"

namespace heed::cli {

/// The configuration and the best weights of a run. Evaluation takes float whatever it was trained in.
struct TrainedModel {
  /// `weights` empty: best.safetensors of the run, or last.safetensors where no epoch is complete yet. If `sets` give
  /// model.image another value than the run has, the position embedding is interpolated; throws Error where another
  /// tensor belongs to the tokens of the run's size.
  TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights);

  ImageSize input() const { return {experiment.model.channels, experiment.model.image, experiment.model.image}; }

  Experiment experiment;
  Index trained_image;  ///< model.image of the run
  VisionTransformer model;
  Parameters<float> parameters;
};

/// The options of every verb that takes a run directory's model.
void add_model_choice(Command command, std::string& weights, std::vector<std::string>& sets, int& threads);

/// How images of `set` become the model's input: as the run says, and resampled where another model.image was asked
/// for. (Another number of channels is not taken to be meant.)
DataConfig conversion(const TrainedModel& trained, const Dataset& set);

/// Takes the first `most` test images of the run's data, or all if they are fewer, through the model and calls
/// visit(block, layer, x) as VisionTransformer::visit_attention does, for one batch after the other. Returns how many.
Index visit_test_images(TrainedModel& trained, Index most, const VisionTransformer::AttentionVisitor<float>& visit);

/// The image in a file at the model's size and with its channels.
Image model_image(const TrainedModel& trained, const std::string& file);

/// Such images, normalised as the model's training data were: [B, C, H, W].
Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images);

}  // namespace heed::cli
