#include "heed/nn/sequence.h"

#include "blocks.h"
#include "run_blocks.h"
#include "heed/cost/for_each_number.h"

namespace heed {

namespace {

constexpr double token_deviation = 0.02;

/// Throws Error for a class token with causal attention: in front of the sequence, it would attend only to itself.
void check_pooling(const ModelConfig& model, const AttentionConfig& attention) {
  for (const std::string& mechanism : attention.mechanism)
    require(model.task == "lm" || model.pool != "cls" || !is_causal(attention, mechanism),
            "[attention] causal = true; with [model] pool = \"cls\" the class token, which is first, sees only itself: "
            "expected pool = \"mean\" or \"last\"");
}

}  // namespace

SequenceModel::SequenceModel(const ModelConfig& model, const AttentionConfig& attention, double dropout,
                             double drop_path)
    : config_(model), dropout_(dropout) {
  validate(experiment_of(model, attention));
  const Index D = model.dim, positions = rows_of(model.context);
  const bool cls = positions > model.context;
  const Initial small = Initial::truncated_normal(token_deviation);
  embedding_ = list_.add({.name = "tok_embed.weight",
                          .shape = {model.vocab, D},
                          .initial = small,
                          .decay = false,
                          .multiplied = is("lm") && model.tied ? Multiplied::linear : Multiplied::no});
  if (is("lm") && model.start) front_ = list_.add({"start_token", {1, 1, D}, small, false});
  if (cls) front_ = list_.add({"cls_token", {1, 1, D}, small, false});
  if (model.pos_embed) position_ = list_.add({"pos_embed", {1, positions, D}, small, false});

  AttentionShape shape;
  shape.class_token = cls;
  shape.queries = shape.keys = shape.longest = positions;
  shape.growing = is("lm");
  check_pooling(model, attention);
  blocks_ = make_blocks(list_, model, is("lm") ? made_causal(attention) : attention, {shape, dropout, drop_path});
  norm_.emplace(list_, "norm", D);
  if (is("lm")) {
    model.tied ? head_.emplace(list_, "head", embedding_) : head_.emplace(list_, "head", D, model.vocab);
    return;
  }
  const Index features = !is("pair") ? D : model.pair == "nli" ? 4 * D : 2 * D;
  const bool mlp = model.head == "mlp";
  if (mlp) hidden_.emplace(list_, "head.fc1", features, model.hidden);
  head_.emplace(list_, mlp ? "head.fc2" : "head", mlp ? model.hidden : features, model.classes);
}

ModelInput<float> SequenceModel::example() const {
  const Sequences longest{.tokens = {nullptr, Shape{1, config_.context}}};
  return {.sequences = longest, .partners = is("pair") ? longest : Sequences{}};
}

Shape SequenceModel::outputs() const {
  return is("lm") ? Shape{config_.context, config_.vocab} : Shape{config_.classes};
}

/// Returns `margin` times the sum of products of the sizes, far above the operations of any mechanism.
double SequenceModel::most_operations() const {
  const ModelConfig& c = config_;
  const double tokens = static_cast<double>(c.context + 1), dim = static_cast<double>(c.dim);
  const double block = tokens * dim * (dim + static_cast<double>(c.hidden) + tokens);
  const double head = is("lm") ? tokens * static_cast<double>(c.vocab)
                               : 4 * static_cast<double>(c.hidden) + static_cast<double>(c.classes);
  constexpr double margin = 100;
  return margin * (is("pair") ? 2 : 1) * (static_cast<double>(c.depth) * block + dim * head);
}

std::vector<TokenRows> SequenceModel::rows_of(const ModelInput<float>& examples) const {
  std::vector<TokenRows> rows;
  Index first = 0;
  const auto add = [&](const Sequences& sequences, Index b) {
    const Index most = sequences.tokens.shape()[1];
    const bool all = sequences.lengths.shape().rank() == 0;
    const Index length = all ? most : sequences.lengths[b];
    require(length >= 1 && length <= std::min(most, config_.context),
            "[model] sequence {} has {} tokens; expected 1 to {}", b, length, std::min(most, config_.context));
    const int* const tokens = sequences.tokens.data();
    rows.push_back({tokens ? tokens + b * most : nullptr, first, rows_of(length)});
    first += rows.back().count;
  };
  require(examples.sequences.tokens.shape().rank() == 2, "[model] this model expects sequences of tokens, [B, T]");
  const bool pairs = examples.partners.tokens.shape().rank() == 2;
  require(pairs == is("pair"), "[model] task = \"{}\" takes {}", config_.task,
          is("pair") ? "pairs of sequences" : "single sequences");
  for (Index b = 0; b < examples.count(); ++b) {
    add(examples.sequences, b);
    if (pairs) add(examples.partners, b);
  }
  return rows;
}

template <class T>
Var<T> SequenceModel::embed(Tape<T>& tape, const std::vector<TokenRows>& rows) const {
  const typename Tape<T>::Scope scope(tape, embed_name_);
  const auto tensor = [&](ParameterId id) { return id < 0 ? Var<T>{} : tape.parameter(id); };
  const Var<T> x =
      embed_sequences(std::span<const TokenRows>(rows), tensor(embedding_), tensor(front_), tensor(position_));
  return dropout(x, dropout_, 0xe3bed);
}

/// Computes the logits from the rows of the last block; normalises only the rows that pooling reads.
template <class T>
Var<T> SequenceModel::classify(Var<T> x) const {
  const typename Tape<T>::Scope scope(x.tape(), pool_name_);
  Var<T> y;
  if (config_.pool == "mean")
    y = pool_sequences((*norm_)(x), SequencePool::mean);
  else
    y = (*norm_)(pool_sequences(x, config_.pool == "cls" ? SequencePool::first : SequencePool::last));
  if (is("pair")) y = pair_features(y, config_.pair == "nli");
  return hidden_ ? head_->after(relu_, (*hidden_)(y)) : (*head_)(y);
}

template <class T>
Var<T> SequenceModel::run_logits(const ModelPass<T>& pass) const {
  const ModelInput<T>& examples = pass.examples;
  const std::vector<TokenRows> rows = rows_of({.sequences = examples.sequences, .partners = examples.partners});
  if (is("lm")) return head_->after(*norm_, run_blocks(pass, blocks_, embed(pass.tape, rows)));
  std::vector<Index> starts;
  for (const TokenRows& sequence : rows) starts.push_back(sequence.first);
  starts.push_back(rows.empty() ? 0 : rows.back().first + rows.back().count);
  const Index first = pass.tape.pass().examples.first * (is("pair") ? 2 : 1);
  pass.tape.divide_rows({starts, first, rows_of(config_.context)});
  return classify(run_blocks(pass, blocks_, embed(pass.tape, rows)));
}

AttentionStateSize SequenceModel::state_size(Index inputs) const {
  AttentionStateSize size;
  for (const Block& block : blocks_) size += block.state_size(inputs);
  return size;
}

template <class T>
Var<T> SequenceModel::next_logits(Tape<T>& tape, int token) const {
  const Index D = config_.dim, position = tape.pass().examples.decoding->position;
  const View<const T> rows = tape.parameter(token < 0 ? front_ : embedding_).value();
  T* const x = tape.memory(D);
  std::copy_n(rows.data() + (token < 0 ? 0 : token * D), D, x);
  if (position_ >= 0) write_all(Update::accumulate, D, tape.parameter(position_).data() + position * D, x);
  Var<T> z = tape.constant({x, Shape{1, 1, D}});
  for (const Block& block : blocks_) z = block(z);
  return head_->after(*norm_, z);
}

template <class T>
Var<T> SequenceModel::run_penalty(Tape<T>& tape) const {
  return sum_of_penalties(tape, blocks_);
}

#define INSTANTIATE(T)                                                  \
  template Var<T> SequenceModel::run_logits(const ModelPass<T>&) const; \
  template Var<T> SequenceModel::run_penalty(Tape<T>&) const;
HEED_FOR_EACH_NUMBER(INSTANTIATE)

template Var<float> SequenceModel::next_logits(Tape<float>&, int) const;
template Var<double> SequenceModel::next_logits(Tape<double>&, int) const;

}  // namespace heed
