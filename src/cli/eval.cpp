// heed eval.
#include "trained.h"

#include "heed/config/toml_text.h"
#include "heed/data/dataset.h"
#include "heed/train/evaluate.h"

#include <iostream>

namespace heed::cli {

namespace {

struct EvalArguments {
  std::string run, weights, data, path, split = "test";
  std::vector<std::string> sets;
  int threads = 0;
};

int eval_command(const EvalArguments& a) {
  use_threads(a.threads);
  std::vector<std::string> sets = a.sets;
  if (!a.data.empty()) {
    sets.push_back("data.name=" + toml_text(a.data));
    sets.push_back("data.path=''");  // the run's path belongs to another data set
  }
  if (!a.path.empty()) sets.push_back("data.path=" + toml_text(a.path));
  TrainedModel trained(a.run, sets, a.weights);
  const Part part = a.split == "test" ? Part::test : a.split == "train" ? Part::train : Part::validation;
  // The task would call by its key what is an option here.
  if (const DataConfig& data = trained.experiment.data; !holds_sequences(data))
    dataset_directory(data.name, data.path, part == Part::test ? Split::test : Split::train, "--path");
  const std::unique_ptr<BatchSource<float>> source = trained.task->open(part, false);
  require(source != nullptr, "{}: the run set no images aside for validation", a.run);
  const Evaluation result = evaluate<float>(*trained.model, trained.parameters, *source, trained.task->counts(),
                                            trained.experiment.train.piece, {.ranks = &started_processes()});
  std::cout << trained.experiment.data.name << ", " << a.split << ", " << trained.task->report(result);
  return ok;
}

}  // namespace

void add_eval(Command program) {
  static EvalArguments a;
  Command command = program.command("eval", "Evaluate a trained model: top-1, top-5, confusion matrix");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--data", &a.data, "another data set than the model was trained on",
                 {.offered = config_values("data.name")});
  command.option("--path", &a.path, "where the data lie", {.value = "DIR"});
  command.option("--split", &a.split, "the images that count; default: test",
                 {.one_of = {"test", "validation", "train"}});
  add_model_choice(command, a.weights, a.sets, a.threads);
  command.footer(
      "--set model.image=N evaluates at another image size: images are resampled, and a position embedding is\n"
      "interpolated bicubically. A model with other tensors that belong to the tokens of its own size is refused.");
  command.action([] { return eval_command(a); });
}

}  // namespace heed::cli
