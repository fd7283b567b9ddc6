#include "trained.h"

#include "heed/base/suggest.h"
#include "heed/data/normalise.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"
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
  const std::unique_ptr<Model> trained = make_model(experiment);
  for (const ParameterSpec& spec : parameters) {
    const ParameterSpec& before = trained->parameters()[trained->parameters().find(spec.name)];
    require(
        spec.name == "pos_embed" || (spec.shape == before.shape && spec.initial == before.initial),
        "{}: model.image = {}, but tensor {} belongs to the tokens of an image of {}; of such tensors only pos_embed "
        "can be interpolated (softmax and aft with variant=conv, for instance, have no others)",
        run, image, in_quotes(spec.name), trained_image);
  }
}

}  // namespace

TrainedModel::TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights)
    : experiment(load(run, sets)), model(make_model(experiment)), parameters(model->parameters()) {
  const Index trained_image = load(run, {}).model.image;
  const bool resized = experiment.model.image != trained_image;
  if (resized) check_any_size(run, experiment, trained_image, model->parameters());
  const RunPaths paths(run);
  const bool has_best = std::filesystem::exists(paths.best());
  load_weights(SafetensorsFile(!weights.empty() ? weights
                               : has_best       ? paths.best()
                                                : paths.last()),
               parameters, {.positions = resized});
  task = make_task<float>(experiment, *model, resized);
}

void add_model_choice(Command command, std::string& weights, std::vector<std::string>& sets, int& threads) {
  command.option("--weights", &weights, "other weights than best.safetensors", {.value = "FILE"});
  add_sets(command, sets, "override a key of the run's configuration; repeatable");
  add_threads(command, threads);
}

Index visit_test_examples(TrainedModel& trained, Index most,
                          const std::function<void(Index layer, const AttentionSite<float>& site)>& visit) {
  const std::unique_ptr<BatchSource<float>> source = trained.task->open(Part::test, false);
  source->start(0);
  Index done = 0;
  while (const TaskBatch<float>* batch = done < most ? source->next() : nullptr) {
    const Index count = std::min(batch->size(), most - done);
    Tape<float> tape({.parameters = &trained.parameters});
    Index layer = 0;
    const AttentionVisitor<float> counted = [&](const AttentionSite<float>& site) { visit(layer++, site); };
    batch->logits(*trained.model, tape, {0, count}, &counted);
    done += count;
  }
  return done;
}

namespace {

/// The size of the images that the model takes.
ImageSize input_of(const Model& model) {
  const Shape images = model.example().images.shape();
  return {images[1], images[2], images[3]};
}

}  // namespace

Image model_image(const TrainedModel& trained, const std::string& file) {
  return convert(load_image(file), input_of(*trained.model));
}

Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images) {
  const ImageSize size = input_of(*trained.model);
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
