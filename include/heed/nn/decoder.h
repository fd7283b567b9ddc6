// Incremental decoding of a model with task = "lm": the time per input depends on the size of the mechanisms' state;
// earlier tokens are not processed again.
#pragma once

#include "heed/nn/sequence.h"

#include <span>

namespace heed {

/// Returns the model as a sequence model of task = "lm". Throws Error for any other model.
const SequenceModel& language_model(const Model& model);

/// Token-by-token inference of a language model: each call of next() processes one input, with the saved state of all
/// earlier ones.
template <class T>
class Decoder {
 public:
  /// `parameters` must outlive the decoder and must not change. Throws Error unless the model is a sequence model of
  /// task "lm".
  Decoder(const Model& model, Parameters<T>& parameters);

  /// Returns the model's configuration.
  const ModelConfig& config() const { return model_.config(); }

  /// Returns the number of inputs since the last restart, at most config().context.
  Index position() const { return position_; }

  /// Clears the state.
  void restart() { position_ = 0; }

  /// Processes the next input, a token, or -1 for the start token, and returns the logits [V] of its successor, valid
  /// until the next call.
  std::span<const T> next(int token);

  /// Returns the size of the current state in bytes.
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

/// Rule for drawing tokens from logits.
struct Sampling {
  double temperature = 1;  ///< 0: always the token with the largest logit, the first on ties
  Index top_k = 0;         ///< draws among the tokens with logits >= the k-th largest; 0: among all
};

/// Returns the token that a uniform number u in [0, 1) selects: the first at which the running sum of softmax(logits /
/// temperature) over the tokens that top_k admits, in double, exceeds u.
template <class T>
int draw_token(std::span<const T> logits, const Sampling& sampling, double u);

/// Generator of a sequence. If a token does not fit in the context, the state is cleared, and the last context / 2
/// tokens, including this one, are processed as a new sequence.
template <class T>
class Writer {
 public:
  explicit Writer(Decoder<T>& decoder) : decoder_(decoder) { decoder_.restart(); }

  /// Appends a given token.
  void append(int token) { tokens_.push_back(token); }

  /// Processes the appended tokens. If they exceed the context, skips those that the final state does not depend on.
  void read();

  /// Draws the next token and appends it.
  int draw(const Sampling& sampling, double u);

  const std::vector<int>& tokens() const { return tokens_; }

  /// Returns the logits after the last processed token; after draw(), those from which it drew.
  std::span<const T> logits() const { return logits_; }

 private:
  void feed(int token);

  Decoder<T>& decoder_;
  std::vector<int> tokens_;
  Index fed_ = 0;  ///< number of processed tokens
  std::vector<T> logits_;
};

}  // namespace heed
