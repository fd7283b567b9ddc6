// Models with packed weights: each layer declares its weight for the product that it computes.
#include "heed/nn/families.h"
#include "heed/nn/sequence.h"
#include "heed/tape/packed_weights.h"
#include "support/families.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns logits and gradients of a training pass.
std::vector<float> pass_with(const PackedWeights<float>* packed, const Model& model, Parameters<float>& parameters,
                             const ModelInput<float>& examples) {
  Gradients<float> gradients(parameters);
  gradients.reset();
  Tape<float> tape(Pass<float>{.parameters = &parameters,
                               .packed = packed,
                               .gradients = &gradients,
                               .training = true,
                               .execution = {.recomputing = true, .deterministic = true}});
  const Var<float> logits = model.logits(tape, examples);
  tape.backward(logits, logits.value());
  gradients.complete();
  std::vector<float> all(logits.data(), logits.data() + logits.size());
  all.insert(all.end(), gradients.data(), gradients.data() + gradients.trainable_size());
  return all;
}

/// Checks that packed weights change results at most by rounding (a weight packed for another product would change all
/// results), and which tensors are packed.
void check_packed(const Model& model, const ModelInput<float>& examples, const std::string& label) {
  Parameters<float> parameters(model.parameters());
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const ParameterSpec& spec = parameters.list()[id];
    for (Index i = 0; i < parameters[id].size(); ++i)
      parameters[id][i] =
          static_cast<float>((spec.nonnegative ? 1 : 0) + RandomStream(3).derive(spec.name).uniform(i, -0.5, 0.5));
  }
  const std::vector<float> plain = pass_with(nullptr, model, parameters, examples);
  PackedWeights<float> packed;
  packed.pack(Products::exact, parameters, true);
  const std::vector<float> got = pass_with(&packed, model, parameters, examples);
  float most = 0, off = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::abs(plain[i])), off = std::max(off, std::abs(got[i] - plain[i]));
  BOOST_TEST(off <= 1e-4f * most, label << ": off by " << off << " of " << most);
  if (!kernels::packs_weights) return;
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const std::string& name = parameters.list()[id].name;
    for (const char* layer : {".qkv.weight", ".proj_q.weight", ".mlp.fc2.weight", "head.weight"})
      if (name.ends_with(layer)) BOOST_TEST(packed.find(id) != nullptr, label << ": " << name);
    if (name.ends_with(".bias")) BOOST_TEST(packed.find(id) == nullptr, label << ": " << name);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_packed_models)

// Convolutions of the pyramid are strided or centred, those of XCiT strided or depth-wise.
BOOST_AUTO_TEST_CASE(packed_weights_are_those_of_each_product) {
  for (const char* family : {"xcit", "cvt", "soft"}) {
    Experiment x = small_experiment(family);
    x.attention = {};
    const SmallTraining t(x, 4);
    Tensor<float> images(t.images.shape());
    std::transform(t.images.begin(), t.images.end(), images.begin(), [](double v) { return static_cast<float>(v); });
    check_packed(*t.model, {.images = std::as_const(images).view()}, family);
  }
  ModelConfig m;
  m.family = "sequence", m.vocab = 7, m.context = 9, m.pool = "mean", m.classes = 3, m.dim = 6, m.depth = 2;
  m.heads = 2, m.hidden = 5;
  Tensor<int> tokens_given(Shape{2, 9});
  for (Index i = 0; i < 18; ++i) tokens_given[i] = static_cast<int>(i * i % 7);
  const ModelInput<float> sequences{.sequences = {std::as_const(tokens_given).view(), {}}};
  for (const char* task : {"lm", "tied", "classify"}) {
    m.tied = std::string(task) == "tied";
    m.task = m.tied ? "lm" : task;
    check_packed(SequenceModel(m, {}), sequences, task);
  }
}

BOOST_AUTO_TEST_SUITE_END()
