// A model as a run left it, for the commands that use one.
#pragma once

#include "commands.h"

#include "heed/config/model_of_tensors.h"
#include "heed/config/experiment.h"
#include "heed/data/images/image.h"
#include "heed/nn/model.h"
#include "heed/train/tasks/task.h"

namespace heed::cli {

/// A run's model, as a command's options choose it.
struct ModelChoice {
  std::string run{}, weights{};
  std::string model{};   ///< in place of a run: a model file, or "auto" for the model of the weights' tensors
  std::string preset{};  ///< of the images
  std::string names{};   ///< file of the classes' names
  std::vector<std::string> sets{};
  int threads = 0;
};

/// Returns the model of a weights file's tensors for --model auto, and warns of what they leave open. `sets` may give
/// model.heads.
ModelOfTensors automatic_model(const std::string& weights, const std::vector<std::string>& sets);

/// The configuration and the best weights of a run. Evaluation takes float whatever it was trained in.
struct TrainedModel {
  /// Without `choice.weights`: best.safetensors of the run, or last.safetensors where no epoch is complete yet. If
  /// `sets` give model.image another value than the run or the weights have, the position embedding is interpolated;
  /// throws Error where another tensor belongs to the tokens of the run's size.
  TrainedModel(const ModelChoice& choice, const std::vector<std::string>& sets);

  std::string run;  ///< empty for weights without a run
  Experiment experiment;
  std::unique_ptr<Model> model;
  Parameters<float> parameters;
  bool resized;                       ///< was another model.image asked for than the run's?
  std::unique_ptr<Task<float>> task;  ///< images are resampled where another model.image was asked for
};

/// Takes the first image of a command for what it is where RUN is left out: with --model, `choice.run` is an image.
void move_run_to(ModelChoice& choice, std::vector<std::string>& images);

/// Adds the options of every command that takes a run directory's model, but for RUN.
void add_model_choice(Command command, ModelChoice& choice);

/// Takes the first `most` test examples of the run's data, or all if there are fewer, through the model and calls
/// visit(layer, site) with each attention layer, counted from 0, for one batch after the other. Returns the number of
/// examples.
Index visit_test_examples(TrainedModel& trained, Index most,
                          const std::function<void(Index layer, const AttentionSite<float>& site)>& visit);

/// The size of the images that the model takes.
ImageSize model_input(const TrainedModel& trained);

/// Images of that size, normalised as the model's training data were: [B, C, H, W].
Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images);

}  // namespace heed::cli
