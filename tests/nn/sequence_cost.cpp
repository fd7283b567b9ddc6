// Stated costs of sequence models compared with what runs. tests/analysis/model_cost.cpp checks image models.
#include "heed/analysis/model_cost.h"
#include "heed/base/with_threads.h"
#include "heed/cost/counted.h"
#include "heed/cost/energy.h"
#include "heed/nn/sequence.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

constexpr Index sequence_context = 9, sequence_vocab = 7, sequence_dim = 6;

/// Checks the forward and the backward pass of one example. `looked_up` tokens add their gradients to rows of the
/// embedding, which stated costs do not include. For a tied embedding, stated costs include the addition of a whole
/// gradient to the existing one, which is not executed.
void check_sequence_cost(const ModelConfig& config, Index looked_up, const std::string& label) {
  const SequenceModel model(config, {});
  Parameters<Counted> parameters(model.parameters());
  parameters.initialise(1);
  Gradients<Counted> gradients(parameters);
  std::vector<TraceEntry> trace;
  Tape<Counted> tape(Pass<Counted>{
      .parameters = &parameters, .gradients = &gradients, .training = true, .observers = {.trace = &trace}});
  Tensor<int> tokens_given(Shape{1, sequence_context});
  for (Index t = 0; t < sequence_context; ++t) tokens_given[t] = static_cast<int>(t % sequence_vocab);
  const Sequences one{std::as_const(tokens_given).view(), {}};
  Counted::tally() = {};
  const Var<Counted> logits =
      model.logits(tape, ModelInput<Counted>{.sequences = one, .partners = config.task == "pair" ? one : Sequences{}});
  const Counts forward = Counted::tally();
  Index kept = 0;
  for (const TraceEntry& entry : trace) kept += entry.result.elements() + entry.saved;
  const Tensor<Counted> cotangent(logits.shape());
  Counted::tally() = {};
  tape.backward(logits, cotangent.view());
  const Counts backward = Counted::tally();
  const ModelCost cost = cost_of(model);
  const auto stated = [&](CostPass pass) { return cost_total(cost, {Convention::all, pass}).counts; };
  Counts expected = stated(CostPass::backward);
  expected.add += looked_up * sequence_dim;
  if (config.tied) expected.add -= sequence_vocab * sequence_dim;
  BOOST_TEST(cost.kept == kept, label);
  for (const CountKind& kind : count_kinds) {
    BOOST_TEST((stated(CostPass::forward).*kind.member == forward.*kind.member), label << ", forward " << kind.name);
    BOOST_TEST((expected.*kind.member == backward.*kind.member), label << ", backward " << kind.name);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_sequence_cost)

BOOST_AUTO_TEST_CASE(the_dry_run_counts_what_sequence_models_execute) {
  const WithThreads alone(1);  // tallies are per thread
  const auto config = [](const char* task) {
    ModelConfig m;
    m.family = "sequence", m.task = task, m.vocab = sequence_vocab, m.context = sequence_context, m.pool = "mean";
    m.classes = 3, m.dim = sequence_dim, m.depth = 2, m.heads = 2, m.hidden = 5;
    return m;
  };
  ModelConfig lm = config("lm");
  check_sequence_cost(lm, 9, "lm");
  lm.tied = true;
  check_sequence_cost(lm, 9, "lm, tied");
  lm.tied = false, lm.start = true, lm.pos_embed = false;
  check_sequence_cost(lm, 8, "lm, start");
  for (const char* pool : {"mean", "cls", "last"})
    for (const char* head : {"linear", "mlp"}) {
      ModelConfig of_one = config("classify"), of_two = config("pair");
      of_one.pool = of_two.pool = pool, of_one.head = of_two.head = head;
      check_sequence_cost(of_one, 9, fmt::format("classify, {}, {}", pool, head));
      check_sequence_cost(of_two, 18, fmt::format("pair, {}, {}", pool, head));
      of_two.pair = "concat";
      check_sequence_cost(of_two, 18, fmt::format("pair, concat, {}, {}", pool, head));
    }
}

BOOST_AUTO_TEST_SUITE_END()
