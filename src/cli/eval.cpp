// heed eval and heed predict.
#include "trained.h"

#include "heed/train/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <numeric>

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
    sets.push_back("data.name=" + a.data);
    sets.push_back("data.path=''");  // the run's path belongs to another data set
  }
  if (!a.path.empty()) sets.push_back("data.path=" + a.path);
  TrainedModel trained(a.run, sets, a.weights);
  const Part part = a.split == "test" ? Part::test : a.split == "train" ? Part::train : Part::validation;
  const std::unique_ptr<BatchSource<float>> source = trained.task->open(part, false);
  require(source != nullptr, "{}: the run set no images aside for validation", a.run);
  const Evaluation result =
      evaluate(*trained.model, trained.parameters, *source, trained.task->counts(), trained.experiment.train.piece);
  std::cout << trained.experiment.data.name << ", " << a.split << ", " << trained.task->report(result);
  return ok;
}

struct PredictArguments {
  std::string run, weights;
  std::vector<std::string> images, sets;
  int top = 3, threads = 0;
};

int predict_command(const PredictArguments& a) {
  use_threads(a.threads);
  TrainedModel trained(a.run, a.sets, a.weights);
  std::vector<Image> files;
  for (const std::string& file : a.images) files.push_back(model_image(trained, file));
  const Tensor<float> images = normalised(trained, files);
  const std::vector<std::string> names = trained.task->class_names();
  require(!names.empty(), "{}: its model does not tell classes apart", a.run);
  const Index classes = static_cast<Index>(names.size());
  Tensor<float> logits(Shape{images.shape()[0], classes});
  const Inference<float> inference(*trained.model, trained.parameters, trained.experiment.train.piece);
  inference.run({.images = images.view()}, logits.data());
  for (std::size_t i = 0; i < a.images.size(); ++i) {
    float* const row = logits.data() + static_cast<Index>(i) * classes;
    const float maximum = *std::max_element(row, row + classes);
    double sum = 0;
    for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c] - maximum));
    std::vector<Index> order(static_cast<std::size_t>(classes));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index x, Index y) { return row[x] > row[y]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(a.top)));
    std::cout << a.images[i] << ":";
    for (std::size_t k = 0; k < order.size(); ++k)
      std::cout << fmt::format("{} {} {:.1f} %", k == 0 ? "" : ",", names[static_cast<std::size_t>(order[k])],
                               100 * std::exp(static_cast<double>(row[order[k]] - maximum)) / sum);
    std::cout << "\n";
  }
  return ok;
}

}  // namespace

void add_eval(Command program) {
  static EvalArguments a;
  Command command = program.command("eval", "Evaluate a trained model: top-1, top-5, confusion matrix");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--data", &a.data, "another data set than the model was trained on");
  command.option("--path", &a.path, "where the data lie", {.value = "DIR"});
  command.option("--split", &a.split, "test, validation or train", {.one_of = {"test", "validation", "train"}});
  add_model_choice(command, a.weights, a.sets, a.threads);
  command.footer(
      "--set model.image=N evaluates at another image size: images are resampled, and a position embedding is\n"
      "interpolated bicubically. A model with other tensors that belong to the tokens of its own size is refused.");
  command.action([] { return eval_command(a); });
}

void add_predict(Command program) {
  static PredictArguments a;
  Command command = program.command("predict", "Classify image files with a trained model");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("IMAGE", &a.images, "PNG or JPEG files", {.required = true});
  command.option("--top", &a.top, "how many classes to show", {.range = {{1, 1'000'000}}});
  add_model_choice(command, a.weights, a.sets, a.threads);
  command.action([] { return predict_command(a); });
}

}  // namespace heed::cli
