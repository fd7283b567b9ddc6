#include "trained.h"

#include "presets.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/model_of_tensors.h"
#include "heed/config/toml_text.h"
#include "heed/data/images/normalise.h"
#include "heed/io/file.h"
#include "heed/io/upstream_weights.h"
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
  require(RunPaths(run).exists(), "{}: contains no run; expected a directory written by heed train", run);
  check_plugins(RunPaths(run));
  Experiment x = load_recorded(RunPaths(run).config(), sets);
  if (const std::optional<DataRecord> record = read_data_record(RunPaths(run)))
    use_record(x, *record);
  else if (x.model.task != "lm")
    warn(
        fmt::format("{}: data.json is missing, as in runs of heed 0.2.0; class names and the images' background are "
                    "read from the current data",
                    run));
  return x;
}

/// Returns the names in a file, one per line.
std::vector<std::string> names_in(const std::string& file) {
  std::vector<std::string> names = split_lines(read_text_file(file, 1 << 24));
  require(!names.empty(), "--names {}: the file is empty; expected one name per line", file);
  return names;
}

}  // namespace

ModelOfTensors automatic_model(const std::string& weights, const std::vector<std::string>& sets) {
  ModelOfTensors found = model_of_tensors(open_weights(weights).file, heads_given(sets));
  for (const std::string& assumed : found.assumed) warn(fmt::format("--model auto: {}", assumed));
  return found;
}

namespace {

/// Warns that images are normalised with MNIST's mean and deviation because `source` has no data.mean.
void warn_of_normalisation(const std::string& source, const char* remedy) {
  warn(fmt::format("{}: gives no data.mean, so images are normalised with MNIST's mean and deviation; {}", source,
                   remedy));
}

/// Returns the experiment inferred from the weights' tensors. For images in colour, the default preset is ImageNet's.
Experiment load_tensors(const std::string& weights, const std::string& preset, const std::vector<std::string>& given) {
  const ModelOfTensors found = automatic_model(weights, given);
  const bool grey = found.model.channels == 1;
  std::vector<std::string> all = sets_of_tensors(found.model);
  all.push_back(fmt::format("model.classes={}", found.model.classes));
  all.push_back("data.name=folder");
  for (const std::string& set : preset_sets(preset.empty() && !grey ? "imagenet" : preset)) all.push_back(set);
  all.insert(all.end(), given.begin(), given.end());
  const auto is_mean = [](const std::string& set) { return set.starts_with("data.mean="); };
  if (grey && std::ranges::none_of(given, is_mean))
    warn_of_normalisation("--model auto", "--set data.mean=[MEAN] and data.std=[DEVIATION] change that");
  return load_sets(all);
}

/// Returns the experiment of the run, the model file or the weights.
Experiment chosen_experiment(const ModelChoice& choice, const std::vector<std::string>& given) {
  const bool automatic = choice.model == "auto";
  require(!choice.run.empty() || !choice.model.empty(), "RUN is required, or --weights FILE --model auto");
  require(choice.model.empty() || choice.run.empty(), "--model {} and RUN {} exclude each other", choice.model,
          choice.run);
  require(choice.model.empty() || !choice.weights.empty(), "--model {}: expected --weights FILE as well", choice.model);
  std::vector<std::string> sets;
  if (!automatic) sets = preset_sets(choice.preset);
  sets.insert(sets.end(), given.begin(), given.end());
  Experiment x = choice.model.empty() ? load(choice.run, sets)
                 : automatic          ? load_tensors(choice.weights, choice.preset, given)
                                      : load_experiment(choice.model, sets);
  if (!choice.model.empty() && choice.preset.empty() && x.model.channels == 3 && x.data.mean == DataConfig{}.mean)
    warn_of_normalisation(choice.model, "--preset selects published models' values");
  if (!choice.model.empty() && x.model.family == "vit")
    x.model.classifier = open_weights(choice.weights).file.contains("head.weight");
  x.data.recorded.elsewhere =
      std::ranges::any_of(given, [](const std::string& set) { return set.starts_with("data.path="); });
  // A run of heed 0.2.0 has no data.json, so other files cannot be distinguished from the run's own.
  x.data.recorded.whole =
      choice.whole && (choice.run.empty() || !x.data.recorded.test.empty() ||
                       (x.data.recorded.files.empty() && std::filesystem::exists(RunPaths(choice.run).data())));
  if (choice.by_name && !choice.run.empty() && x.data.recorded.classes.empty())
    if (const std::optional<DataRecord> record = read_data_record(RunPaths(choice.run)))
      x.data.recorded.classes = record->recorded.classes;
  if (choice.names.empty()) return x;
  x.data.recorded.classes = names_in(choice.names);
  const auto count = static_cast<Index>(x.data.recorded.classes.size());
  require(count == x.model.classes, "--names {}: has {}; the model has {} classes", choice.names,
          counted(count, "name"), x.model.classes);
  return x;
}

/// Creates the model whose weights a run stores.
std::unique_ptr<Model> make_judged(const Experiment& x) {
  return x.self_supervised() ? make_backbone(x) : make_model(x);
}

/// Returns true if `model` is the run's model for images of another size. Throws Error if the size of a tensor other
/// than the position embedding depends on the run's image size.
bool is_resized(const std::string& run, const Model& model) {
  const std::unique_ptr<Model> trained = make_judged(load(run, {}));
  const Shape before = trained->example().images.shape(), now = model.example().images.shape();
  if (now.rank() != 4 || before.rank() != 4 || (now[2] == before[2] && now[3] == before[3])) return false;
  const std::string tied = tensor_of_one_size(model.parameters(), trained->parameters());
  require(
      tied.empty(),
      "{}: model.image = {}, but the size of tensor {} depends on the image, {}; only pos_embed can be interpolated",
      run, toml_text(Sides{now[2], now[3]}), in_quotes(tied), toml_text(Sides{before[2], before[3]}));
  return true;
}

}  // namespace

std::vector<CommandFile> ModelChoice::files() const {
  std::vector<CommandFile> all{{"--weights", weights_file(weights)}, {"--model", model}, {"--names", names}};
  if (!run.empty())
    for (const std::string& file : RunPaths(run).files()) all.push_back({"a file of RUN", file});
  return all;
}

TrainedModel::TrainedModel(const ModelChoice& choice, const std::vector<std::string>& sets)
    : run(choice.run),
      experiment(chosen_experiment(choice, sets)),
      model(make_judged(experiment)),
      parameters(model->parameters()),
      resized(choice.model.empty() && is_resized(run, *model)) {
  const RunPaths paths(run);
  const std::string& weights = choice.weights;
  if (choice.model.empty())
    if (const std::string changed = changed_plugin(paths, experiment); !changed.empty()) warn(changed);
  const OpenedWeights opened = open_weights(weights.empty() ? paths.weights() : weights);
  if (!opened.prefix.empty()) warn(fmt::format("{}: prefix {} removed", weights, in_quotes(opened.prefix)));
  load_weights(opened.file, parameters,
               {.positions = resized || !choice.model.empty(),
                .from = resized ? position_rows(paths) : PositionRows{},
                .antialias = experiment.train.init_positions == "antialias",
                .cure = fitting_keys(opened.file, experiment.model)});
  if (weights.empty() && std::filesystem::exists(paths.metrics())) {
    const RunHistory history = read_history(paths);
    if (!history.finished)
      warn(fmt::format("{}: training is not finished: {} of {} epochs", run, history.epochs.size(),
                       experiment.train.epochs));
    else if (!std::filesystem::exists(paths.best()))
      warn(fmt::format("{}: the file is missing; using the last epoch's weights", paths.best()));
  }
  task = make_task<float>(experiment, *model, resized);
}

std::string without_labelled_images(const DataConfig& data) {
  if (!holds_sequences(data) && data.name != "scenes") return "";
  return fmt::format("data.name = {} {}", in_quotes(data.name),
                     data.name == "scenes" ? "has a label per patch" : "has sequences of tokens");
}

void warn_of_changes(const ModelChoice& choice, const DataConfig& data, const std::vector<std::string>& names,
                     const std::vector<std::string>& read) {
  const std::string changes = changed_files(data, names, read);
  if (!changes.empty())
    warn(fmt::format("{}: data files have changed since the run was started: {}", choice.source(), changes));
}

void warn_of_copies(const ModelChoice& choice, const std::vector<std::string>& files) {
  if (choice.run.empty()) return;
  const std::optional<DataRecord> record = read_data_record(RunPaths(choice.run));
  const std::string copies = record ? copied_test_files(*record, files) : "";
  if (!copies.empty()) warn(fmt::format("{}: {}", choice.source(), copies));
}

void move_run_to(ModelChoice& choice, std::vector<std::string>& images) {
  if (choice.model.empty() || choice.run.empty()) return;
  images.insert(images.begin(), choice.run);
  choice.run.clear();
}

void add_run_choice(Command command, ModelChoice& choice) {
  command.option("--weights", &choice.weights,
                 "weights, default RUN/best.safetensors; FILE:PREFIX selects one of several networks",
                 {.value = "FILE"});
  add_preset(command, choice.preset);
  add_sets(command, choice.sets, "override a key of the run's configuration; repeatable", config_keys());
  add_threads(command, choice.threads);
}

void add_model_choice(Command command, ModelChoice& choice) {
  add_run_choice(command, choice);
  command.option("--model", &choice.model,
                 "instead of RUN: the model of --weights, as a TOML file, or auto to derive it from the tensors",
                 {.value = "FILE|auto", .needs = "--weights"});
  command.option("--names", &choice.names, "class names, one per line", {.value = "FILE"});
}

Index visit_test_examples(TrainedModel& trained, Index most,
                          const std::function<void(Index layer, const AttentionSite<float>& site)>& visit) {
  Index done = 0;
  // Runs a batch, or its first examples if fewer are still needed, through the model: run(tape, count, visitor).
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
