#include "heed/train/tasks/classification.h"

#include "heed/base/math.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/data/loader.h"
#include "heed/ops/cross_entropy.h"
#include "given_batches.h"
#include "rank_of.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace heed {

namespace {

/// Batches from a loader.
template <class T>
class ImageSource : public BatchSource<T> {
 public:
  ImageSource(const Dataset& set, std::vector<Index> images, const DataConfig& data, const Loading& loading,
              double smoothing)
      : set_(set),
        images_(static_cast<Index>(images.size())),
        counts_(set.class_names().size()),
        smoothing_(smoothing),
        loader_(set, images, data, loading) {
    for (const Index image : images) ++counts_[set.label(image)];
  }

  Index examples() const override { return images_; }
  std::vector<std::string> files() const override { return set_.files(); }
  std::vector<Index> class_counts() const override { return counts_; }
  Index batches() const override { return loader_.batches(); }
  void make_only(const BatchShare& share) override {
    loader_.make_only([share](Index i, Index images) {
      const ExampleRange own = share(images);
      return own.first <= i && i < own.first + own.count;
    });
  }
  void start(Index epoch, Index first_batch) override { loader_.start(epoch, first_batch); }

  const TaskBatch<T>* next() override {
    const Batch<T>* const batch = loader_.next();
    if (!batch) return nullptr;
    return &batch_.emplace(ModelInput<T>{batch->images.view().part(0, batch->size)},
                           batch->targets.view().part(0, batch->size), batch->labels.data(), smoothing_);
  }

 private:
  const Dataset& set_;
  Index images_;
  std::vector<Index> counts_;  ///< images of each class
  double smoothing_;
  Loader<T> loader_;
  std::optional<ClassificationBatch<T>> batch_;
};

/// A batch that owns its memory.
template <class T>
class OwnImages : public ClassificationBatch<T> {
 public:
  // The views stay valid when the tensors are moved into the members: a moved tensor keeps its memory.
  OwnImages(Tensor<T> images, Tensor<T> targets, std::vector<int> labels)
      : ClassificationBatch<T>({images.view()}, targets.view(), labels.data()),
        images_(std::move(images)),
        targets_(std::move(targets)),
        labels_(std::move(labels)) {}

 private:
  Tensor<T> images_, targets_;
  std::vector<int> labels_;
};

template <class T>
std::unique_ptr<TaskBatch<T>> batch_of(Tensor<T> images, const Tensor<int>& labels, Index classes) {
  std::vector<int> list(labels.begin(), labels.end());
  Tensor<T> targets = one_hot<T>(list, classes);
  return std::make_unique<OwnImages<T>>(std::move(images), std::move(targets), std::move(list));
}

/// Returns the number of a class's examples.
double examples_of(const std::vector<double>& counts, Index classes, Index c) {
  const double* const row = counts.data() + confusion_count(classes, c, 0);
  return std::accumulate(row, row + classes, 0.0);
}

/// Returns the fraction of a class's examples that are classified correctly. Requires at least one example.
double recall(const std::vector<double>& counts, Index classes, Index c) {
  return counts[confusion_count(classes, c, c)] / examples_of(counts, classes, c);
}

/// Returns the ten classes with the lowest recall, each with its most frequent wrong prediction. Classes without
/// examples are left out.
std::string hardest_text(const std::vector<double>& counts, Index classes, const std::vector<std::string>& labels) {
  std::vector<Index> order;
  for (Index c = 0; c < classes; ++c)
    if (examples_of(counts, classes, c) > 0) order.push_back(c);
  const auto with_examples = static_cast<Index>(order.size()), shown = std::min<Index>(with_examples, 10);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return recall(counts, classes, a) < recall(counts, classes, b); });
  std::string text =
      fmt::format("\n{} classes{}; the {} with the lowest accuracy:\n", classes,
                  with_examples < classes ? fmt::format(", {} with examples", with_examples) : "", shown);
  for (Index i = 0; i < shown; ++i) {
    const Index c = order[i];
    std::vector<double> row(&counts[confusion_count(classes, c, 0)], &counts[confusion_count(classes, c, 0)] + classes);
    row[c] = 0;
    const auto other = std::max_element(row.begin(), row.end());
    text += fmt::format("{:>6.2f} %  {}", 100 * recall(counts, classes, c), labels[c]);
    if (*other > 0) text += fmt::format(", classified as {} {:.0f} times", labels[other - row.begin()], *other);
    text += "\n";
  }
  return text;
}

/// Returns the confusion table for up to twenty classes, and hardest_text() for more. Classes are labelled with index
/// and name.
std::string confusion_text(const std::vector<double>& counts, Index classes, const char* examples,
                           std::vector<std::string> names) {
  constexpr Index most = 20;
  std::size_t width = 5;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const std::string number = std::to_string(c);
    names[c] = names[c] == number ? number : fmt::format("{} {}", number, printable(names[c]));
    width = std::max(width, names[c].size());
  }
  if (classes > most) return hardest_text(counts, classes, names);
  std::string text =
      fmt::format("\nconfusion: {} of a row's class classified as a column's\n{:>{}}", examples, "", width);
  for (Index c = 0; c < classes; ++c) text += fmt::format(" {:>5}", c);
  text += "  accuracy\n";
  for (Index r = 0; r < classes; ++r) {
    text += fmt::format("{:>{}}", names[r], width);
    for (Index c = 0; c < classes; ++c) text += fmt::format(" {:>5.0f}", counts[confusion_count(classes, r, c)]);
    text += examples_of(counts, classes, r) > 0 ? fmt::format("  {:>6.2f} %\n", 100 * recall(counts, classes, r))
                                                : fmt::format("  {:>6}\n", "-");
  }
  return text;
}

}  // namespace

template <class T>
Tensor<T> one_hot(const std::vector<int>& labels, Index classes) {
  Tensor<T> targets(Shape{static_cast<Index>(labels.size()), classes});
  for (std::size_t i = 0; i < labels.size(); ++i) targets[static_cast<Index>(i) * classes + labels[i]] = 1;
  return targets;
}

template <class T>
Var<T> ClassificationBatch<T>::loss(Var<T> logits, ExampleRange microbatch, Index terms) const {
  return cross_entropy(logits, targets_.part(microbatch.first, microbatch.count), smoothing_, terms);
}

template <class T>
Index ClassificationBatch<T>::correct(View<const T> logits, ExampleRange microbatch) const {
  return correct_rows(logits, labels_ + microbatch.first);
}

std::vector<double> probabilities(const float* logits, Index classes) {
  const float maximum = *std::max_element(logits, logits + classes);
  std::vector<double> shares;
  double sum = 0;
  for (Index c = 0; c < classes; ++c) sum += shares.emplace_back(math::exp(static_cast<double>(logits[c] - maximum)));
  for (double& share : shares) share /= sum;
  return shares;
}

template <class T>
Score judge_logits(View<const T> logits, const int* labels, std::span<double> counts) {
  return score_rows(logits, labels, [&](Index label, Index answer, Index rank) {
    counts[top5_count] += rank < 5;
    ++counts[confusion_count(logits.shape()[1], label, answer)];
  });
}

template <class T>
Score ClassificationBatch<T>::judge(View<const T> logits, ExampleRange microbatch, std::span<double> counts) const {
  return judge_logits(logits, labels_ + microbatch.first, counts);
}

std::vector<std::string> numbered(Index classes) {
  std::vector<std::string> numbers;
  for (Index c = 0; c < classes; ++c) numbers.push_back(std::to_string(c));
  return numbers;
}

double commonest_share(const Evaluation& evaluation, Index classes) {
  double most = 0;
  for (Index c = 0; c < classes; ++c) most = std::max(most, examples_of(evaluation.counts, classes, c));
  return most / evaluation.score.terms;
}

std::string classification_report(const Evaluation& evaluation, const char* examples, Index classes,
                                  const std::vector<std::string>& names, Index ranked) {
  const Score& score = evaluation.score;
  const std::vector<double>& counts = evaluation.counts;
  std::string text = fmt::format("{:.0f} {}\ntop-1 accuracy {:.2f} %\n", score.terms, examples, 100 * score.accuracy());
  if (classes > 5 && ranked >= 5)
    text += fmt::format("top-5 accuracy {:.2f} %\n", 100 * counts[top5_count] / score.terms);
  if (!(score.mean_loss() < 0)) text += fmt::format("loss           {:.4f}\n", score.mean_loss());
  return names.empty() ? text : text + confusion_text(counts, classes, examples, names);
}

template <class T>
Classification<T>::Classification(const Experiment& experiment, const Model& model, bool any_size)
    : data_(experiment.data),
      train_(experiment.train),
      classes_(model.outputs()[0]),
      any_size_(any_size),
      sets_(data_, train_.seed) {
  const Shape image = model.image_shape();
  input_ = {image[0], image[1], image[2]};
}

template <class T>
const Dataset& Classification<T>::dataset(Part part) {
  require(!holds_sequences(data_), "data.name={} has sequences of tokens; the model expects images", data_.name);
  const Dataset& set = sets_.set(part);
  const Index classes = static_cast<Index>(set.class_names().size());
  require(classes == classes_, "[model] classes = {}, but {} has {} classes, {}; set model.classes={}", classes_,
          data_.name, classes, quoted_list(set.class_names()), classes);
  names_ = set.class_names();
  return set;
}

template <class T>
std::unique_ptr<BatchSource<T>> Classification<T>::open(Part part, bool training) {
  const Dataset& set = dataset(part);
  std::vector<Index> images = sets_.images(part);
  if (part == Part::validation && images.empty()) return nullptr;
  DataConfig data = data_;
  // Images with a different number of channels are not resized, so that they remain an error.
  if (any_size_ && data.resize == "none" && set.image_size().channels == input_.channels) data.resize = "squash";
  return std::make_unique<ImageSource<T>>(set, std::move(images), data,
                                          Loading{input_, train_.batch, train_.seed, training},
                                          training ? train_.label_smoothing : 0);
}

/// Returns the recorded names; without a record, the names in the test data; if the data are missing, the class
/// indices.
template <class T>
std::vector<std::string> Classification<T>::class_names() {
  if (!data_.recorded.classes.empty()) return data_.recorded.classes;
  try {
    return dataset(Part::test).class_names();
  } catch (const Error&) {
    return numbered(classes_);
  }
}

template <class T>
std::string Classification<T>::report(const Evaluation& evaluation) const {
  return classification_report(evaluation, "images", classes_, names_);
}

template <class T>
std::unique_ptr<TaskBatch<T>> Classification<T>::random_batch(Index size) {
  return batch_of(random_values<T>({size, input_.channels, input_.height, input_.width}),
                  random_integers({size}, classes_, RandomStream(1).derive(1)), classes_);
}

template <class T>
std::unique_ptr<TaskBatch<T>> Classification<T>::given_batch(GivenTensors& tensors) const {
  Tensor<T> images = take_images<T>(tensors, Shape{input_.channels, input_.height, input_.width});
  const Tensor<int> labels = take_integers(tensors, "labels", Shape{images.shape()[0]}, 0, classes_ - 1);
  return batch_of(std::move(images), labels, classes_);
}

template Tensor<float> one_hot(const std::vector<int>&, Index);
template Tensor<double> one_hot(const std::vector<int>&, Index);
template Score judge_logits(View<const float>, const int*, std::span<double>);
template Score judge_logits(View<const double>, const int*, std::span<double>);
template class ClassificationBatch<float>;
template class ClassificationBatch<double>;
template class Classification<float>;
template class Classification<double>;

}  // namespace heed
