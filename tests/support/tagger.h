// A model and tasks outside of heed: token sequences with lengths, a target for each token, and a teacher. They show
// that training, evaluation and costs depend on the interfaces of models and tasks only.
#pragma once

#include "heed/ops/linear.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"

#include <memory>
#include <vector>

namespace heed::test {

/// Tagger of tokens: logits[b, t] = W (E[token] + mean of E over the sequence's tokens) + c, and c after the sequence's
/// end. The penalty is the sum of squares of c.
class Tagger : public ModelBase<Tagger> {
 public:
  Tagger(Index vocabulary, Index width, Index tags, Index length) : length_(length) {
    embedding_ = list_.add({"embedding", {vocabulary, width}, Initial::normal(1)});
    weight_ = list_.add({.name = "head.weight", .shape = {tags, width}, .initial = Initial::normal(1)});
    bias_ = list_.add({"head.bias", {tags}, Initial::normal(1), false});
  }

  ModelInput<float> example() const override { return {.sequences = {.tokens = {nullptr, Shape{1, length_}}}}; }
  Shape outputs() const override { return Shape{length_, parameters()[bias_].shape[0]}; }
  double most_operations() const override { return 1e6; }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const {
    const Var<T> x = bag(pass.tape.parameter(embedding_), pass.examples.sequences);
    return linear(x, pass.tape.parameter(weight_), pass.tape.parameter(bias_));
  }

  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const {
    const Var<T> bias = tape.parameter(bias_);
    const Index n = bias.size();
    return tape.record(
        {"squares", {}}, Shape{}, {bias},
        [=](T* y) {
          *y = T(0);
          for (Index i = 0; i < n; ++i) *y += bias.data()[i] * bias.data()[i];
        },
        [=, &tape](const Adjoint<T>& dy) {
          if (const auto d = tape.target(bias))
            for (Index i = 0; i < n; ++i) write(d.update, d.data[i], T(2) * bias.data()[i] * *dy.data());
        });
  }

 private:
  /// Computes x[b, t] = E[token] + mean of E over the tokens; zero after the end.
  template <class T>
  static Var<T> bag(Var<T> embedding, const Sequences& in) {
    Tape<T>& tape = embedding.tape();
    const Index batch = in.tokens.shape()[0], tokens = in.tokens.shape()[1], width = embedding.shape()[1];
    const auto length_of = [=](Index b) { return in.lengths.shape().rank() > 0 ? in.lengths[b] : tokens; };
    return tape.record(
        {"bag", {}}, Shape{batch, tokens, width}, {embedding},
        [=](T* x) {
          std::fill(x, x + batch * tokens * width, T(0));
          for (Index b = 0; b < batch; ++b)
            for (Index t = 0; t < length_of(b); ++t)
              for (Index s = 0; s < length_of(b); ++s)
                for (Index c = 0; c < width; ++c)
                  x[(b * tokens + t) * width + c] +=
                      embedding.data()[in.tokens[b * tokens + s] * width + c] * share(s == t, length_of(b), T{});
        },
        [=, &tape](const Adjoint<T>& dx) {
          const auto d = tape.target(embedding);
          if (d && d.update == Update::assign) std::fill(d.data, d.data + embedding.size(), T(0));
          for (Index b = 0; b < batch && d; ++b)
            for (Index t = 0; t < length_of(b); ++t)
              for (Index s = 0; s < length_of(b); ++s)
                for (Index c = 0; c < width; ++c)
                  d.data[in.tokens[b * tokens + s] * width + c] +=
                      dx.data()[(b * tokens + t) * width + c] * share(s == t, length_of(b), T{});
        });
  }

  /// Returns the weight of a token's embedding in x at the token's own position, or at another position of the
  /// sequence.
  template <class T>
  static T share(bool itself, Index length, T) {
    return T((itself ? 1.0 : 0.0) + 1 / static_cast<double>(length));
  }

  Index length_;
  ParameterId embedding_, weight_, bias_;
};

/// Sequences with a tag for each token, -1 for none. Each sequence has two views, the second for a teacher.
struct Sentences {
  Tensor<int> tokens, others, tags, lengths;

  /// Draws random sequences of all lengths, the same for the same seed.
  Sentences(Index count, Index length, Index vocabulary, Index kinds, std::uint64_t seed)
      : tokens(Shape{count, length}), others(Shape{count, length}), tags(Shape{count, length}), lengths(Shape{count}) {
    const RandomStream random(seed);
    for (Index b = 0; b < count; ++b) lengths[b] = static_cast<int>(1 + (seed + b) % length);
    for (Index i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int>(random.below(i, vocabulary));
      others[i] = static_cast<int>(random.derive(1).below(i, vocabulary));
      const bool asked = i % length < lengths[i / length] && i % 3 != 1;
      tags[i] = asked ? static_cast<int>((tokens[i] + seed) % kinds) : -1;
    }
  }

  Index count() const { return lengths.size(); }
};

/// Examples [first, first + count) of some sentences. The loss is the mean over tags of the cross entropy plus, with a
/// teacher's logits, half their squared distance to the model's.
template <class T>
class TaggedBatch : public TaskBatch<T> {
 public:
  TaggedBatch(const Sentences& from, Index first, Index count, const T* teacher = nullptr)
      : in_{.sequences = {from.tokens.view(), from.lengths.view()}}, tags_(from.tags.view()), teacher_(teacher) {
    in_ = in_.part(first, count);
    tags_ = tags_.part(first, count);
  }

  Index size() const override { return in_.count(); }
  Index terms() const override {
    return std::count_if(tags_.begin(), tags_.end(), [](int tag) { return tag >= 0; });
  }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, in_.part(microbatch.first, microbatch.count), visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override {
    Tape<T>& tape = logits.tape();
    const Index tags = logits.shape()[2], n = logits.shape()[0] * logits.shape()[1],
                first = microbatch.first * tags_.shape()[1];
    const int* const tag = tags_.data() + first;
    const T* const goal = teacher_ ? teacher_ + first * tags : nullptr;
    const double divisor = static_cast<double>(terms);
    return tape.record(
        {"tag_loss", {}}, Shape{}, {logits},
        [=](T* loss) {
          *loss = T(0);
          for (Index i = 0; i < n; ++i)
            if (tag[i] >= 0) *loss += T(term(logits.data() + i * tags, tags, tag[i], goal ? goal + i * tags : nullptr));
          *loss = T(static_cast<double>(*loss) / divisor);
        },
        [=, &tape](const Adjoint<T>& dy) {
          const auto d = tape.target(logits);
          const double factor = static_cast<double>(*dy.data()) / divisor;
          for (Index i = 0; i < n && d; ++i) {
            const T* const row = logits.data() + i * tags;
            double sum = 0;
            for (Index c = 0; c < tags; ++c) sum += std::exp(static_cast<double>(row[c]));
            for (Index c = 0; c < tags; ++c) {
              double slope = std::exp(static_cast<double>(row[c])) / sum - (c == tag[i] ? 1 : 0);
              if (goal) slope += static_cast<double>(row[c] - goal[i * tags + c]);
              write(d.update, d.data[i * tags + c], T(tag[i] >= 0 ? factor * slope : 0.0));
            }
          }
        });
  }
  Index correct(View<const T> logits, ExampleRange microbatch) const override {
    std::vector<double> wrong(1);
    return static_cast<Index>(judge(logits, microbatch, wrong).correct);
  }
  /// Returns the score of a microbatch, and counts its wrong answers.
  Score judge(View<const T> logits, ExampleRange microbatch, std::span<double> wrong) const override {
    const Index tags = logits.shape()[2], length = tags_.shape()[1];
    Score score;
    for (Index i = 0; i < microbatch.count * length; ++i) {
      const int tag = tags_[microbatch.first * length + i];
      if (tag < 0) continue;
      const T* const row = logits.data() + i * tags;
      const bool right = std::max_element(row, row + tags) - row == tag;
      score = score + Score{1, term(row, tags, tag, nullptr), right ? 1.0 : 0.0};
      wrong[0] += !right;
    }
    return score;
  }

 private:
  /// Returns one token's term of the loss.
  static double term(const T* row, Index tags, Index tag, const T* goal) {
    double sum = 0, squares = 0;
    for (Index c = 0; c < tags; ++c) {
      sum += std::exp(static_cast<double>(row[c]));
      if (goal) squares += std::pow(static_cast<double>(row[c] - goal[c]), 2);
    }
    return std::log(sum) - static_cast<double>(row[tag]) + squares / 2;
  }

  ModelInput<T> in_;
  View<const int> tags_;
  const T* teacher_;
};

/// Batches of sentences in order. With a teacher's weights, each includes the teacher's logits on the second view.
template <class T>
class SentenceSource : public BatchSource<T> {
 public:
  SentenceSource(const Model& model, const Sentences& sentences, Index batch, Parameters<T>* teacher = nullptr)
      : model_(model), sentences_(sentences), batch_(batch), teacher_(teacher) {}

  Index examples() const override { return sentences_.count(); }
  Index batches() const override { return (examples() + batch_ - 1) / batch_; }
  void start(Index, Index first_batch) override { next_ = first_batch; }
  const TaskBatch<T>* next() override {
    if (next_ == batches()) return nullptr;
    const Index first = next_++ * batch_, count = std::min(batch_, examples() - first);
    if (teacher_) {
      goal_ = Tensor<T>(Shape{count, model_.outputs()[0], model_.outputs()[1]});
      const ModelInput<T> others{.sequences = {sentences_.others.view(), sentences_.lengths.view()}};
      Inference<T>(model_, *teacher_, 3).run(others.part(first, count), goal_.data());
    }
    now_ = std::make_unique<TaggedBatch<T>>(sentences_, first, count, teacher_ ? goal_.data() : nullptr);
    return now_.get();
  }

 private:
  const Model& model_;
  const Sentences& sentences_;
  Index batch_, next_ = 0;
  Parameters<T>* teacher_;
  Tensor<T> goal_;
  std::unique_ptr<TaggedBatch<T>> now_;
};

/// Tagging, with a teacher that is a slow average of the weights.
class Tagging : public Task<double> {
 public:
  Tagging(const Model& model, Index batch) : model_(model), batch_(batch), teacher_(model.parameters()) {
    teacher_.initialise(5);
  }

  std::unique_ptr<BatchSource<double>> open(Part part, bool training) override {
    const Sentences& sentences = part == Part::train ? train_ : part == Part::validation ? validation_ : test_;
    return std::make_unique<SentenceSource<double>>(model_, sentences, batch_, training ? &teacher_ : nullptr);
  }
  Index counts() const override { return 1; }
  std::string report(const Evaluation&) const override { return {}; }
  std::unique_ptr<TaskBatch<double>> random_batch(Index) override { return nullptr; }
  std::unique_ptr<TaskBatch<double>> given_batch(GivenTensors&) const override { return nullptr; }
  void after_step(const Parameters<double>& weights, const StepPlace&) override {
    for (Index i = 0; i < teacher_.size(); ++i) teacher_.data()[i] += 0.1 * (weights.data()[i] - teacher_.data()[i]);
  }
  std::vector<TaskTensor<double>> state() override {
    std::vector<TaskTensor<double>> tensors;
    for (ParameterId id = 0; id < teacher_.list().size(); ++id)
      tensors.push_back({"teacher." + teacher_.list()[id].name, teacher_[id]});
    return tensors;
  }

 private:
  const Model& model_;
  Index batch_;
  Parameters<double> teacher_;
  Sentences train_{24, 5, 7, 3, 1}, validation_{10, 5, 7, 3, 2}, test_{11, 5, 7, 3, 3};
};

}  // namespace heed::test
