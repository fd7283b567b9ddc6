// heed probe knn, ridge: classifiers of given features.
#include "probe.h"
#include "probe_help.h"

#include "heed/analysis/classifiers.h"
#include "heed/attention/options.h"

namespace heed::cli {

namespace {

/// Labels, with which class scores of the largest one make a table; as many as nobody has.
constexpr std::int64_t most_classes = 1'000'000;

/// What is taught, and what is asked.
template <class T>
struct Question {
  Features<T> teachers;
  Tensor<T> test;

  explicit Question(GivenTensors& in) : teachers{in.take<T>("train", 2), {}}, test(in.take<T>("test", 2)) {
    for (const std::int64_t label : in.take<std::int64_t>("train_labels", Shape{teachers.count()})) {
      require(label >= 0 && label < most_classes, "{}: tensor 'train_labels' holds {} at element {}; expected 0 to {}",
              in.path(), label, teachers.labels.size(), most_classes - 1);
      teachers.labels.push_back(static_cast<int>(label));
    }
    require(test.shape()[1] == teachers.width(), "{}: tensor 'test' has shape {}; expected [m, {}] as 'train' has {}",
            in.path(), test.shape(), teachers.width(), teachers.values.shape());
    in.finish();
  }
};

template <class T>
int write_scores(const ProbeArguments& a, const Tensor<double>& scores) {
  Tensor<T> written(scores.shape());
  std::transform(scores.begin(), scores.end(), written.begin(), [](double x) { return static_cast<T>(x); });
  const std::vector<int> answers = answers_of(scores);
  const std::vector<std::int64_t> prediction(answers.begin(), answers.end());
  SafetensorsWriter file;
  file.add("scores", std::as_const(written).view());
  file.add("prediction", View<const std::int64_t>(prediction.data(), Shape{scores.shape()[0]}));
  file.write(a.out);
  return ok;
}

template <class T>
int probe_knn(const ProbeArguments& a, GivenTensors& in) {
  const OptionValues values = parse_options(a.sets);
  NeighbourRule rule;
  OptionReader reader("knn", values);
  reader("k", rule.k, "neighbours");
  reader("temperature", rule.temperature, "of their weights");
  reader.finish();
  Question<T> question(in);
  const Index classes = classes_of(question.teachers.labels);
  const Neighbours<T> neighbours(std::move(question.teachers), classes, rule);
  return write_scores<T>(a, neighbours.scores(std::move(question.test)));
}

template <class T>
int probe_ridge(const ProbeArguments& a, GivenTensors& in) {
  const OptionValues values = parse_options(a.sets);
  RidgeRule rule;
  OptionReader reader("ridge", values);
  reader("l2", rule.l2, "penalty of the weights");
  reader("bias", rule.bias, "the column beside the features");
  reader.finish();
  const Question<T> question(in);
  return write_scores<T>(a, ridge_scores(question.teachers, question.test, classes_of(question.teachers.labels), rule));
}

}  // namespace

void add_probe_features(Command probe, ProbeArguments& a) {
  Command knn = probe.command("knn", "class scores by nearest neighbours");
  add_sets(knn, a.sets, "k=20, temperature=0.07; repeatable");
  add_files(knn, a);
  knn.footer(probe_knn_contract);
  knn.action([&a] { return by_dtype(a, probe_knn<float>, probe_knn<double>); });

  Command ridge = probe.command("ridge", "class scores by ridge regression");
  add_sets(ridge, a.sets, "l2=1024, bias=100; repeatable");
  add_files(ridge, a);
  ridge.footer(probe_ridge_contract);
  ridge.action([&a] { return by_dtype(a, probe_ridge<float>, probe_ridge<double>); });
}

}  // namespace heed::cli
