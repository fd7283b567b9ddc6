#include "language.h"

#include "given_batches.h"
#include "heed/data/loader.h"
#include "heed/data/sequences/sequences.h"
#include "heed/data/sequences/text.h"
#include "tasks.h"

#include <numbers>
#include <optional>

namespace heed {

namespace {

/// Batches built one by one in the source's memory.
template <class T>
class TokenBatches : public BatchSource<T> {
 public:
  TokenBatches(Index batch, Index context) : tokens_(Shape{batch, context}), targets_(tokens_.shape()) {}

  void start(Index epoch, Index first_batch) override { epoch_ = epoch, next_ = first_batch; }

  const TaskBatch<T>* next() override {
    if (next_ == this->batches()) return nullptr;
    const Index N = context(), first = next_++ * size(), count = std::min(size(), this->examples() - first);
    for (Index i = 0; i < count; ++i) read(epoch_, first + i, tokens_.data() + i * N, targets_.data() + i * N);
    return &batch_.emplace(tokens_.view().part(0, count), targets_.view().part(0, count));
  }

 protected:
  /// Reads an example of an epoch into tokens [context] and targets [context].
  virtual void read(Index epoch, Index example, int* tokens, int* targets) const = 0;

  Index size() const { return tokens_.shape()[0]; }
  Index context() const { return tokens_.shape()[1]; }

 private:
  Tensor<int> tokens_, targets_;
  Index epoch_ = 0, next_ = 0;
  std::optional<LanguageBatch<T>> batch_;
};

/// Windows of a text for training, `windows` per epoch: random ones or, without shuffling, consecutive ones.
template <class T>
class TrainingWindows : public TokenBatches<T> {
 public:
  TrainingWindows(std::span<const std::uint8_t> text, Index windows, Index context, bool start, bool shuffle,
                  Index batch, Index seed)
      : TokenBatches<T>(batch, context),
        text_(text),
        windows_(windows),
        start_(start),
        shuffle_(shuffle),
        random_(RandomStream(seed).derive("windows")) {}

  Index examples() const override { return windows_; }
  Index batches() const override { return windows_ / this->size(); }

 protected:
  void read(Index epoch, Index example, int* tokens, int* targets) const override {
    const Index N = this->context(), size = this->size(), step = epoch * batches() + example / size;
    const Index places = static_cast<Index>(text_.size()) - (N + !start_) + 1;
    const Index first = shuffle_ ? random_.derive(step).below(example % size, places) : example * N;
    std::copy_n(text_.begin() + first, N, tokens);
    std::copy_n(text_.begin() + first + !start_, N, targets);
  }

 private:
  std::span<const std::uint8_t> text_;
  Index windows_;
  bool start_, shuffle_;
  RandomStream random_;
};

/// Windows of a text that together predict each byte once; without a start token, the first byte is not predicted.
/// Positions after the end of a shorter window have no target and, since attention is causal, do not affect earlier
/// positions.
template <class T>
class EvaluationWindows : public TokenBatches<T> {
 public:
  EvaluationWindows(std::span<const std::uint8_t> text, Index context, Index stride, bool start, Index batch)
      : TokenBatches<T>(batch, context),
        text_(text),
        start_(start),
        windows_(evaluation_windows(static_cast<Index>(text.size()), context, stride, start)) {}

  Index examples() const override { return static_cast<Index>(windows_.size()); }
  Index batches() const override { return (examples() + this->size() - 1) / this->size(); }

 protected:
  void read(Index, Index example, int* tokens, int* targets) const override {
    const TextWindow& window = windows_[example];
    const auto byte = [&](Index at) { return int(text_[window.first + at]); };
    for (Index t = 0; t < this->context(); ++t) {
      tokens[t] = t < window.length ? byte(t) : 0;
      targets[t] = t < window.length && t >= window.fresh ? byte(t + !start_) : -1;
    }
  }

 private:
  std::span<const std::uint8_t> text_;
  bool start_;
  std::vector<TextWindow> windows_;
};

/// Batches of whole sequences; each token is predicted from the tokens before it.
template <class T>
class WholeSequences : public TokenBatches<T> {
 public:
  WholeSequences(SequenceExamples examples, Index context, bool training, bool shuffles, Index batch, Index seed)
      : TokenBatches<T>(batch, context),
        examples_(std::move(examples)),
        training_(training),
        shuffles_(shuffles),
        random_(seed) {}

  Index examples() const override { return static_cast<Index>(examples_.examples.size()); }
  std::vector<std::string> files() const override { return examples_.set->files(); }
  Index batches() const override { return (examples() + (training_ ? 0 : this->size() - 1)) / this->size(); }
  void start(Index epoch, Index first_batch) override {
    TokenBatches<T>::start(epoch, first_batch);
    order_ = examples_.examples;
    if (training_ && shuffles_) shuffle(order_, random_.derive("order").derive(epoch));
  }

 protected:
  void read(Index epoch, Index example, int* tokens, int* targets) const override {
    const RandomStream chance = random_.derive("augment").derive(epoch).derive(example);
    std::vector<int> sequence;
    examples_.set->read(order_[example], 0, training_ ? &chance : nullptr, sequence);
    std::copy(sequence.begin(), sequence.end(), tokens);
    std::copy(sequence.begin(), sequence.end(), targets);
  }

 private:
  SequenceExamples examples_;
  bool training_, shuffles_;
  RandomStream random_;
  std::vector<Index> order_;
};

/// A batch that owns its memory.
template <class T>
class OwnTokens : public LanguageBatch<T> {
 public:
  // The views stay valid when the tensors are moved into the members: a moved tensor keeps its memory.
  OwnTokens(Tensor<int> tokens, Tensor<int> targets)
      : LanguageBatch<T>(tokens.view(), targets.view()), tokens_(std::move(tokens)), targets_(std::move(targets)) {}

 private:
  Tensor<int> tokens_, targets_;
};

/// Task that predicts the next byte of a text, or the next channel value of an image.
template <class T>
class Language : public Task<T> {
 public:
  Language(const Experiment& experiment, const Model& model)
      : data_(experiment.data),
        train_(experiment.train),
        context_(model.outputs()[0]),
        vocabulary_(model.outputs()[1]),
        start_(experiment.model.start) {}

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override {
    require(train_.label_smoothing == 0, "[train] label_smoothing = {}; expected 0 for task = \"lm\"",
            train_.label_smoothing);
    if (data_.name == "pixels") {
      require(start_,
              "[model] start = false; expected true for data.name=pixels, so that the first sub-pixel is predicted");
      SequenceExamples examples = open_sequences(data_, context_, part, train_.seed);
      require_fit(examples, context_, vocabulary_);
      facts_.files.insert(facts_.files.end(), examples.set->files().begin(), examples.set->files().end());
      if (part == Part::test) facts_.test = examples.set->files();
      require(vocabulary_ == data_.levels, "[model] vocab = {}; expected [data] levels, {}", vocabulary_, data_.levels);
      if (part == Part::validation && examples.examples.empty()) return nullptr;
      require(!training || static_cast<Index>(examples.examples.size()) >= train_.batch,
              "{} training images do not fill one batch of {}; expected a train.batch of at most {}",
              examples.examples.size(), train_.batch, examples.examples.size());
      return std::make_unique<WholeSequences<T>>(std::move(examples), context_, training, data_.shuffle, train_.batch,
                                                 train_.seed);
    }
    require(data_.name == "text", "data.name={} is not defined for task = \"lm\"; expected text or pixels", data_.name);
    require(vocabulary_ == 256, "[model] vocab = {}; a text's tokens are bytes: expected 256", vocabulary_);
    const Index stride = data_.stride == 0 ? context_ : data_.stride;
    require(stride <= context_, "[data] stride = {}; expected 1 to context, {}", stride, context_);
    if (text_.empty()) {
      text_ = read_text(data_);
      of_characters_ = bytes_are_characters(text_);
    }
    facts_.files = facts_.test = {data_.path};
    facts_.sets_aside = false;
    const std::span<const std::uint8_t> bytes = part_of(text_, part);
    const Index n = static_cast<Index>(bytes.size()), window = context_ + !start_;
    if (!training) {
      require(n >= 1 + !start_, "{}: {} of {} bytes are for {}; use a longer text", data_.path, n, text_.size(),
              part == Part::test         ? "test"
              : part == Part::validation ? "validation"
                                         : "training");
      return std::make_unique<EvaluationWindows<T>>(bytes, context_, stride, start_, train_.batch);
    }
    require(n >= window, "{}: {} of {} bytes are for training; expected at least {}, one window", data_.path, n,
            text_.size(), window);
    const Index side_by_side = (n - !start_) / context_, windows = data_.windows == 0 ? side_by_side : data_.windows;
    require(side_by_side >= train_.batch,
            "{}: {} training bytes do not fill one batch of {} windows of {}; expected a train.batch of at most {}",
            data_.path, n, train_.batch, context_, side_by_side);
    require(windows >= train_.batch, "[data] windows = {}; expected at least {}, one batch", windows, train_.batch);
    require(data_.shuffle || windows <= side_by_side,
            "[data] windows = {}; with shuffle = false an epoch has at most {}, which do not overlap", windows,
            side_by_side);
    return std::make_unique<TrainingWindows<T>>(bytes, windows, context_, start_, data_.shuffle, train_.batch,
                                                train_.seed);
  }

  DataFacts data_facts() override { return facts_; }

  std::string measure() const override {
    return data_.name != "text" ? "bits per dimension" : of_characters_ ? "bits per character" : "bits per byte";
  }

  std::string report(const Evaluation& evaluation) const override {
    const Score& score = evaluation.score;
    return fmt::format("{:.0f} {}\n{} {:.4f}\nnext-token accuracy {:.2f} %\nloss {:.4f} nats\n", score.terms,
                       data_.name == "text" ? "bytes" : "sub-pixels", measure(), score.mean_loss() / std::numbers::ln2,
                       100 * score.accuracy(), score.mean_loss());
  }

  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override {
    const RandomStream random(1);
    const Shape shape{size, context_};
    return std::make_unique<OwnTokens<T>>(random_integers(shape, vocabulary_, random),
                                          random_integers(shape, vocabulary_, random.derive(1)));
  }

  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override {
    const Shape shape = token_shape(tensors, "tokens", context_);
    Tensor<int> tokens = take_integers(tensors, "tokens", shape, 0, vocabulary_ - 1);
    Tensor<int> targets = take_integers(tensors, "targets", shape, -1, vocabulary_ - 1);
    auto batch = std::make_unique<OwnTokens<T>>(std::move(tokens), std::move(targets));
    require(batch->terms() > 0, "{}: all elements of tensor 'targets' are -1; expected at least one target",
            tensors.path());
    return batch;
  }

 private:
  DataConfig data_;
  TrainConfig train_;
  Index context_, vocabulary_;
  bool start_;
  std::vector<std::uint8_t> text_;
  bool of_characters_ = true;  ///< each byte of the text is a character
  DataFacts facts_;
};

}  // namespace

template <class T>
std::unique_ptr<Task<T>> make_language(const Experiment& experiment, const Model& model) {
  return std::make_unique<Language<T>>(experiment, model);
}

template std::unique_ptr<Task<float>> make_language(const Experiment&, const Model&);
template std::unique_ptr<Task<double>> make_language(const Experiment&, const Model&);

}  // namespace heed
