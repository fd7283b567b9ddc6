#include "trained.h"

#include "heed/data/loader.h"
#include "heed/data/normalise.h"
#include "heed/io/weights.h"
#include "heed/base/suggest.h"
#include "heed/train/run.h"

#include <filesystem>

namespace heed::cli {

namespace {

Experiment load(const std::string& run, const std::vector<std::string>& sets) {
  require(RunPaths(run).exists(), "{}: holds no run; expected a directory that heed train has filled", run);
  return load_experiment(RunPaths(run).config(), sets);
}

/// Throws Error if a tensor, pos_embed apart, is another at another image size.
void check_any_size(const std::string& run, Experiment experiment, Index trained_image,
                    const ParameterList& parameters) {
  const Index image = std::exchange(experiment.model.image, trained_image);
  const VisionTransformer trained(experiment.model, experiment.attention);
  for (const ParameterSpec& spec : parameters) {
    const ParameterSpec& before = trained.parameters()[trained.parameters().find(spec.name)];
    require(
        spec.name == "pos_embed" || (spec.shape == before.shape && spec.initial == before.initial),
        "{}: model.image = {}, but tensor {} belongs to the tokens of an image of {}; of such tensors only pos_embed "
        "can be interpolated (softmax and aft with variant=conv, for instance, have no others)",
        run, image, in_quotes(spec.name), trained_image);
  }
}

}  // namespace

TrainedModel::TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights)
    : experiment(load(run, sets)),
      trained_image(load(run, {}).model.image),
      model(experiment.model, experiment.attention),
      parameters(model.parameters()) {
  const bool resized = experiment.model.image != trained_image;
  if (resized) check_any_size(run, experiment, trained_image, model.parameters());
  const RunPaths paths(run);
  const bool has_best = std::filesystem::exists(paths.best());
  load_weights(SafetensorsFile(!weights.empty() ? weights
                               : has_best       ? paths.best()
                                                : paths.last()),
               parameters, {.positions = resized});
}

void add_model_choice(Command command, std::string& weights, std::vector<std::string>& sets, int& threads) {
  command.option("--weights", &weights, "other weights than best.safetensors", {.value = "FILE"});
  add_sets(command, sets, "override a key of the run's configuration; repeatable");
  add_threads(command, threads);
}

DataConfig conversion(const TrainedModel& trained, const Dataset& set) {
  DataConfig data = trained.experiment.data;
  const ModelConfig& model = trained.experiment.model;
  if (model.image != trained.trained_image) data.resize |= set.image_size().channels == model.channels;
  return data;
}

Index visit_test_images(TrainedModel& trained, Index most, const VisionTransformer::AttentionVisitor<float>& visit) {
  const std::unique_ptr<Dataset> set =
      open_dataset(trained.experiment.data.name, trained.experiment.data.path, Split::test);
  const DataConfig data = conversion(trained, *set);
  const Index count = std::min(most, set->size());
  Loader<float> loader(*set, all_images(count), data, trained.input(), trained.experiment.train.batch, 0, false);
  loader.start(0);
  while (const Batch<float>* batch = loader.next()) {
    const Shape& s = batch->images.shape();
    Tape<float> tape({.parameters = &trained.parameters});
    trained.model.visit_attention<float>(tape.constant({batch->images.data(), Shape{batch->size, s[1], s[2], s[3]}}),
                                         visit);
  }
  return count;
}

Image model_image(const TrainedModel& trained, const std::string& file) {
  return convert(load_image(file), trained.input());
}

Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images) {
  const ImageSize size = trained.input();
  const Normaliser<float> normalise(trained.experiment.data, size.channels);
  Tensor<float> batch(Shape{static_cast<Index>(images.size()), size.channels, size.height, size.width});
  float* to = batch.data();
  for (const Image& image : images) {
    normalise(image, to);
    to += size.elements();
  }
  return batch;
}

}  // namespace heed::cli
