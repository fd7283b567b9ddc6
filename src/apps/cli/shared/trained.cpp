#include "trained.h"

#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/data/images/normalise.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"
#include "heed/train/features.h"
#include "heed/train/runs/data_record.h"
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"

#include <algorithm>
#include <filesystem>

namespace heed::cli {

namespace {

Experiment load(const std::string& run, const std::vector<std::string>& sets) {
  require(RunPaths(run).exists(), "{}: holds no run; expected a directory that heed train has filled", run);
  check_plugins(RunPaths(run));
  Experiment x = load_recorded(RunPaths(run).config(), sets);
  if (const std::optional<DataRecord> record = read_data_record(RunPaths(run)))
    use_record(x, *record);
  else if (x.model.task != "lm")
    warn(
        fmt::format("{}: has no data.json, as runs of heed 0.2.0; the names of the classes and the images' background "
                    "are those of the data as they are now",
                    run));
  return x;
}

/// The model whose weights a run keeps.
std::unique_ptr<Model> make_judged(const Experiment& x) {
  return x.self_supervised() ? make_backbone(x) : make_model(x);
}

/// Returns true if `model` is the run's model for images of another size. Throws Error if a tensor of it, positions
/// apart, belongs to the size that the run has.
bool is_resized(const std::string& run, const Model& model) {
  const std::unique_ptr<Model> trained = make_judged(load(run, {}));
  const Shape before = trained->example().images.shape(), now = model.example().images.shape();
  if (now.rank() != 4 || before.rank() != 4 || (now[2] == before[2] && now[3] == before[3])) return false;
  const std::string tied = tensor_of_one_size(model.parameters(), trained->parameters());
  require(tied.empty(),
          "{}: model.image = {}, but tensor {} belongs to the tokens of an image of {}; of such tensors only pos_embed "
          "can be interpolated",
          run, now[2], in_quotes(tied), before[2]);
  return true;
}

}  // namespace

TrainedModel::TrainedModel(const std::string& run, const std::vector<std::string>& sets, const std::string& weights)
    : run(run),
      experiment(load(run, sets)),
      model(make_judged(experiment)),
      parameters(model->parameters()),
      resized(is_resized(run, *model)) {
  const RunPaths paths(run);
  if (const std::string changed = changed_plugin(paths, experiment); !changed.empty()) warn(changed);
  load_weights(SafetensorsFile(weights.empty() ? paths.weights() : weights), parameters, {.positions = resized});
  if (weights.empty() && std::filesystem::exists(paths.metrics())) {
    const RunHistory history = read_history(paths);
    if (!history.finished)
      warn(fmt::format("{}: its training is not finished: {} of {} epochs", run, history.epochs.size(),
                       experiment.train.epochs));
    else if (!std::filesystem::exists(paths.best()))
      warn(fmt::format("{}: is missing; the last epoch's weights were taken", paths.best()));
  }
  task = make_task<float>(experiment, *model, resized);
}

void add_model_choice(Command command, ModelChoice& choice) {
  command.option("--weights", &choice.weights, "other weights than best.safetensors", {.value = "FILE"});
  add_sets(command, choice.sets, "override a key of the run's configuration; repeatable", config_keys());
  add_threads(command, choice.threads);
}

Index visit_test_examples(TrainedModel& trained, Index most,
                          const std::function<void(Index layer, const AttentionSite<float>& site)>& visit) {
  Index done = 0;
  // Takes as many examples of a batch as are still wanted through the model: run(tape, count, visitor).
  const auto take = [&](Index size, const auto& run) {
    const Index count = std::min(size, most - done);
    Tape<float> tape({.parameters = &trained.parameters});
    Index layer = 0;
    const AttentionVisitor<float> counted = [&](const AttentionSite<float>& site) { visit(layer++, site); };
    run(tape, count, &counted);
    done += count;
  };
  if (const Experiment& x = trained.experiment; x.self_supervised()) {
    const std::unique_ptr<Dataset> set = open_dataset(x.data, Split::test);
    const auto loader =
        plain_images<float>({set.get(), all_images(set->size()), x.data, model_input(trained)}, x.train.batch);
    loader->start(0);
    while (const Batch<float>* batch = done < most ? loader->next() : nullptr)
      take(batch->size, [&](Tape<float>& tape, Index count, const AttentionVisitor<float>* visitor) {
        trained.model->logits(tape, ModelInput<float>{.images = batch->images.view().part(0, count)}, visitor);
      });
    return done;
  }
  const std::unique_ptr<BatchSource<float>> source = trained.task->open(Part::test, false);
  source->start(0);
  while (const TaskBatch<float>* batch = done < most ? source->next() : nullptr)
    take(batch->size(), [&](Tape<float>& tape, Index count, const AttentionVisitor<float>* visitor) {
      batch->logits(*trained.model, tape, {0, count}, visitor);
    });
  return done;
}

ImageSize model_input(const TrainedModel& trained) {
  const Shape images = trained.model->image_shape();
  return {images[0], images[1], images[2]};
}

Tensor<float> normalised(const TrainedModel& trained, const std::vector<Image>& images) {
  const ImageSize size = model_input(trained);
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
