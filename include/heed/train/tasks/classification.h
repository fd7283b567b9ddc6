// The task of telling images apart into classes.
#pragma once

#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Examples with distributions over classes to learn, and the classes to answer. They belong to the caller.
template <class T>
class ClassificationBatch : public TaskBatch<T> {
 public:
  /// `targets` [B, classes], rows that sum to one; `labels` [B]. The loss is cross entropy with the targets, of which a
  /// share of `smoothing` is spread over all classes.
  ClassificationBatch(const ModelInput<T>& examples, View<const T> targets, const int* labels, double smoothing = 0)
      : examples_(examples), targets_(targets), labels_(labels), smoothing_(smoothing) {}

  Index size() const override { return examples_.count(); }
  Index terms() const override { return size(); }
  Var<T> logits(const Model& model, Tape<T>& tape, Piece piece, const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, examples_.part(piece.first, piece.count), visit);
  }
  Var<T> loss(Var<T> logits, Piece piece, Index terms) const override;
  Index correct(View<const T> logits, Piece piece) const override;
  Score judge(View<const T> logits, Piece piece, std::span<double> counts) const override;

 private:
  ModelInput<T> examples_;
  View<const T> targets_;
  const int* labels_;
  double smoothing_;
};

/// Where Evaluation::counts of a classifier has the examples whose label is among the five largest logits, and those of
/// a class that were taken for another.
inline constexpr std::size_t top5_count = 0;
inline std::size_t confusion_count(Index classes, Index of, Index taken_for) {
  return static_cast<std::size_t>(1 + of * classes + taken_for);
}
inline Index classification_counts(Index classes) { return 1 + classes * classes; }

/// softmax(logits) of one example.
std::vector<double> probabilities(const float* logits, Index classes);

/// How well logits [rows, classes] answer; `counts` gets what is said above.
template <class T>
Score judge_logits(View<const T> logits, const int* labels, std::span<double> counts);

/// Which split of a data set a part of it is in; and the part's images, ascending, of which there are none where
/// nothing is set aside for validation.
Split split_of(Part part);
std::vector<Index> images_of(const Dataset& set, Part part, const DataConfig& data, std::uint64_t seed);

/// A row for each label: 1 for it, 0 for all other classes.
template <class T>
Tensor<T> one_hot(const std::vector<int>& labels, Index classes);

/// "0", "1", ...: what to call classes that have no names.
std::vector<std::string> numbered(Index classes);

/// An evaluation as lines of text, its loss if it has one, with a table of which classes were taken for which where
/// they have names. `examples`: what they are, in the plural.
std::string classification_report(const Evaluation& evaluation, const char* examples, Index classes,
                                  const std::vector<std::string>& names);

template <class T>
class Classification : public Task<T> {
 public:
  Classification(const Experiment& experiment, const Model& model, bool any_size);

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override;
  Index counts() const override { return classification_counts(classes_); }
  std::vector<std::string> class_names() override;
  std::string report(const Evaluation& evaluation) const override;
  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override;
  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override;

 private:
  const Dataset& dataset(Split split);

  DataConfig data_;
  TrainConfig train_;
  ImageSize input_;
  Index classes_;
  bool any_size_;
  std::unique_ptr<Dataset> train_set_, test_set_;
};

}  // namespace heed
