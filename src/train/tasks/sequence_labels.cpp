#include "tasks.h"

#include "given_batches.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/data/loader.h"
#include "heed/data/sequences/sequences.h"
#include "heed/train/tasks/classification.h"

#include <optional>
#include <utility>

namespace heed {

namespace {

/// Sequences [B, T], padded to the longest, with their lengths [B]. A batch of pairs has two blocks, one for each side
/// of the pairs.
struct TokenBlock {
  Tensor<int> tokens, lengths;

  explicit TokenBlock(const std::vector<std::vector<int>>& sequences) {
    std::size_t longest = 0;
    for (const std::vector<int>& sequence : sequences) longest = std::max(longest, sequence.size());
    const Index count = static_cast<Index>(sequences.size());
    tokens = Tensor<int>(Shape{count, static_cast<Index>(longest)});
    lengths = Tensor<int>(Shape{count});
    for (Index i = 0; i < count; ++i) {
      const std::vector<int>& sequence = sequences[i];
      std::copy(sequence.begin(), sequence.end(), tokens.data() + i * static_cast<Index>(longest));
      lengths[i] = static_cast<int>(sequence.size());
    }
  }
  TokenBlock(Tensor<int> tokens, Tensor<int> lengths) : tokens(std::move(tokens)), lengths(std::move(lengths)) {}

  Sequences view() const {
    return {tokens.view(), lengths.shape().rank() > 0 && lengths.size() > 0 ? lengths.view() : View<const int>{}};
  }
};

/// A batch that owns its memory.
template <class T>
class OwnSequences : public ClassificationBatch<T> {
 public:
  // The views stay valid when the tensors are moved into the members: a moved tensor keeps its memory.
  OwnSequences(std::vector<TokenBlock> blocks, Tensor<T> targets, std::vector<int> labels, double smoothing = 0)
      : ClassificationBatch<T>(
            {.sequences = blocks[0].view(), .partners = blocks.size() > 1 ? blocks[1].view() : Sequences{}},
            targets.view(), labels.data(), smoothing),
        blocks_(std::move(blocks)),
        targets_(std::move(targets)),
        labels_(std::move(labels)) {}

 private:
  std::vector<TokenBlock> blocks_;
  Tensor<T> targets_;
  std::vector<int> labels_;
};

/// Batches of labelled sequences. In training, sequences are shuffled each epoch, and all batches are full.
template <class T>
class LabelledBatches : public BatchSource<T> {
 public:
  LabelledBatches(SequenceExamples examples, Index classes, const TrainConfig& train, bool training, bool shuffles)
      : examples_(std::move(examples)),
        classes_(classes),
        batch_(train.batch),
        smoothing_(training ? train.label_smoothing : 0),
        training_(training),
        shuffles_(shuffles),
        random_(train.seed) {}

  Index examples() const override { return static_cast<Index>(examples_.examples.size()); }
  std::vector<std::string> files() const override { return examples_.set->files(); }
  std::vector<Index> class_counts() const override {
    std::vector<Index> counts(classes_);
    for (const Index example : examples_.examples) ++counts[examples_.set->label(example)];
    return counts;
  }
  bool has_shorter() const override { return examples_.set->shorter() > 0; }
  Index batches() const override { return (examples() + (training_ ? 0 : batch_ - 1)) / batch_; }
  void start(Index epoch, Index first_batch) override {
    epoch_ = epoch, next_ = first_batch;
    order_ = examples_.examples;
    if (training_ && shuffles_) shuffle(order_, random_.derive("order").derive(epoch));
  }

  const TaskBatch<T>* next() override {
    if (next_ == batches()) return nullptr;
    const Index first = next_++ * batch_, count = std::min(batch_, examples() - first);
    const RandomStream of_epoch = random_.derive("augment").derive(epoch_);
    std::vector<TokenBlock> blocks;
    for (Index which = 0; which < 1 + examples_.set->pairs(); ++which) {
      std::vector<std::vector<int>> sequences(count);
      for (Index i = 0; i < count; ++i) {
        const RandomStream chance = of_epoch.derive(first + i);
        examples_.set->read(example(first + i), which, training_ ? &chance : nullptr, sequences[i]);
      }
      blocks.emplace_back(sequences);
    }
    std::vector<int> labels;
    for (Index i = 0; i < count; ++i) labels.push_back(examples_.set->label(example(first + i)));
    Tensor<T> targets = one_hot<T>(labels, classes_);
    return &now_.emplace(std::move(blocks), std::move(targets), std::move(labels), smoothing_);
  }

 private:
  Index example(Index place) const { return order_[place]; }

  SequenceExamples examples_;
  Index classes_, batch_;
  double smoothing_;
  bool training_, shuffles_;
  RandomStream random_;
  std::vector<Index> order_;
  Index epoch_ = 0, next_ = 0;
  std::optional<OwnSequences<T>> now_;
};

template <class T>
class SequenceClassification : public Task<T> {
 public:
  SequenceClassification(const Experiment& experiment, const Model& model)
      : data_(experiment.data),
        train_(experiment.train),
        context_(experiment.model.context),
        vocabulary_(experiment.model.vocab),
        classes_(model.outputs()[0]),
        pairs_(model.example().partners.tokens.shape().rank() > 0) {}

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override {
    SequenceExamples examples = open_sequences(data_, context_, part, train_.seed);
    require(examples.set->pairs() == pairs_, "data.name={} has {}, but the model expects {}", data_.name,
            pairs_ ? "single sequences" : "pairs", pairs_ ? "pairs" : "single sequences");
    require_fit(examples, context_, vocabulary_);
    warn_of_cut(*examples.set);
    names_ = examples.set->class_names();
    facts_.classes = names_;
    const std::vector<std::string>& files = examples.set->files();
    facts_.files.insert(facts_.files.end(), files.begin(), files.end());
    if (part == Part::test) facts_.test = files;
    facts_.sets_aside = examples.sets_aside;
    if (part == Part::validation && examples.set->has_file_per_example())
      for (const Index i : examples.examples) facts_.validation.push_back(files[i]);
    const Index classes = static_cast<Index>(names_.size()), count = static_cast<Index>(examples.examples.size());
    require(classes == classes_, "[model] classes = {}, but {} has {} classes, {}; set model.classes={}", classes_,
            data_.name, classes, quoted_list(names_), classes);
    if (part == Part::validation && count == 0) return nullptr;
    if (training) require_one_batch(data_.name, count, "examples", train_.batch);
    return std::make_unique<LabelledBatches<T>>(std::move(examples), classes_, train_, training, data_.shuffle);
  }

  std::string report(const Evaluation& evaluation) const override {
    return classification_report(evaluation, pairs_ ? "pairs" : "sequences", classes_, names_);
  }

  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override {
    const RandomStream random(1);
    std::vector<TokenBlock> blocks;
    for (Index which = 0; which < 1 + pairs_; ++which) {
      const RandomStream own = random.derive(which);
      blocks.emplace_back(random_integers({size, context_}, vocabulary_, own), Tensor<int>{});
    }
    return batch_of(std::move(blocks), random_integers({size}, classes_, random.derive("label")));
  }

  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override {
    std::vector<TokenBlock> blocks;
    Index count = 0;
    for (const std::string ending : {"", "2"}) {
      if (ending == "2" && !pairs_) break;
      const Shape shape = token_shape(tensors, "tokens" + ending, context_);
      const Shape of_examples{ending.empty() ? shape[0] : count};
      count = of_examples[0];
      Tensor<int> lengths(of_examples);
      std::fill(lengths.begin(), lengths.end(), static_cast<int>(shape[1]));
      if (tensors.contains("lengths" + ending))
        lengths = take_integers(tensors, "lengths" + ending, of_examples, 1, shape[1]);
      Tensor<int> tokens = take_integers(tensors, "tokens" + ending, Shape{count, shape[1]}, 0, vocabulary_ - 1,
                                         [&](Index b, Index t) { return t < lengths[b]; });
      blocks.emplace_back(std::move(tokens), std::move(lengths));
    }
    return batch_of(std::move(blocks), take_integers(tensors, "labels", Shape{count}, 0, classes_ - 1));
  }

  Index counts() const override { return classification_counts(classes_); }
  DataFacts data_facts() override { return facts_; }
  std::vector<std::string> class_names() override { return names_.empty() ? numbered(classes_) : names_; }

 private:
  /// Warns once if sequences are longer than the context, with their number in the first file or tree that has any.
  void warn_of_cut(const SequenceSet& set) {
    if (set.cut() == 0 || std::exchange(cut_, true)) return;
    warn(fmt::format("{} of {} sequences are longer than model.context = {} and are truncated", set.cut(),
                     set.size() * (1 + set.pairs()), context_));
  }

  std::unique_ptr<TaskBatch<T>> batch_of(std::vector<TokenBlock> blocks, const Tensor<int>& labels) const {
    std::vector<int> list(labels.begin(), labels.end());
    Tensor<T> targets = one_hot<T>(list, classes_);
    return std::make_unique<OwnSequences<T>>(std::move(blocks), std::move(targets), std::move(list));
  }

  DataConfig data_;
  TrainConfig train_;
  Index context_, vocabulary_, classes_;
  bool pairs_, cut_ = false;
  std::vector<std::string> names_;
  DataFacts facts_;
};

}  // namespace

template <class T>
std::unique_ptr<Task<T>> make_sequence_classification(const Experiment& experiment, const Model& model) {
  return std::make_unique<SequenceClassification<T>>(experiment, model);
}

template std::unique_ptr<Task<float>> make_sequence_classification(const Experiment&, const Model&);
template std::unique_ptr<Task<double>> make_sequence_classification(const Experiment&, const Model&);

}  // namespace heed
