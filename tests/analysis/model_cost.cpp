// Cost of whole models: the counts of the dry run, compared with execution and with formulas derived by hand.
#include "heed/analysis/model_cost.h"

#include "heed/cost/energy.h"
#include "heed/nn/families.h"
#include "heed/nn/vit.h"
#include "heed/base/parallel.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

using namespace heed;

namespace {

/// Returns a model with 16 patches on a grid of 4 x 4; tokens, width, hidden width and classes all differ.
ModelConfig small_model() {
  ModelConfig m;
  m.image = 8, m.channels = 3, m.patch = 2;
  m.dim = 12, m.depth = 2, m.heads = 3, m.hidden = 10, m.classes = 5;
  return m;
}

AttentionConfig attention_of(const std::string& mechanism, const OptionValues& options) {
  AttentionConfig config;
  config.mechanism = {mechanism};
  for (const auto& [name, value] : options) config.options[name] = {value, "test"};
  return config;
}

/// Returns the model with a class token or, if the mechanism rejects that, without one; null if it rejects both.
std::unique_ptr<Model> model_with(ModelConfig config, const AttentionConfig& attention) {
  for (const char* pool : {"cls", "mean"}) try {
      config.pool = pool;
      return std::make_unique<VisionTransformer>(config, attention);
    } catch (const Error&) {
    }
  return {};
}

struct Executed {
  Counts forward, backward;
  Index kept = 0;  ///< elements in the tape's memory before the backward pass
};

/// Returns the operation counts of one image's forward and backward pass, and the elements kept between the passes.
Executed execute(const Model& model, bool training = true) {
  Parameters<Counted> parameters(model.parameters());
  parameters.initialise(1);
  Gradients<Counted> gradients(parameters);
  Tensor<Counted> images(model.example().images.shape());
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(2).normal(i);
  Pass<Counted> pass;
  pass.parameters = &parameters;
  pass.gradients = &gradients;
  pass.training = training;
  std::vector<TraceEntry> trace;
  pass.observers.trace = &trace;
  Tape<Counted> tape(pass);
  Executed executed;
  Counted::tally() = {};
  const Var<Counted> logits = model.logits<Counted>(tape, {images.view()});
  executed.forward = Counted::tally();
  for (const TraceEntry& entry : trace) executed.kept += entry.result.elements() + entry.saved;
  const Tensor<Counted> cotangent(logits.shape());
  Counted::tally() = {};
  tape.backward(logits, cotangent.view());
  executed.backward = Counted::tally();
  return executed;
}

/// Compares stated with executed costs. With `batch_norm`, inference differs from the forward pass of training.
void check_model(const Model& model, const std::string& label, bool batch_norm = false) {
  const int before = threads();
  set_threads(1);  // tallies are per thread
  const Executed executed = execute(model), inference = batch_norm ? execute(model, false) : executed;
  set_threads(before);
  const ModelCost cost = cost_of(model);
  Counts training;
  for (const OperationCost& operation : cost.training) training += operation.cost.forward;
  BOOST_TEST(cost.kept == executed.kept, label << ", kept: stated " << cost.kept << ", ran " << executed.kept);
  const auto check = [&](const char* pass, const Counts& stated, const Counts& ran) {
    for (const CountKind& kind : count_kinds) {
      const Index a = stated.*kind.member, b = ran.*kind.member;
      BOOST_TEST(a == b, label << ", " << pass << ", " << kind.name << ": stated " << a << ", ran " << b);
    }
  };
  check("forward", cost_total(cost, {Convention::all, CostPass::forward}).counts, inference.forward);
  check("forward in training", training, executed.forward);
  check("backward", cost_total(cost, {Convention::all, CostPass::backward}).counts, executed.backward);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model_cost)

BOOST_AUTO_TEST_CASE(the_dry_run_counts_what_a_model_of_any_mechanism_executes) {
  for (const MechanismEntry& entry : mechanisms()) {
    int checked = 0;
    for (const OptionValues& options : entry.variants()) {
      std::string label = entry.name;
      for (const auto& [key, value] : options) label += ", " + key + "=" + value;
      const auto model = model_with(small_model(), attention_of(entry.name, options));
      if (!model) continue;
      check_model(*model, label);
      ++checked;
    }
    BOOST_TEST(checked > 0, entry.name << " fits none of the models");
  }
}

BOOST_AUTO_TEST_CASE(the_dry_run_counts_mechanisms_beside_registers) {
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      ModelConfig config = small_model();
      config.registers = 2;
      std::string label = entry.name + std::string(", registers");
      for (const auto& [key, value] : options) label += ", " + key + "=" + value;
      if (const auto model = model_with(config, attention_of(entry.name, options))) check_model(*model, label);
    }
}

BOOST_AUTO_TEST_CASE(the_dry_run_counts_what_the_layers_around_execute) {
  const AttentionConfig softmax = attention_of("softmax", {});
  const auto check = [&](const std::string& label, const auto& change) {
    ModelConfig config = small_model();
    change(config);
    check_model(VisionTransformer(config, softmax), label);
  };
  check("mean", [](ModelConfig& c) { c.pool = "mean"; });
  check("pooled, then normed", [](ModelConfig& c) { c.pool = "mean", c.pool_norm = "after", c.class_token = true; });
  check("registers", [](ModelConfig& c) { c.registers = 3, c.embed_prefix = false; });
  check("distilled", [](ModelConfig& c) { c.distilled = true; });
  check("factors, no bias", [](ModelConfig& c) { c.block_scale = 0.1, c.qkv_bias = false; });
  check("norm first", [](ModelConfig& c) { c.pre_norm = true, c.act = "quick_gelu"; });
  check("wide images", [](ModelConfig& c) { c.image = Sides(4, 12), c.patch = Sides(1, 3); });
  check("no positions", [](ModelConfig& c) { c.pos_embed = false; });
  check("qk_norm, gate", [](ModelConfig& c) { c.qk_norm = c.gate = true; });
  check("silu gate, relu", [](ModelConfig& c) { c.gate = true, c.gate_act = "silu", c.act = "relu"; });
  check("adder", [](ModelConfig& c) { c.linear = {"adder"}; });
  check("adder and mul", [](ModelConfig& c) { c.linear = {"adder", "mul"}, c.ffn_act = "gelu", c.gate = true; });
  // Only the forward pass of training has dropout.
  const VisionTransformer dropping(small_model(), softmax, 0.1, 0.1);
  Counts training;
  for (const OperationCost& operation : cost_of(dropping).training) training += operation.cost.forward;
  const int before = threads();
  set_threads(1);
  BOOST_TEST((training == execute(dropping).forward));
  set_threads(before);
}

// A step is the forward pass of training, with its dropout, and the backward pass.
BOOST_AUTO_TEST_CASE(a_step_is_both_passes_of_training) {
  const ModelCost cost = cost_of(VisionTransformer(small_model(), attention_of("softmax", {}), 0.1, 0.1));
  for (const Convention convention : {Convention::contractions, Convention::all}) {
    const auto total = [&](CostPass pass) { return cost_total(cost, {convention, pass, CostGroup::layer, 3}); };
    CostRow both = total(CostPass::backward);
    for (const OperationCost& operation : cost.training) {
      both.counts += convention == Convention::all ? operation.cost.forward : operation.cost.forward_contractions;
      both.moved +=
          static_cast<double>(operation.forward.activations) + static_cast<double>(operation.forward.weights) / 3;
    }
    const CostRow step = total(CostPass::step);
    BOOST_TEST((step.counts == both.counts));
    BOOST_TEST(step.moved == both.moved, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(step.parameters == cost.parameters);
  }
}

BOOST_AUTO_TEST_CASE(the_dry_run_counts_what_the_host_families_execute) {
  const auto check = [](const char* family, std::vector<std::string> sets) {
    const std::string label = fmt::format("{}, {}", family, fmt::join(sets, ", "));
    sets.insert(sets.end(), {"model.image=24", "model.channels=2", "model.classes=3"});
    check_model(*make_model(load_experiment(fmt::format("models/{}-micro.toml", family), sets)), label, true);
  };
  check("xcit", {"model.depth=1"});
  check("xcit", {"model.depth=1", "model.cls_attention=sima", "model.act=gelu_tanh", "attention.mechanism=sima"});
  check("xcit", {"model.depth=1", "model.lpi=false", "model.pos_embed=false", "model.tokens_norm=false",
                 "model.cls_depth=2", "model.gate=true"});
  check("cvt", {});
  check("cvt", {"model.pool=mean", "model.kv_stride=[2,1,1]", "attention.mechanism=[\"sima\",\"softmax\",\"xca\"]"});
  check("cvt", {"model.qk_scale=width", "model.qk_norm=true", "model.gate=true", "model.act=quick_gelu"});
  check("soft", {});
  check("soft", {"model.stride=[4,1,2]", "model.pool=mean"});
}

// A training step keeps the elements that its operations hold. Only training has dropout.
BOOST_AUTO_TEST_CASE(operations_hold_what_a_step_keeps) {
  const VisionTransformer model(small_model(), attention_of("softmax", {}), 0.1, 0.1);
  const ModelCost cost = cost_of(model);
  Index held = 0;
  for (const OperationCost& operation : cost.training) held += operation.held;
  BOOST_TEST(held == cost.kept);
  const auto drops = [](const auto& operations) {
    return std::any_of(operations.begin(), operations.end(),
                       [](const auto& o) { return std::string(o.operation) == "dropout"; });
  };
  BOOST_TEST(drops(cost.training));
  BOOST_TEST(!drops(cost.inference));
  for (const bool training : {true, false}) {
    BOOST_TEST(drops(trace_of(model, training)) == training);
    BOOST_TEST(drops(operations_as_run(model, training)) == training);
  }
}

// Operations that training fuses are counted as separate operations, as in papers.
BOOST_AUTO_TEST_CASE(operations_that_are_fused_are_counted_by_themselves) {
  const auto operations = [](const char* linear) {
    ModelConfig config = small_model();
    config.linear = {linear}, config.ffn_act = "relu";
    std::map<std::string, int> counts;
    for (const OperationCost& operation : cost_of(VisionTransformer(config, attention_of("softmax", {}))).training)
      ++counts[operation.operation];
    return counts;
  };
  // Nine linear layers: qkv, proj, fc1 and fc2 in each of two blocks, and the head. Five norms: two in each block, and
  // a final one. Adder layers have further norms.
  using Counts = std::map<std::string, int>;
  const Counts ends{{"patch_embedding", 1}, {"embed_tokens", 1}, {"select_token", 1}};
  Counts mul{{"linear", 9}, {"layer_norm", 5}, {"gelu", 2}, {"softmax", 2}},
      adder{{"linear", 1}, {"adder_linear", 8}, {"layer_norm", 7}, {"layer_norm_parts", 8},
            {"relu", 2},   {"softmax", 2},      {"add", 4}};
  mul.insert(ends.begin(), ends.end()), adder.insert(ends.begin(), ends.end());
  BOOST_TEST((operations("mul") == mul));
  BOOST_TEST((operations("adder") == adder));
}

BOOST_AUTO_TEST_CASE(rows_add_up_to_the_total) {
  const ModelCost cost = cost_of(VisionTransformer(small_model(), attention_of("adder", {})));
  for (const Convention convention : {Convention::contractions, Convention::all})
    for (const CostPass pass : {CostPass::forward, CostPass::backward, CostPass::step})
      for (const CostGroup by : {CostGroup::layer, CostGroup::block, CostGroup::kind}) {
        const CostQuery query{convention, pass, by, 3};
        CostRow sum{"", {}};
        for (const CostRow& row : cost_rows(cost, query)) {
          BOOST_TEST(row.name != "");
          sum.counts += row.counts, sum.moved += row.moved, sum.parameters += row.parameters;
        }
        const CostRow total = cost_total(cost, query);
        BOOST_TEST((sum.counts == total.counts));
        BOOST_TEST(sum.moved == total.moved, boost::test_tools::tolerance(1e-12));  // weights are divided by 3 images
        BOOST_TEST(sum.parameters == cost.parameters);
      }
}

// A minimal model for hand calculation: one token of 2 channels, one head.
BOOST_AUTO_TEST_CASE(traffic_and_memory_by_hand) {
  ModelConfig m;
  m.image = 1, m.channels = 1, m.patch = 1, m.dim = 2, m.depth = 1, m.heads = 1, m.hidden = 3, m.classes = 4;
  m.pool = "mean";
  const ModelCost cost = cost_of(VisionTransformer(m, attention_of("softmax", {})));
  const auto moved = [&](const std::string& layer, CostPass pass, Index batch) {
    for (const CostRow& row : cost_rows(cost, {Convention::all, pass, CostGroup::layer, batch}))
      if (row.name == layer) return row.moved;
    return -1.0;
  };
  // The head reads 2 elements, 8 weights and 4 biases, and writes 4.
  BOOST_TEST(moved("head", CostPass::forward, 1) == 2 + 12 + 4);
  BOOST_TEST(moved("head", CostPass::forward, 2) == 2 + 6 + 4);
  // Its backward pass reads dy 4, x 2 and the parameters 12, and writes dx 2 and the parameters' gradients 12.
  BOOST_TEST(moved("head", CostPass::backward, 1) == 4 + 2 + 12 + 2 + 12);
  // norm1's input is also the residual, so its gradient is added to an existing one: the backward pass reads x 2,
  // statistics 2, dy 2 and the parameters 4, reads and writes dx 2, and writes the parameters' gradients 4.
  BOOST_TEST(moved("blocks.0.norm1", CostPass::backward, 1) == 2 + 2 + 2 + 2 * 2 + 2 * 4);
  // The image's only pixel gets no gradient.
  BOOST_TEST(moved("patch_embed.proj", CostPass::backward, 1) == 2 + 1 + 1 + 2 * 4);
  // Elements saved: patch 1 and its embedding 2, sum with positions 2, three norms of 2 with 2 statistics, qkv 6,
  // attention 2 with its map, whose rows take 16, proj 2, fc1 3, gelu 3, fc2 2, mean 2, head 4.
  BOOST_TEST(cost.kept == 1 + 2 + 2 + 3 * 4 + 6 + (2 + 16) + 2 + 3 + 3 + 2 + 2 + 4);
}

BOOST_AUTO_TEST_CASE(blocks_are_found_in_the_names_of_all_families) {
  const auto parts = [](const char* layer) {
    const BlockName name(layer);
    return fmt::format("{}|{}|{}", name.stem, name.number, name.rest);
  };
  BOOST_TEST(parts("blocks.3.attn.qkv") == "blocks.|3|.attn.qkv");
  BOOST_TEST(parts("blocks.12") == "blocks.|12|");
  BOOST_TEST(parts("stage1.blocks.0.norm1") == "stage1.blocks.|0|.norm1");
  BOOST_TEST(parts("block2.10.mlp.fc1") == "block2.|10|.mlp.fc1");
  BOOST_TEST(parts("cls_attn_blocks.1.attn") == "cls_attn_blocks.|1|.attn");
  for (const char* layer : {"norm", "patch_embed.proj.0.1", "stage1.patch_embed.norm", "head"})
    BOOST_TEST(parts(layer) == std::string(layer) + "|-1|");
}

BOOST_AUTO_TEST_CASE(counts_beyond_64_bits_are_refused) {
  ModelConfig m = small_model();
  m.image = 1'000'000, m.patch = 1, m.dim = 999'999;
  BOOST_CHECK_THROW(cost_of(VisionTransformer(m, attention_of("softmax", {}))), Error);
}

// Each trainable tensor belongs to one row, even if two layers share it: the head of a tied model is the embedding.
BOOST_AUTO_TEST_CASE(rows_of_every_family_add_up_to_the_parameters) {
  const std::pair<const char*, std::vector<std::string>> models[] = {{"vit", {}},
                                                                     {"xcit", {"model.depth=1"}},
                                                                     {"cvt", {}},
                                                                     {"soft", {}},
                                                                     {"sequence", {}},
                                                                     {"text", {}},
                                                                     {"text", {"model.tied=true"}},
                                                                     {"density", {}},
                                                                     {"density", {"model.tied=true"}}};
  for (const auto& [name, sets] : models) {
    const auto model = make_model(load_experiment(fmt::format("models/{}-micro.toml", name), sets));
    const ModelCost cost = cost_of(*model);
    BOOST_TEST(cost.parameters == model->parameters().trainable_elements());
    for (const CostPass pass : {CostPass::forward, CostPass::backward, CostPass::step})
      for (const CostGroup by : {CostGroup::layer, CostGroup::kind}) {
        const CostQuery query{Convention::contractions, pass, by, 2};
        Index sum = 0;
        for (const CostRow& row : cost_rows(cost, query)) sum += row.parameters;
        BOOST_TEST(sum == cost.parameters, name << ", " << fmt::format("{}", fmt::join(sets, ", ")));
        BOOST_TEST(cost_total(cost, query).parameters == cost.parameters);
      }
  }
}

// Layers of a block read 17 rows of 12 or 10 elements; the head reads one row, the class token; the patch embedding
// reads 16 windows of 3 x 2 x 2 elements.
BOOST_AUTO_TEST_CASE(rows_multiplied_by_weights) {
  const ModelCost cost = cost_of(VisionTransformer(small_model(), attention_of("softmax", {})));
  const std::tuple<const char*, double, double> layers[] = {
      {"patch_embed.proj", 16, 12}, {"blocks.1.attn.qkv", 17, 12}, {"blocks.1.attn.proj", 17, 12},
      {"blocks.1.mlp.fc1", 17, 12}, {"blocks.1.mlp.fc2", 17, 10},  {"head", 1, 12}};
  for (const std::vector<OperationCost>* operations : {&cost.inference, &cost.training})
    for (const auto& [layer, rows, width] : layers) {
      double found = 0;
      for (const OperationCost& operation : *operations)
        if (operation.layer == layer) found += operation.rows;
      BOOST_TEST(found == rows * width, boost::test_tools::tolerance(1e-12));
    }
}

BOOST_AUTO_TEST_SUITE_END()
