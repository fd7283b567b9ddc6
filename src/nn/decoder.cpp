#include "heed/nn/decoder.h"

#include "heed/base/math.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace heed {

const SequenceModel& language_model(const Model& model) {
  const auto* const sequence = dynamic_cast<const SequenceModel*>(&model);
  require(sequence && sequence->config().task == "lm",
          "[model] only family = \"sequence\" with task = \"lm\" predicts tokens");
  return *sequence;
}

template <class T>
Decoder<T>::Decoder(const Model& model, Parameters<T>& parameters)
    : model_(language_model(model)), parameters_(parameters) {
  const AttentionStateSize size = model_.state_size(model_.config().context);
  state_ = Buffer<T>(size.state), sums_ = Buffer<double>(size.sums);
  packed_.pack(Products::exact, parameters, false);
}

template <class T>
std::span<const T> Decoder<T>::next(int token) {
  require(position_ < config().context, "[model] context = {}: the input is full; no token can be added",
          config().context);
  require(token < config().vocab && (token >= 0 || config().start), "token {}; expected 0 to {}", token,
          config().vocab - 1);
  DecodingStep<T> step{position_, state_.data(), sums_.data()};
  tape_.clear({.parameters = &parameters_, .packed = &packed_, .examples = {.decoding = &step}});
  const Var<T> logits = model_.next_logits(tape_, token);
  ++position_;
  return {logits.data(), static_cast<std::size_t>(logits.size())};
}

template <class T>
Index Decoder<T>::state_bytes() const {
  const AttentionStateSize size = model_.state_size(position_);
  return size.state * static_cast<Index>(sizeof(T)) + size.sums * static_cast<Index>(sizeof(double));
}

template <class T>
int draw_token(std::span<const T> logits, const Sampling& sampling, double u) {
  const auto first_largest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0) return static_cast<int>(first_largest - logits.begin());
  std::vector<double> z(logits.begin(), logits.end());
  for (double& x : z) x = (x - static_cast<double>(*first_largest)) / sampling.temperature;
  double least = -HUGE_VAL;
  if (const auto k = static_cast<std::size_t>(sampling.top_k); k > 0 && k < z.size()) {
    std::vector<double> sorted = z;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end(),
                     std::greater<>());
    least = sorted[k - 1];
  }
  double total = 0, sum = 0;
  for (double& x : z) total += x = x >= least ? math::exp(x) : 0;
  int last = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += z[i] / total;
    if (sum > u) return static_cast<int>(i);
    if (z[i] > 0) last = static_cast<int>(i);
  }
  return last;
}

template <class T>
void Writer<T>::feed(int token) {
  const std::span<const T> logits = decoder_.next(token);
  logits_.assign(logits.begin(), logits.end());
}

template <class T>
void Writer<T>::read() {
  const ModelConfig& config = decoder_.config();
  const Index count = static_cast<Index>(tokens_.size()), first = config.start ? 1 : 0;
  const Index again = std::max(config.context / 2, 1 - first);
  // Index of the first token that does not fit in the context. At this token, the decoder restarts with the last
  // `again` tokens, including this one. Further restarts follow every `period` tokens. Only the last restart affects
  // the state, so the others are skipped.
  Index full = fed_ + config.context - std::max(decoder_.position(), first);
  if (full < count) {
    const Index period = config.context - first - again + 1;
    full += (count - 1 - full) / period * period;
    decoder_.restart();
    fed_ = full + 1 - again;
  }
  if (config.start && decoder_.position() == 0) feed(-1);
  while (fed_ < count) feed(tokens_[static_cast<std::size_t>(fed_++)]);
}

template <class T>
int Writer<T>::draw(const Sampling& sampling, double u) {
  read();
  HEED_ASSERT(!logits_.empty());
  const int token = draw_token(std::span<const T>(logits_), sampling, u);
  append(token);
  return token;
}

template class Decoder<float>;
template class Decoder<double>;
template class Writer<float>;
template class Writer<double>;
template int draw_token(std::span<const float>, const Sampling&, double);
template int draw_token(std::span<const double>, const Sampling&, double);

}  // namespace heed
