// A model of task = "lm" at work token by token: what an input costs depends on the state that its mechanisms keep, not
// on how the tokens before it are to be taken through the model again.
#pragma once

#include "heed/nn/sequence.h"

#include <span>

namespace heed {

/// The model as one that predicts tokens. Throws Error for any other.
const SequenceModel& language_model(const Model& model);

template <class T>
class Decoder {
 public:
  /// `parameters` must outlive it, and must not change. Throws Error unless the model is a sequence model of task "lm".
  Decoder(const Model& model, Parameters<T>& parameters);

  const ModelConfig& config() const { return model_.config(); }

  /// Inputs taken so far, at most config().context.
  Index position() const { return position_; }

  /// Forgets all inputs.
  void restart() { position_ = 0; }

  /// Takes the next input, a token, or -1 for the start token, and gives the logits [V] that follow it, valid until the
  /// next call.
  std::span<const T> next(int token);

  /// Bytes of the state that the inputs so far have left.
  Index state_bytes() const;

 private:
  const SequenceModel& model_;
  Parameters<T>& parameters_;
  PackedWeights<T> packed_;
  Buffer<T> state_;
  Buffer<double> sums_;
  Tape<T> tape_;
  Index position_ = 0;
};

/// The sequences that a model of language writes: tokens are drawn one after the other.
struct Sampling {
  double temperature = 1;  ///< 0: the first of the largest logits
  Index top_k = 0;         ///< only logits that are no less than the k-th largest; 0: all
};

/// The token that a uniform number u in [0, 1) draws: the first at which the running sum of softmax(logits /
/// temperature), in double, exceeds u.
template <class T>
int draw_token(std::span<const T> logits, const Sampling& sampling, double u);

/// Writes a sequence: inputs are taken one by one, and where there is room for no more, the state is dropped and half
/// of them are taken again from the first position on.
template <class T>
class Writer {
 public:
  explicit Writer(Decoder<T>& decoder) : decoder_(decoder) { decoder_.restart(); }

  /// Appends a token that is given.
  void append(int token) { tokens_.push_back(token); }

  /// Takes what was appended through the model: of many tokens, those alone that the last state comes from.
  void read();

  /// Draws a token from what follows all that was appended, and appends it.
  int draw(const Sampling& sampling, double u);

  const std::vector<int>& tokens() const { return tokens_; }

  /// The logits that the last token was drawn from.
  std::span<const T> logits() const { return logits_; }

 private:
  void feed(int token);

  Decoder<T>& decoder_;
  std::vector<int> tokens_;
  Index fed_ = 0;  ///< number of tokens that were read
  std::vector<T> logits_;
};

}  // namespace heed
