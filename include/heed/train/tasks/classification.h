// Classification of images.
#pragma once

#include "heed/config/experiment.h"
#include "heed/data/loader.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Examples with target distributions and labels, all owned by the caller.
template <class T>
class ClassificationBatch : public TaskBatch<T> {
 public:
  /// Constructs a batch: `targets` [B, classes], rows that sum to one; `labels` [B]. The loss is the cross entropy with
  /// the targets after label smoothing.
  ClassificationBatch(const ModelInput<T>& examples, View<const T> targets, const int* labels, double smoothing = 0)
      : examples_(examples), targets_(targets), labels_(labels), smoothing_(smoothing) {}

  Index size() const override { return examples_.count(); }
  Index terms() const override { return size(); }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, examples_.part(microbatch.first, microbatch.count), visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override;
  Index correct(View<const T> logits, ExampleRange microbatch) const override;
  Score judge(View<const T> logits, ExampleRange microbatch, std::span<double> counts) const override;

 private:
  ModelInput<T> examples_;
  View<const T> targets_;
  const int* labels_;
  double smoothing_;
};

/// Indices in Evaluation::counts of a classifier: the number of examples whose label has one of the five largest
/// logits, and the number of examples of class `of` classified as `predicted`.
inline constexpr std::size_t top5_count = 0;
inline std::size_t confusion_count(Index classes, Index of, Index predicted) {
  return static_cast<std::size_t>(1 + of * classes + predicted);
}
inline Index classification_counts(Index classes) { return 1 + classes * classes; }

/// Returns the fraction of examples in the most frequent class: the accuracy of always predicting it.
double commonest_share(const Evaluation& evaluation, Index classes);

/// Returns softmax(logits) of one example.
std::vector<double> probabilities(const float* logits, Index classes);

/// Evaluates logits [rows, classes] and updates `counts` at the above indices.
template <class T>
Score judge_logits(View<const T> logits, const int* labels, std::span<double> counts);

/// Returns one-hot rows of the labels.
template <class T>
Tensor<T> one_hot(const std::vector<int>& labels, Index classes);

/// Returns "0", "1", ..., for classes without names.
std::vector<std::string> numbered(Index classes);

/// Returns an evaluation as lines of text: accuracies, the loss, if any, and, if names are given, a confusion table (up
/// to twenty classes) or the hardest classes (more than twenty). `examples` is the plural noun for an example. The
/// top-5 accuracy is omitted for up to five classes, and if `ranked`, the number of classes that a classifier can rank,
/// is below 5.
std::string classification_report(const Evaluation& evaluation, const char* examples, Index classes,
                                  const std::vector<std::string>& names, Index ranked = 5);

/// Classification of images. With `any_size`, images of other sizes are resized to the model's.
template <class T>
class Classification : public Task<T> {
 public:
  Classification(const Experiment& experiment, const Model& model, bool any_size);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  Index counts() const override { return classification_counts(classes_); }
  std::vector<std::string> class_names() override;
  DataFacts data_facts() override { return sets_.facts(); }
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

 private:
  const Dataset& dataset(Part part);

  DataConfig data_;
  TrainConfig train_;
  ImageSize input_;
  Index classes_;
  bool any_size_;
  ImageSets sets_;
  std::vector<std::string> names_;  ///< class names, once a set is open
};

}  // namespace heed
