// Sequence models: results do not depend on the batch, a prefix of inputs gives a prefix of logits, gradients are
// derivatives, and incremental decoding equals a full pass.
#include "heed/nn/sequence.h"

#include "heed/nn/decoder.h"
#include "heed/train/tasks/classification.h"
#include "src/train/tasks/language.h"
#include "support/compare.h"

#include <boost/test/unit_test.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace heed;

namespace {

constexpr Index vocab = 7, context = 9, classes = 3;

struct Setting {
  const char* mechanism;
  OptionValues options{};
  bool any_length = true;  ///< supports sequences shorter than the context
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  out << setting.mechanism;
  for (const auto& [name, value] : setting.options) out << " " << name << "=" << value;
  return out;
}

AttentionConfig attention_of(const Setting& setting) {
  AttentionConfig attention;
  attention.mechanism = {setting.mechanism};
  for (const auto& [name, value] : setting.options) attention.options[name] = {value, "here"};
  return attention;
}

ModelConfig small_model(const char* task) {
  ModelConfig model;
  model.family = "sequence", model.task = task, model.vocab = vocab, model.context = context;
  model.dim = 8, model.depth = 2, model.heads = 2, model.hidden = 10, model.classes = classes, model.pool = "mean";
  return model;
}

/// Returns settings of mechanisms for tasks that do not need a causal form. Sequences shorter than the context use only
/// part of each tensor that is sized by the context.
const std::vector<Setting>& encoders() {
  static const std::vector<Setting> list{{"softmax"},
                                         {"softmax", {{"causal", "true"}}},
                                         {"sima"},
                                         {"pointwise", {{"phi", "softplus"}, {"alpha", "0.7"}}},
                                         {"pointwise", {{"phi", "gelu"}, {"causal", "true"}}},
                                         {"aft", {{"rank", "3"}}},
                                         {"aft", {{"param", "dense"}}},
                                         {"aft", {{"variant", "local"}, {"window", "3"}, {"rank", "2"}}},
                                         {"aft", {{"variant", "local"}, {"window", "5"}, {"param", "dense"}}},
                                         {"aft", {{"variant", "simple"}}},
                                         {"soft", {{"dims", "1"}, {"ratio", "2"}, {"iterations", "4"}}},
                                         {"soft", {{"dims", "1"}, {"landmarks", "4"}, {"iterations", "3"}}},
                                         {"soft", {{"sampling", "first"}, {"landmarks", "4"}, {"iterations", "3"}}},
                                         {"soft", {{"sampling", "random"}, {"landmarks", "2"}}, false},
                                         {"soft", {{"kernel", "exact"}}},
                                         {"adder"},
                                         {"xca"},
                                         {"efficient"},
                                         {"linear"},
                                         {"performer", {{"features", "5"}}},
                                         {"linformer", {{"length", "4"}}},
                                         {"nystrom", {{"landmarks", "4"}}},
                                         {"cosformer"},
                                         {"cosformer", {{"reweight", "1d"}}},
                                         {"synthesizer"},
                                         {"synthesizer", {{"kind", "random"}}},
                                         {"synthesizer", {{"kind", "random"}, {"causal", "true"}}},
                                         {"window", {{"window", "2"}}},
                                         {"lambda", {{"key_dim", "3"}}},
                                         {"reformer", {{"rounds", "2"}, {"chunk", "3"}, {"buckets", "2"}}, false}};
  return list;
}

const std::vector<Setting>& decoders() {
  static const std::vector<Setting> list{
      {"softmax"},
      {"pointwise", {{"alpha", "0.6"}}},
      {"synthesizer"},
      {"synthesizer", {{"kind", "random"}}},
      {"aft", {{"variant", "simple"}}},
      {"aft", {{"rank", "3"}}},
      {"aft", {{"param", "dense"}, {"query", "false"}}},
      {"aft", {{"variant", "local"}, {"window", "3"}, {"rank", "2"}}},
      {"aft", {{"variant", "local"}, {"window", "4"}, {"param", "dense"}}},
      {"aft", {{"variant", "local"}, {"window", "3"}, {"rank", "2"}, {"outside", "masked"}}},
      {"aft", {{"variant", "local"}, {"window", "0"}, {"rank", "2"}}},
      {"linear"},
      {"performer", {{"features", "5"}}}};
  return list;
}

/// Returns weights that are not small, so that every part of a model matters.
template <class T>
Parameters<T> drawn(const Model& model) {
  Parameters<T> parameters(model.parameters());
  parameters.initialise(3);
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    if (!parameters.list()[id].trainable) continue;
    const RandomStream random = RandomStream(4).derive(parameters.list()[id].name);
    for (Index i = 0; i < parameters[id].size(); ++i) parameters[id][i] += T(0.4 * random.normal(i));
  }
  return parameters;
}

/// Random sequences; positions after the end of a sequence hold invalid tokens, since they must not be read.
struct GivenSequences {
  Tensor<int> tokens, lengths, others, other_lengths, targets;
  std::vector<int> labels;

  explicit GivenSequences(std::vector<int> given) {
    const Index count = static_cast<Index>(given.size());
    const auto draw = [&](std::uint64_t which, Tensor<int>& rows, Tensor<int>& of) {
      rows = Tensor<int>(Shape{count, context}), of = Tensor<int>(Shape{count});
      for (Index b = 0; b < count; ++b) {
        of[b] = given[static_cast<std::size_t>(which == 0 ? b : count - 1 - b)];
        for (Index t = 0; t < context; ++t)
          rows[b * context + t] =
              t < of[b] ? static_cast<int>(RandomStream(which).below(b * context + t, vocab)) : -1000;
      }
    };
    draw(0, tokens, lengths);
    draw(1, others, other_lengths);
    targets = Tensor<int>(tokens.shape());
    for (Index i = 0; i < targets.size(); ++i)
      targets[i] = i % 4 == 1 ? -1 : static_cast<int>(RandomStream(7).below(i, vocab));
    for (Index b = 0; b < count; ++b) labels.push_back(static_cast<int>(b % classes));
  }

  template <class T>
  ModelInput<T> input(bool pairs) const {
    ModelInput<T> in{.sequences = {tokens.view(), lengths.view()}};
    if (pairs) in.partners = {others.view(), other_lengths.view()};
    return in;
  }

  /// Returns sequence b alone.
  template <class T>
  ModelInput<T> alone(Index b, bool pairs) const {
    const auto of = [b](const Tensor<int>& rows, const Tensor<int>& lengths) {
      return Sequences{{rows.data() + b * context, Shape{1, lengths[b]}}, {}};
    };
    ModelInput<T> in{.sequences = of(tokens, lengths)};
    if (pairs) in.partners = of(others, other_lengths);
    return in;
  }
};

std::vector<double> logits_of(const Model& model, Parameters<double>& parameters, const ModelInput<double>& input) {
  Tape<double> tape({.parameters = &parameters});
  const Var<double> logits = model.logits(tape, input);
  return {logits.data(), logits.data() + logits.size()};
}

double largest_difference(const std::vector<double>& a, const double* b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// Compares the derivative of the loss along a random direction in each tensor, by the gradient and by central
/// differences.
void check_gradient(const Model& model, const TaskBatch<double>& batch, const Setting& setting, bool recompute) {
  Parameters<double> parameters = drawn<double>(model);
  const ExampleRange all{0, batch.size()};
  const auto loss_of = [&](Gradients<double>* gradients) {
    Tape<double> tape({.parameters = &parameters, .gradients = gradients, .execution = {.recompute = recompute}});
    const Var<double> loss = batch.loss(batch.logits(model, tape, all, nullptr), all, batch.terms());
    if (gradients) tape.backward(loss);
    return *loss.data();
  };
  Gradients<double> gradients(parameters);
  loss_of(&gradients);
  gradients.complete();
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const ParameterSpec& spec = parameters.list()[id];
    if (!spec.trainable) continue;
    const RandomStream random = RandomStream(9).derive(spec.name);
    double along = 0, size = 0;
    const auto move = [&](double h) {
      for (Index i = 0; i < parameters[id].size(); ++i) parameters[id][i] += h * random.normal(i);
    };
    for (Index i = 0; i < parameters[id].size(); ++i) {
      along += gradients[id][i] * random.normal(i);
      size += gradients[id][i] * gradients[id][i];
    }
    const double h = 1e-6;  // so small that no ReLU's operand changes sign
    move(h);
    const double above = loss_of(nullptr);
    move(-2 * h);
    const double below = loss_of(nullptr);
    move(h);
    BOOST_TEST(std::abs((above - below) / (2 * h) - along) < 1e-6 * (1 + std::sqrt(size)),
               setting << ": " << spec.name << " " << (above - below) / (2 * h) << " " << along);
  }
}

void check_refused(const ModelConfig& model, const Setting& setting, const std::string& message) {
  BOOST_CHECK_EXCEPTION(SequenceModel(model, attention_of(setting)), Error, [&](const Error& error) {
    BOOST_TEST(error.what() == message);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sequence_models)

BOOST_AUTO_TEST_CASE(a_sequence_in_a_batch_gives_what_it_gives_alone) {
  for (const Setting& setting : encoders())
    for (const char* pool : {"mean", "cls", "last"}) {
      const auto causal = setting.options.find("causal");
      if (std::string(pool) == "cls" && causal != setting.options.end()) continue;
      // With the class token there are 10 tokens, not divisible into chunks of 3.
      if (std::string(pool) == "cls" && std::string(setting.mechanism) == "reformer") continue;
      ModelConfig config = small_model("classify");
      config.pool = pool;
      const SequenceModel model(config, attention_of(setting));
      Parameters<double> parameters = drawn<double>(model);
      std::vector<std::vector<int>> batches{{9, 9}};
      if (setting.any_length) batches = {{4, 9, 1, 6}, {6, 9}, {9, 4}};
      for (const std::vector<int>& lengths : batches) {
        const GivenSequences batch(lengths);
        const std::vector<double> together = logits_of(model, parameters, batch.input<double>(false));
        for (Index b = 0; b < batch.lengths.size(); ++b) {
          const std::vector<double> alone = logits_of(model, parameters, batch.alone<double>(b, false));
          BOOST_TEST(alone.size() == static_cast<std::size_t>(classes));
          BOOST_TEST(largest_difference(alone, together.data() + b * classes) < 1e-12, setting << " " << pool);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(a_length_that_a_mechanism_does_not_take_is_named) {
  for (const Setting& setting : encoders()) {
    if (setting.any_length) continue;
    const SequenceModel model(small_model("classify"), attention_of(setting));
    Parameters<double> parameters = drawn<double>(model);
    for (const auto& [lengths, refused] : {std::pair(std::vector<int>{9, 6}, 6), {{6, 9}, 6}, {{9, 4, 6}, 4}}) {
      const GivenSequences batch(lengths);
      const std::string expected = fmt::format("sequence has {} tokens; expected 9", refused);
      const auto names_it = [&](const Error& error) {
        return std::string(error.what()).find(expected) != std::string::npos;
      };
      BOOST_CHECK_EXCEPTION(logits_of(model, parameters, batch.input<double>(false)), Error, names_it);
    }
  }
}

BOOST_AUTO_TEST_CASE(pairs_in_a_batch_give_what_they_give_alone) {
  for (const char* pair : {"nli", "concat"})
    for (const char* head : {"linear", "mlp"}) {
      ModelConfig config = small_model("pair");
      config.pair = pair, config.head = head;
      const SequenceModel model(config, {});
      Parameters<double> parameters = drawn<double>(model);
      const GivenSequences batch({4, 9, 1, 6});
      const std::vector<double> together = logits_of(model, parameters, batch.input<double>(true));
      for (Index b = 0; b < 4; ++b)
        BOOST_TEST(largest_difference(logits_of(model, parameters, batch.alone<double>(b, true)),
                                      together.data() + b * classes) < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(gradients_of_labels) {
  for (const Setting& setting : encoders()) {
    if (!make_mechanism(setting.mechanism, setting.options)->traits().surrogate.empty()) continue;
    const bool pairs = std::string(setting.mechanism) == "softmax";
    ModelConfig config = small_model(pairs ? "pair" : "classify");
    config.head = "mlp";
    if (setting.options.empty() && !pairs) config.pool = "cls";
    const SequenceModel model(config, attention_of(setting));
    const GivenSequences batch(setting.any_length ? std::vector<int>{4, 9, 1, 6} : std::vector<int>{9, 9});
    const Tensor<double> targets = one_hot<double>(batch.labels, classes);
    const ClassificationBatch<double> task(batch.input<double>(pairs), targets.view(), batch.labels.data());
    check_gradient(model, task, setting, pairs);
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_language) {
  for (const Setting& setting : decoders())
    for (const bool special : {false, true}) {
      ModelConfig config = small_model("lm");
      config.start = config.tied = special;
      config.pos_embed = !special;
      const SequenceModel model(config, attention_of(setting));
      const GivenSequences batch({9, 9});
      const Index inputs = special ? 5 : context;
      const Shape shape{2, inputs};
      const LanguageBatch<double> task({batch.tokens.data(), shape}, {batch.targets.data(), shape});
      check_gradient(model, task, setting, false);
    }
}

BOOST_AUTO_TEST_CASE(a_prefix_of_inputs_gives_a_prefix_of_logits) {
  for (const Setting& setting : decoders()) {
    const SequenceModel model(small_model("lm"), attention_of(setting));
    Parameters<double> parameters = drawn<double>(model);
    const GivenSequences batch({9});
    const std::vector<double> all =
        logits_of(model, parameters, {.sequences = {{batch.tokens.data(), Shape{1, context}}}});
    for (Index inputs = 1; inputs < context; ++inputs) {
      const std::vector<double> some =
          logits_of(model, parameters, {.sequences = {{batch.tokens.data(), Shape{1, inputs}}}});
      BOOST_TEST(some.size() == static_cast<std::size_t>(inputs * vocab));
      BOOST_TEST(largest_difference(some, all.data()) < 1e-12, setting << " " << inputs);
    }
  }
}

/// Returns the largest difference between `full` and the logits of incremental decoding, relative to the largest logit.
/// The tokens are decoded twice, and the second time counts, since the old state must not be read.
template <class T>
double decoding_error(const SequenceModel& model, Parameters<T>& parameters, const Tensor<int>& tokens, Var<T> full) {
  const bool start = model.config().start;
  double largest = 0, difference = 0;
  Decoder<T> decoder(model, parameters);
  for (const bool again : {false, true}) {
    decoder.restart();
    for (Index t = 0; t < model.config().context; ++t) {
      const Index at = t - start;
      const std::span<const T> row = decoder.next(at < 0 ? -1 : tokens[at]);
      for (Index c = 0; c < vocab && again; ++c) {
        const double expected = static_cast<double>(full.data()[t * vocab + c]);
        largest = std::max(largest, std::abs(expected));
        difference = std::max(difference, std::abs(static_cast<double>(row[static_cast<std::size_t>(c)]) - expected));
      }
    }
  }
  return difference / largest;
}

using Numbers = std::tuple<float, double>;
BOOST_AUTO_TEST_CASE_TEMPLATE(decoding_gives_what_a_full_pass_gives, T, Numbers) {
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
  for (const Setting& setting : decoders())
    for (const bool start : {false, true}) {
      ModelConfig config = small_model("lm");
      config.start = start;
      config.qk_norm = make_mechanism(setting.mechanism, setting.options)->traits().qk_norm;
      config.gate = true;
      const SequenceModel model(config, attention_of(setting));
      Parameters<T> parameters = drawn<T>(model);
      const GivenSequences batch({9});
      Tape<T> tape({.parameters = &parameters});
      const Var<T> full = model.logits(tape, ModelInput<T>{.sequences = {{batch.tokens.data(), Shape{1, context}}}});
      const double error = decoding_error(model, parameters, batch.tokens, full);
      BOOST_TEST(error < tolerance, setting << " start " << start << ": " << error);
    }
}

// A full pass adds sums over blocks of tokens, decoding adds token by token. With sums in float, decoding would lose
// accuracy at each token: 2e-5 of the largest logit after 16,000 tokens.
BOOST_AUTO_TEST_CASE(sums_over_many_tokens_stay_exact) {
  ModelConfig config = small_model("lm");
  config.context = 16'384;
  config.pos_embed = false;
  Tensor<int> tokens(Shape{1, config.context});
  for (Index i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(RandomStream(7).below(i, vocab));
  for (const Setting& setting :
       {Setting{"linear"}, Setting{"performer", {{"features", "8"}}}, Setting{"aft", {{"variant", "simple"}}}}) {
    const SequenceModel model(config, attention_of(setting));
    Parameters<float> parameters = drawn<float>(model);
    Tape<float> tape({.parameters = &parameters});
    const Var<float> full =
        model.logits(tape, ModelInput<float>{.sequences = {{tokens.data(), Shape{1, config.context}}}});
    const double error = decoding_error(model, parameters, tokens, full);
    BOOST_TEST(error < 1e-5, setting << ": " << error);
  }
}

// Number of elements of a block's state after t tokens, for D = 8, H = 2, d = 4.
BOOST_AUTO_TEST_CASE(states_are_as_small_as_they_can_be) {
  const auto numbers = [](const Setting& setting, Index t) {
    const AttentionStateSize size = SequenceModel(small_model("lm"), attention_of(setting)).state_size(t);
    return (size.state + size.sums) / 2;  // per block
  };
  const Index D = 8;
  for (const Index t : {Index{1}, Index{5}}) {
    BOOST_TEST(numbers({"softmax"}, t) == 2 * t * D);
    BOOST_TEST(numbers({"pointwise"}, t) == 2 * t * D);
    BOOST_TEST(numbers({"synthesizer"}, t) == t * D);
    BOOST_TEST(numbers({"aft", {{"variant", "simple"}}}, t) == 3 * D);
    BOOST_TEST(numbers({"aft"}, t) == 2 * t * D);
    const OptionValues local{{"variant", "local"}, {"window", "3"}};
    BOOST_TEST(numbers({"aft", local}, t) == 3 * D + 2 * std::min<Index>(t, 3) * D);
    OptionValues masked = local;
    masked["outside"] = "masked";
    BOOST_TEST(numbers({"aft", masked}, t) == 2 * std::min<Index>(t, 3) * D);
    BOOST_TEST(numbers({"linear"}, t) == D * 4 + D);
    BOOST_TEST(numbers({"performer", {{"features", "5"}}}, t) == 2 * (5 * 4 + 5 + 1) + D + 1);
  }
}

BOOST_AUTO_TEST_CASE(tensors_have_their_names_and_shapes) {
  ModelConfig config = small_model("lm");
  config.context = 128, config.vocab = 256, config.dim = 128, config.depth = 4, config.heads = 4, config.hidden = 512;
  BOOST_TEST(SequenceModel(config, {}).parameters().trainable_elements() == 875'520);
  config.tied = config.start = true;
  const SequenceModel tied(config, {});
  BOOST_TEST(tied.parameters().trainable_elements() == 875'520 - 256 * 128 + 128);
  BOOST_TEST(tied.parameters().find("head.weight") == -1);
  BOOST_CHECK(tied.parameters()[tied.parameters().find("start_token")].shape == (Shape{1, 1, 128}));
  BOOST_TEST(!tied.parameters()[tied.parameters().find("tok_embed.weight")].decay);
  config = small_model("pair");
  config.pool = "cls", config.head = "mlp";
  const SequenceModel pair(config, {});
  BOOST_CHECK(pair.parameters()[pair.parameters().find("pos_embed")].shape == (Shape{1, 10, 8}));
  BOOST_CHECK(pair.parameters()[pair.parameters().find("head.fc1.weight")].shape == (Shape{10, 32}));
  BOOST_CHECK(pair.parameters()[pair.parameters().find("head.fc2.weight")].shape == (Shape{3, 10}));
}

BOOST_AUTO_TEST_CASE(what_has_no_meaning_is_refused) {
  const ModelConfig lm = small_model("lm"), classify = small_model("classify");
  std::vector<std::string> causal;
  for (const MechanismEntry& entry : mechanisms())
    if (std::any_of(decoders().begin(), decoders().end(),
                    [&](const Setting& setting) { return std::string_view(setting.mechanism) == entry.name; }))
      causal.emplace_back(entry.name);
  check_refused(
      lm, {"sima"},
      fmt::format("[attention] mechanism = 'sima' has no causal form, which task = \"lm\" requires; expected one of {}",
                  fmt::join(causal, ", ")));
  check_refused(lm, {"softmax", {{"causal", "false"}}},
                "[attention] causal = false; expected true, since task = \"lm\" requires causal attention");
  check_refused(lm, {"aft", {{"variant", "conv"}}}, "[aft] causal=true is not defined for variant=conv");
  check_refused(classify, {"soft", {{"ratio", "2"}}},
                "[soft] dims is 2; a sequence has no image grid: expected dims=1");
  check_refused(classify, {"nystrom", {{"ratio", "2"}}},
                "[nystrom] ratio is 2; a sequence has no image grid: expected landmarks");
  check_refused(classify, {"soft", {{"sampling", "conv"}, {"ratio", "2"}}},
                "[soft] sampling is conv; a sequence has no image grid");
  check_refused(classify, {"window", {{"window", "2"}, {"dims", "2"}}},
                "[window] dims is 2; a sequence has no image grid: expected dims=1");
  check_refused(classify, {"cosformer", {{"reweight", "2d"}}},
                "[cosformer] reweight is 2d; a sequence has no image grid: expected none or 1d");
  check_refused(classify, {"aft", {{"variant", "conv"}}},
                "[aft] variant is conv and dims is 2; a sequence has no image grid: expected dims=1");
  ModelConfig cls = classify;
  cls.pool = "cls";
  check_refused(cls, {"softmax", {{"causal", "true"}}},
                "[attention] causal = true; with [model] pool = \"cls\" the class token, which is first, sees only "
                "itself: expected pool = \"mean\" or \"last\"");
  // A mechanism's own table overrides the options shared by all mechanisms.
  AttentionConfig own = attention_of({"softmax", {{"causal", "true"}}});
  own.per_mechanism["softmax"]["causal"] = {"false", "there"};
  BOOST_CHECK_THROW(SequenceModel(lm, own), Error);
  BOOST_CHECK_NO_THROW(SequenceModel(cls, own));
  const SequenceModel model(classify, attention_of({"reformer", {{"rounds", "2"}, {"chunk", "3"}, {"buckets", "2"}}}));
  Parameters<double> parameters = drawn<double>(model);
  BOOST_CHECK_THROW(logits_of(model, parameters, GivenSequences({9, 6}).input<double>(false)), Error);
}

// The drawn token is the first whose running sum of probabilities exceeds u. Top-k includes ties with the k-th largest
// logit.
BOOST_AUTO_TEST_CASE(drawing_a_token) {
  const std::vector<double> logits{std::log(0.1), std::log(0.4), std::log(0.4), std::log(0.1)};
  const auto draw = [&](const Sampling& sampling, double u) {
    return draw_token(std::span<const double>(logits), sampling, u);
  };
  BOOST_TEST(draw({1, 0}, 0.0) == 0);
  BOOST_TEST(draw({1, 0}, 0.11) == 1);
  BOOST_TEST(draw({1, 0}, 0.51) == 2);
  BOOST_TEST(draw({1, 0}, 0.95) == 3);
  BOOST_TEST(draw({0, 0}, 0.95) == 1);
  BOOST_TEST(draw({1, 1}, 0.0) == 1);
  BOOST_TEST(draw({1, 1}, 0.6) == 2);
  BOOST_TEST(draw({0.5, 0}, 0.02) == 0);
  BOOST_TEST(draw({0.5, 0}, 0.04) == 1);
  // These logits overflow when divided by the temperature.
  BOOST_TEST(draw({1e-320, 0}, 0.4) == 1);
  BOOST_TEST(draw({1e-320, 0}, 0.6) == 2);
}

// However many tokens are read at once, the state is the same: more than `context` inputs clear it, and the last
// `context` / 2 tokens (at least one without a start token) are processed again.
BOOST_AUTO_TEST_CASE(a_long_prompt_leaves_the_state_of_its_last_tokens) {
  for (const Index length : {Index{1}, Index{2}, Index{3}, Index{8}, context})
    for (const bool start : {false, true}) {
      ModelConfig config = small_model("lm");
      config.context = length, config.start = start;
      const SequenceModel model(config, {});
      Parameters<double> parameters = drawn<double>(model);
      Decoder<double> decoder(model, parameters), own(model, parameters);
      std::vector<int> prompt;
      std::vector<int> inputs(start ? 1 : 0, -1);
      for (int i = 0; i < 40; ++i) {
        prompt.push_back(i * i % static_cast<int>(vocab));
        inputs.push_back(prompt.back());
        if (static_cast<Index>(inputs.size()) > length) {
          const Index half = std::max<Index>(length / 2, !start);
          inputs.assign(start ? 1 : 0, -1);
          inputs.insert(inputs.end(), prompt.end() - half, prompt.end());
        }
        own.restart();
        std::span<const double> expected;
        for (const int input : inputs) expected = own.next(input);
        for (const int before : {0, i / 3, i}) {  // tokens read by an earlier call
          Writer<double> writer(decoder);
          for (int t = 0; t < before; ++t) writer.append(prompt[static_cast<std::size_t>(t)]);
          writer.read();
          for (int t = before; t <= i; ++t) writer.append(prompt[static_cast<std::size_t>(t)]);
          writer.read();
          BOOST_TEST(decoder.position() == own.position());
          const std::span<const double> found = writer.logits();
          BOOST_TEST(std::equal(found.begin(), found.end(), expected.begin(), expected.end()),
                     "context " << length << ", start " << start << ", " << i + 1 << " tokens, first " << before);
        }
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
