// Logits and running statistics of every host family, for each of its keys, compared in double with plain loops: token
// by token, image by image, without fused operations. Mechanisms have separate tests; here attention is softmax, or
// SimA in class attention.
#include "heed/nn/families.h"
#include "heed/nn/sequence.h"
#include "support/families.h"
#include "plain_host.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <span>

using namespace heed;
using namespace heed::test;

namespace {

/// Compares results of about a dozen layers, which add dozens of terms of order 1 to 100.
void check_plain(const PlainHost::Rows& expected, const double* got, const std::string& label) {
  for (const PlainHost::Row& row : expected)
    for (const double value : row) {
      BOOST_TEST(std::abs(*got - value) < 1e-10 * std::max(1.0, std::abs(value)),
                 label << ": " << *got << ", expected " << value);
      ++got;
    }
}

/// Compares the results of evaluation, of evaluation with a trace, which fuses no operations, and of training, with its
/// running statistics.
void check_images(const Experiment& x, const std::string& label) {
  for (const auto& [training, traced] : {std::pair(false, false), {false, true}, {true, false}}) {
    SmallTraining t(x, 4);
    PlainHost plain(x.model, t.parameters, training);
    const PlainHost::Rows expected = plain.image_logits(t.images);
    std::vector<TraceEntry> trace;
    Tape<double> tape(
        {.parameters = &t.parameters, .training = training, .observers = {.trace = traced ? &trace : nullptr}});
    const Var<double> logits = t.model->logits(tape, ModelInput<double>{.images = t.images.view()});
    BOOST_TEST(logits.size() == 4 * 3);
    check_plain(expected, logits.data(), label + (training ? ", training" : traced ? ", traced" : ""));
    for (const auto& [name, values] : plain.running) {
      const ParameterId id = t.parameters.list().find(name);
      BOOST_REQUIRE_MESSAGE(id >= 0, name);
      check_plain({values}, t.parameters[id].data(), label + ", " + name);
    }
  }
}

using Sets = std::vector<std::string>;

const Sets around_attention[] = {{"model.qk_norm=true"},
                                 {"model.gate=true"},
                                 {"model.gate=true", "model.gate_act=silu"},
                                 {"model.gate=true", "model.qk_norm=true"}};
const char* const acts[] = {"relu", "gelu_tanh", "quick_gelu"};

/// Checks a family with its own keys and the common ones, with softmax in every block or stage.
void check_family(const std::string& family, std::span<const Sets> own) {
  std::vector<Sets> keys(own.begin(), own.end());
  keys.insert(keys.end(), std::begin(around_attention), std::end(around_attention));
  for (const char* act : acts) keys.push_back({std::string("model.act=") + act});
  for (const Sets& sets : keys) {
    Experiment x = small_experiment(family, sets);
    x.attention = {};
    check_images(x, fmt::format("{}, {}", family, fmt::join(sets, ", ")));
  }
}

Experiment plain_sequence(const char* task) {
  Experiment x;
  ModelConfig& m = x.model;
  m.family = "sequence", m.task = task, m.vocab = 7, m.context = 9, m.pool = "mean", m.classes = 3;
  m.dim = 6, m.depth = 2, m.heads = 2, m.hidden = 5;
  return x;
}

/// Compares the logits of sequences in a batch, of several lengths or, for a language model, of equal lengths.
void check_sequences(const Experiment& x, const std::string& label) {
  const auto model = make_model(x);
  const bool lm = x.model.task == "lm", pairs = x.model.task == "pair";
  Parameters<double> parameters(model->parameters());
  for (Index i = 0; i < parameters.size(); ++i) parameters.data()[i] = RandomStream(3).normal(i);
  const std::vector<Index> given = lm ? std::vector<Index>{9, 9} : std::vector<Index>{4, 9, 1};
  const auto count = static_cast<Index>(given.size());
  Tensor<int> tokens(Shape{count, 9}), others(Shape{count, 9}), lengths(Shape{count}), other_lengths(Shape{count});
  std::vector<std::vector<int>> first(given.size()), second(given.size());
  for (std::size_t b = 0; b < given.size(); ++b) {
    const auto row = static_cast<Index>(b);
    lengths[row] = static_cast<int>(given[b]), other_lengths[row] = static_cast<int>(given[given.size() - 1 - b]);
    for (Index t = 0; t < 9; ++t) {
      tokens[9 * row + t] = static_cast<int>(RandomStream(5).below(9 * row + t, 7));
      others[9 * row + t] = static_cast<int>(RandomStream(6).below(9 * row + t, 7));
    }
    first[b].assign(tokens.data() + 9 * row, tokens.data() + 9 * row + lengths[row]);
    second[b].assign(others.data() + 9 * row, others.data() + 9 * row + other_lengths[row]);
  }
  ModelInput<double> in{.sequences = {tokens.view(), lengths.view()}};
  if (lm) in.sequences.lengths = {};
  if (pairs) in.partners = {others.view(), other_lengths.view()};
  Tape<double> tape({.parameters = &parameters});
  const Var<double> logits = model->logits(tape, in);
  PlainHost::Rows expected;
  for (std::size_t b = 0; b < given.size(); ++b)
    for (PlainHost::Row& row : PlainHost(x.model, parameters, false).sequence_logits(first[b], second[b]))
      expected.push_back(std::move(row));
  BOOST_REQUIRE(logits.size() == static_cast<Index>(expected.size() * expected[0].size()));
  check_plain(expected, logits.data(), label);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plain_families)

BOOST_AUTO_TEST_CASE(xcit_by_definition) {
  const Sets keys[] = {{},
                       {"model.lpi=false"},
                       {"model.pos_embed=false"},
                       {"model.tokens_norm=false"},
                       {"model.cls_attention=sima"},
                       {"model.cls_depth=3"},
                       {"model.cls_depth=2", "model.tokens_norm=false", "model.cls_attention=sima"},
                       {"model.bn_group=2"},
                       {"model.patch=2", "model.image=6"},
                       {"model.patch=8", "model.image=16", "model.dim=8"}};
  check_family("xcit", keys);
}

BOOST_AUTO_TEST_CASE(cvt_by_definition) {
  const Sets keys[] = {{},
                       {"model.pool=mean"},
                       {"model.kv_stride=1"},
                       {"model.kv_stride=[1,2]"},
                       {"model.kv_stride=[3,1]"},
                       {"model.qk_scale=width"},
                       {"model.qk_scale=width", "model.qk_norm=true"},
                       {"model.bn_group=2"},
                       {"model.patch=[5,2]", "model.padding=[2,0]", "model.stride=[2,1]"},
                       {"model.depth=[2,1]", "model.act=[\"relu\",\"gelu_tanh\"]"}};
  check_family("cvt", keys);
}

BOOST_AUTO_TEST_CASE(soft_pyramid_by_definition) {
  const Sets keys[] = {{},
                       {"model.pool=mean"},
                       {"model.pos_embed=false"},
                       {"model.bn_group=2"},
                       {"model.stride=[4,2]"},
                       {"model.stride=[1,1]", "model.image=5"},
                       {"model.stride=[2,1,2]", "model.dim=[4,6,4]", "model.depth=[2,1,2]", "model.heads=[2,3,1]",
                        "model.hidden=[5,7,3]", "model.act=[\"relu\",\"quick_gelu\",\"gelu\"]",
                        "attention.mechanism=soft", "attention.vconv=0"}};
  check_family("soft", keys);
}

// Keys that tests/nn/vit_keys.cpp does not cover, such as those of layers around attention and of adder layers.
BOOST_AUTO_TEST_CASE(vit_by_definition) {
  const auto check = [](const Sets& sets) {
    Sets all{"model.channels=2", "model.classes=3", "model.image=6", "model.patch=2",
             "model.dim=6",      "model.depth=2",   "model.heads=2", "model.hidden=5"};
    all.insert(all.end(), sets.begin(), sets.end());
    check_images(load_experiment("models/vit-micro.toml", all), fmt::format("vit, {}", fmt::join(sets, ", ")));
  };
  for (const Sets& sets : around_attention) check(sets);
  for (const char* act : acts) check({std::string("model.act=") + act});
  check({"model.pool=mean", "model.pos_embed=false"});
  check({"model.linear=[\"mul\",\"adder\"]", "model.act=relu"});
  for (const char* act : {"none", "gelu", "relu"}) check({"model.linear=adder", std::string("model.ffn_act=") + act});
  check({"model.linear=adder", "model.gate=true", "model.gate_act=silu", "model.qk_norm=true"});
}

BOOST_AUTO_TEST_CASE(sequences_by_definition) {
  using Change = void (*)(ModelConfig&);
  const Change keys[] = {[](ModelConfig&) {},
                         [](ModelConfig& m) { m.pos_embed = false; },
                         [](ModelConfig& m) { m.qk_norm = true; },
                         [](ModelConfig& m) { m.gate = true; },
                         [](ModelConfig& m) { m.gate = true, m.gate_act = "silu"; },
                         [](ModelConfig& m) { m.act = "relu"; },
                         [](ModelConfig& m) {
                           m.linear = {"adder", "mul"}, m.ffn_act = "relu";
                         }};
  int number = 0;
  for (const Change change : keys) {
    const auto check = [&](const char* task, const Change more) {
      Experiment x = plain_sequence(task);
      change(x.model);
      more(x.model);
      const ModelConfig& m = x.model;
      check_sequences(x, fmt::format("keys {}, {}, pool {}, head {}, pair {}, start {}, tied {}", number, task, m.pool,
                                     m.head, m.pair, m.start, m.tied));
    };
    for (const Change special : {Change([](ModelConfig&) {}), Change([](ModelConfig& m) { m.start = true; }),
                                 Change([](ModelConfig& m) { m.tied = true; })})
      check("lm", special);
    for (const char* task : {"classify", "pair"})
      for (const Change special :
           {Change([](ModelConfig& m) { m.pair = "concat"; }), Change([](ModelConfig& m) { m.pool = "cls"; }),
            Change([](ModelConfig& m) { m.pool = "last"; }), Change([](ModelConfig& m) { m.head = "mlp"; })})
        check(task, special);
    ++number;
  }
}

BOOST_AUTO_TEST_SUITE_END()
