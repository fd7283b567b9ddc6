// heed probe knn, ridge: classifiers on given features.
#include "probe.h"

#include "heed/analysis/classifiers.h"

namespace heed::cli {

namespace {

/// Maximum number of classes, which bounds the table of scores.
constexpr std::int64_t most_classes = 1'000'000;

/// Labelled training features and the features to classify.
template <class T>
struct Question {
  Features<T> teachers;
  Tensor<T> test;

  explicit Question(GivenTensors& in) : teachers{in.take<T>("train", 2), {}}, test(in.take<T>("test", 2)) {
    for (const std::int64_t label : in.take<std::int64_t>("train_labels", Shape{teachers.count()})) {
      require(label >= 0 && label < most_classes,
              "{}: tensor 'train_labels' has value {} at element {}; expected 0 to {}", in.path(), label,
              teachers.labels.size(), most_classes - 1);
      teachers.labels.push_back(static_cast<int>(label));
    }
    require(test.shape()[1] == teachers.width(),
            "{}: tensor 'test' has shape {}; expected [m, {}], since 'train' has {}", in.path(), test.shape(),
            teachers.width(), teachers.values.shape());
    in.finish();
  }
};

template <class T>
void add_scores(const Tensor<double>& scores, ProbeOutput<T>& results) {
  Tensor<T> written(scores.shape());
  std::ranges::transform(scores, written.begin(), [](double x) { return static_cast<T>(x); });
  results.add("scores", std::as_const(written).view());
  const std::vector<int> answers = answers_of(scores);
  results.add_integers("prediction", {answers.begin(), answers.end()});
}

template <class T>
void probe_knn(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  NeighbourRule rule;
  read_sets(a, "knn", [&](OptionReader& reader) {
    reader("k", rule.k, "neighbours");
    reader("temperature", rule.temperature, "temperature of the neighbours' weights");
  });
  Question<T> question(in);
  const Index classes = classes_of(question.teachers.labels);
  const Neighbours<T> neighbours(std::move(question.teachers), classes, rule);
  add_scores(neighbours.scores(std::move(question.test)), results);
}

template <class T>
void probe_ridge(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  RidgeRule rule;
  read_sets(a, "ridge", [&](OptionReader& reader) {
    reader("l2", rule.l2, "penalty of the weights");
    reader("bias", rule.bias, "value of the added column");
  });
  const Question<T> question(in);
  add_scores(ridge_scores(question.teachers, question.test, classes_of(question.teachers.labels), rule), results);
}

}  // namespace

const Probe knn_probe{
    .name = "knn",
    .summary = "class scores by nearest neighbours",
    .sets = "k=20, temperature=0.07; repeatable",
    .contract =
        "IN   train [n,D], train_labels [n] (I64), test [m,D]\n"
        "OUT  scores [m,C], prediction [m] (I64): the first largest score; C is the largest label plus one\n"
        "The score of a class is the sum of exp(cosine / temperature) over its rows among the k nearest training rows.",
    .run = {probe_knn<float>, probe_knn<double>},
};

const Probe ridge_probe{
    .name = "ridge",
    .summary = "class scores by ridge regression",
    .sets = "l2=1024, bias=100; repeatable",
    .contract =
        "IN   train [n,D], train_labels [n] (I64), test [m,D]\n"
        "OUT  scores [m,C], prediction [m] (I64): the first largest score; C is the largest label plus one\n"
        "Features x become (x - mean) / (deviation + 1e-5), both over the training rows, and a column of bias is "
        "added; W = (X^T X + l2 I)^-1 X^T Y with targets 1 for the class and -1 otherwise, in double; scores = x W.",
    .run = {probe_ridge<float>, probe_ridge<double>},
};

}  // namespace heed::cli
