// heed eval: evaluation of a trained model.
#include "frozen.h"

#include "heed/analysis/statistics.h"
#include "heed/base/suggest.h"
#include "heed/data/loader.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/evaluate.h"

#include <iostream>

namespace heed::cli {

namespace {

struct EvalArguments : FrozenArguments {
  bool knn = false, linear = false;
  Index shots = 0;                  ///< 0: without --shots
  Index seeds = 0, neighbours = 0;  ///< 0: the default
  double temperature = 0, lr = 0;   ///< 0: the default
};

int eval_model(EvalArguments a) {
  a.whole = a.run.empty() || !a.data.empty() || !a.path.empty();
  a.by_name = true;
  TrainedModel trained(a, all_sets(a));
  require(!trained.experiment.self_supervised(),
          "{}: the model was trained without labels and has no classifier; evaluate its features with --knn, --linear "
          "or --shots",
          a.source());
  require(trained.experiment.model.classifier,
          "{}: the model has no classifier; evaluate its features with --knn, --linear or --shots", a.weights);
  const Part part = part_of(a.split);
  // Checks the directory here, because the task's error would name a key instead of the option.
  if (const DataConfig& data = trained.experiment.data; !holds_sequences(data))
    dataset_directory(data.name == "scenes" ? data.source : data.name, data.path, split_of(part), "--path");
  const std::unique_ptr<BatchSource<float>> source = trained.task->open(part, false);
  require(source != nullptr, "{}: no {} of {} are set aside for validation; use --split test or data.validation=N",
          a.source(), holds_sequences(trained.experiment.data) ? "examples" : "images", trained.experiment.data.name);
  const RecordedData& recorded = trained.experiment.data.recorded;
  if (part == Part::test) warn_of_copies(a, source->files());
  if (!a.whole)
    warn_of_changes(a, trained.experiment.data, part == Part::test ? recorded.test : recorded.names(), source->files());
  Evaluation result = evaluate<float>(*trained.model, trained.parameters, *source, trained.task->counts(),
                                      microbatch_of(trained.experiment.train), {.ranks = &started_processes()});
  trained.task->conclude(result);
  std::cout << trained.experiment.data.name << ", " << a.split << ", " << trained.task->report(result);
  return ok;
}

/// Frozen features of a data set, and the part of it that is evaluated.
struct Judged {
  const EvalArguments& arguments;
  FrozenFeatures frozen{arguments};
  Part part = part_of(arguments.split);
  std::vector<std::string> names = frozen.set(part).class_names();
  Index classes = static_cast<Index>(names.size());

  /// Returns the features of the evaluated images, as FrozenFeatures::of() does.
  Features<float> features(Index blocks) {
    if (part == Part::test) warn_of_copies(arguments, frozen.set(part).files());
    return frozen.of(part, blocks);
  }

  /// Prints the evaluation of a classifier that ranks up to `ranked` classes.
  void print(const std::string& what, const Evaluation& result, Index ranked = 5) const {
    std::cout << fmt::format("{}, {}, {}: {}", frozen.data().name, arguments.split, what,
                             classification_report(result, "images", classes, names, ranked));
  }
};

int eval_neighbours(const EvalArguments& a) {
  require(part_of(a.split) != Part::train,
          "eval: --knn with --split train: each image would be its own nearest neighbour; expected test or validation");
  Judged judged{a};
  Features<float> teachers = judged.frozen.of(Part::train, 1), test = judged.features(1);
  NeighbourRule rule;
  if (a.neighbours > 0) rule.k = a.neighbours;
  if (a.temperature > 0) rule.temperature = a.temperature;
  const std::string what = fmt::format("{} nearest neighbours among {} training images", rule.k, teachers.count());
  const Neighbours<float> neighbours(std::move(teachers), judged.classes, rule);
  const Tensor<double> scores = neighbours.scores(std::move(test.values));
  judged.print(what, judge_scores(scores, test.labels), rule.k);
  return ok;
}

int eval_linear(const EvalArguments& a) {
  constexpr Index blocks = 4;
  Judged judged{a};
  const Features<float> teachers = judged.frozen.of(Part::train, blocks), test = judged.features(blocks);
  LinearRule rule;
  if (a.lr > 0) rule.lr = a.lr;
  const Tensor<float> logits = linear_logits(teachers, test.values, judged.classes, rule);
  Evaluation result{{}, std::vector<double>(static_cast<std::size_t>(classification_counts(judged.classes)))};
  result.score = judge_logits(logits.view(), test.labels.data(), result.counts);
  judged.print(fmt::format("linear classifier of {} features", teachers.width()), result);
  return ok;
}

/// Returns `count` images of each class, the first ones of a permutation determined by the seed.
std::vector<Index> draw_shots(const Dataset& set, const std::vector<Index>& images, Index count, Index seed) {
  std::vector<std::vector<Index>> of_classes(set.class_names().size());
  for (const Index image : images) of_classes[static_cast<std::size_t>(set.label(image))].push_back(image);
  std::vector<Index> drawn;
  for (std::size_t c = 0; c < of_classes.size(); ++c) {
    std::vector<Index>& own = of_classes[c];
    require(static_cast<Index>(own.size()) >= count,
            "{}: class {} has {} training images; --shots {} needs this number per class", set.name(),
            in_quotes(set.class_names()[c]), own.size(), count);
    shuffle(own, RandomStream(static_cast<std::uint64_t>(seed)).derive("shots").derive(c));
    drawn.insert(drawn.end(), own.begin(), own.begin() + count);
  }
  return drawn;
}

int eval_shots(const EvalArguments& a) {
  require(part_of(a.split) != Part::train,
          "eval: --shots with --split train: the evaluated images would include those that the classifier learns from; "
          "expected test or validation");
  Judged judged{a};
  const Features<float> test = judged.features(1);
  const std::vector<Index> images = judged.frozen.images(Part::train);
  const Index seeds = a.seeds > 0 ? a.seeds : 3;
  std::vector<double> accuracies;
  for (Index seed = 1; seed <= seeds; ++seed) {
    const std::vector<Index> shots = draw_shots(judged.frozen.set(Part::train), images, a.shots, seed);
    const Features<float> teachers = judged.frozen.of(Part::train, shots, 1);
    const Tensor<double> scores = ridge_scores(teachers, test.values, judged.classes, {});
    accuracies.push_back(judge_scores(scores, test.labels).score.accuracy());
  }
  const Sample sample = sample_of(accuracies);
  std::cout << fmt::format("{}, {}, {}-shot, {} images\ntop-1 accuracy {:.2f} %", judged.frozen.data().name, a.split,
                           a.shots, test.count(), 100 * sample.mean);
  if (const std::optional<double> deviation = sample.deviation()) {
    std::cout << fmt::format(", deviation {:.2f} over {} seeds:", 100 * *deviation, seeds);
    for (const double accuracy : accuracies) std::cout << fmt::format(" {:.2f}", 100 * accuracy);
  }
  std::cout << "\n";
  return ok;
}

int eval_command(const EvalArguments& a) {
  use_threads(a.threads);
  require(a.knn + a.linear + (a.shots > 0) <= 1,
          "eval: --knn, --linear and --shots exclude each other; expected at most one of them");
  const auto is_for = [](bool given, const char* option, bool used, const char* of) {
    require(!given || used, "eval: {} requires {}", option, of);
  };
  is_for(a.neighbours > 0, "--k", a.knn, "--knn");
  is_for(a.temperature > 0, "--temperature", a.knn, "--knn");
  is_for(a.lr > 0, "--lr", a.linear, "--linear");
  is_for(a.seeds > 0, "--seeds", a.shots > 0, "--shots");
  require(!a.untrained || a.weights.empty(), "eval: --untrained and --weights {} exclude each other", a.weights);
  const int processes = started_processes().count();
  require(processes == 1 || !(a.knn || a.linear || a.shots > 0),
          "eval: --knn, --linear and --shots run in one process; {} were started", processes);
  if (a.knn) return eval_neighbours(a);
  if (a.linear) return eval_linear(a);
  if (a.shots > 0) return eval_shots(a);
  require(!a.pixels && a.blocks == 0 && !a.untrained,
          "eval: --blocks, --pixels and --untrained choose features; expected --knn, --linear or --shots as well");
  return eval_model(a);
}

}  // namespace

void add_eval(Command program) {
  static EvalArguments a;
  Command command = program.command("eval", "Evaluate a trained model: top-1, top-5, confusion matrix");
  add_frozen_options(command, a, "images to evaluate");
  command.option("--knn", &a.knn, "classify features by their nearest training images");
  command.option("--linear", &a.linear, "classify features with a trained linear classifier");
  command.option("--shots", &a.shots, "classify features by ridge regression on N training images per class",
                 {.value = "N", .range = {{1, 1e6}}});
  command.option("--seeds", &a.seeds, "--shots: number of random draws of the images; default: 3",
                 {.value = "N", .range = {{1, 1000}}});
  command.option("--k", &a.neighbours, "--knn: neighbours; default: 20", {.value = "N", .range = {{1, 1e9}}});
  command.option("--temperature", &a.temperature, "--knn: temperature of the neighbours' weights; default: 0.07",
                 {.positive = true});
  command.option("--lr", &a.lr, "--linear: initial learning rate; default: 0.0005", {.positive = true});
  command.footer(
      "If --path is a directory of other images without test/, all of them are evaluated or, if there is train/, all "
      "of train/. --knn, --linear and --shots divide them as for training and evaluate every fifth image of each "
      "class.\n\n"
      "--set model.image=N evaluates at a different image size: images are resampled, and a position embedding is "
      "interpolated bicubically. A model with other tensors that depend on the number of tokens is rejected.\n\n"
      "--knn      weights exp(cosine / temperature) of the k training images with the most similar features; no top-5 "
      "accuracy if k is below 5\n"
      "--linear   SGD, 100 epochs of batches of 128, on features of the last 4 blocks, or of all if fewer; result of "
      "the last epoch\n"
      "--shots N  standardised features, penalty 1024, bias column 100; mean and deviation over the seeds");
  command.action([] { return eval_command(a); });
}

}  // namespace heed::cli
