// A model as a run left it, for the commands that use one.
#pragma once

#include "commands.h"

#include "heed/config/experiment.h"
#include "heed/data/images/image.h"
#include "heed/nn/model.h"
#include "heed/train/tasks/task.h"

namespace heed::cli {

/// A run's model, as a command's options choose it.
struct ModelChoice {
  std::string run, weights;
  std::vector<std::string> sets;
  int threads = 0;
};

/// The configuration and the best weights of a run. Evaluation takes float whatever it was trained in.
struct TrainedModel {
  /// `weights` empty: best.safetensors of the run, or last.safetensors where no epoch is complete yet. If `sets` give
  /// model.image another value than the run has, the position embedding is interpolated; throws Error where another
  /// tensor belongs to the tokens of the run's size.
  TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights);

  std::string run;
  Experiment experiment;
  std::unique_ptr<Model> model;
  Parameters<float> parameters;
  bool resized;                       ///< was another model.image asked for than the run's?
  std::unique_ptr<Task<float>> task;  ///< images are resampled where another model.image was asked for
};

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
