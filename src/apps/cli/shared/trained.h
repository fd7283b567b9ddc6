// Loading of a trained model for the commands that use one.
#pragma once

#include "commands.h"
#include "output_file.h"

#include "heed/config/model_of_tensors.h"
#include "heed/config/experiment.h"
#include "heed/data/images/image.h"
#include "heed/nn/model.h"
#include "heed/train/tasks/task.h"

namespace heed::cli {

/// A command's selection of a trained model.
struct ModelChoice {
  std::string run{}, weights{};
  std::string model{};   ///< instead of a run: a model file, or "auto" for the model inferred from the weights' tensors
  std::string preset{};  ///< preset of the image preprocessing
  std::string names{};   ///< file of class names
  bool whole = false;    ///< a directory without test/ is entirely for testing, unless it holds the run's data
  bool by_name = false;  ///< classes of other data sets are matched by name to those of the run
  std::vector<std::string> sets{};
  int threads = 0;

  /// Returns the run or, without one, the weights, for error messages.
  const std::string& source() const { return run.empty() ? weights : run; }

  /// Returns the files of the run, the weights, the model and the names, none of which the command may overwrite.
  std::vector<CommandFile> files() const;
};

/// Returns the model inferred from a weights file for --model auto, and warns about undetermined keys. `sets` may give
/// model.heads.
ModelOfTensors automatic_model(const std::string& weights, const std::vector<std::string>& sets);

/// Configuration and weights of a trained model. Evaluation uses float, whatever number type was used in training.
struct TrainedModel {
  /// Without `choice.weights`, loads best.safetensors of the run or, if it is missing, last.safetensors. If `sets`
  /// change model.image, the position embedding is interpolated; throws Error if another tensor depends on the image
  /// size.
  TrainedModel(const ModelChoice& choice, const std::vector<std::string>& sets);

  std::string run;  ///< empty for weights without a run
  Experiment experiment;
  std::unique_ptr<Model> model;
  Parameters<float> parameters;
  bool resized;                       ///< model.image differs from the run's
  std::unique_ptr<Task<float>> task;  ///< resamples images if model.image differs from the run's
};

/// Returns, for example, "data.name = 'text' has sequences of tokens" for data without one label per image; otherwise
/// empty.
std::string without_labelled_images(const DataConfig& data);

/// Warns if any of the recorded files `names` of the run's data has changed, or if files among `read` were added.
void warn_of_changes(const ModelChoice& choice, const DataConfig& data, const std::vector<std::string>& names,
                     const std::vector<std::string>& read = {});

/// Warns if these files with test examples are copies of training or validation files of the run.
void warn_of_copies(const ModelChoice& choice, const std::vector<std::string>& files);

/// Moves the first positional argument to `images` if RUN is omitted: with --model, `choice.run` is an image.
void move_run_to(ModelChoice& choice, std::vector<std::string>& images);

/// Adds the options of every command that uses a trained model, except RUN.
void add_run_choice(Command command, ModelChoice& choice);

/// Adds the options of add_run_choice(), --names, and --model, with which --weights replaces RUN.
void add_model_choice(Command command, ModelChoice& choice);

/// Runs the first `most` test examples of the run's data, or all if there are fewer, through the model. For each batch,
/// calls visit(layer, site) for each attention layer; layers are counted from 0. Returns the number of examples.
Index visit_test_examples(TrainedModel& trained, Index most,
                          const std::function<void(Index layer, const AttentionSite<float>& site)>& visit);

/// Returns the model's input size.
ImageSize model_input(const TrainedModel& trained);

/// Returns images of the model's input size, normalised like the training data: [B, C, H, W].
Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images);

}  // namespace heed::cli
