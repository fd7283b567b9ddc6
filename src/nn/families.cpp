#include "heed/nn/families.h"

#include "host_families.h"
#include "mechanism_choice.h"
#include "heed/base/suggest.h"
#include "heed/nn/dino.h"
#include "heed/nn/sequence.h"
#include "heed/nn/vit.h"

namespace heed {

namespace {

constexpr ModelFamily list[] = {
    {"vit",
     [](const Experiment& x) -> std::unique_ptr<Model> {
       return std::make_unique<VisionTransformer>(x.model, x.attention, x.train.dropout, x.train.drop_path);
     }},
    {"xcit", make_xcit},
    {"cvt", make_cvt},
    {"soft-pyramid", make_soft_pyramid},
    {"sequence",
     [](const Experiment& x) -> std::unique_ptr<Model> {
       return std::make_unique<SequenceModel>(x.model, x.attention, x.train.dropout, x.train.drop_path);
     }},
};

}  // namespace

std::span<const ModelFamily> model_families() { return list; }

static std::unique_ptr<Model> make_by_family(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const ModelFamily& family : list) {
    names.emplace_back(family.name);
    if (experiment.model.family != family.name) continue;
    try {
      return family.make(experiment);
    } catch (const Error& error) {
      fail("{}{}", place_of_option(experiment.attention, error.what()), error.what());
    }
  }
  fail("[model] family = {}{}", in_quotes(experiment.model.family), suggestion(experiment.model.family, names));
}

std::unique_ptr<Model> make_model(const Experiment& experiment) {
  if (experiment.self_supervised()) return std::make_unique<DinoModel>(experiment);
  return make_by_family(experiment);
}

std::unique_ptr<Model> make_backbone(const Experiment& experiment) {
  Experiment headless = experiment;
  headless.model.classifier = false;
  return make_by_family(headless);
}

std::string tensor_of_one_size(const ParameterList& a, const ParameterList& b) {
  for (const ParameterSpec& spec : a) {
    const ParameterId id = b.find(spec.name);
    if (id < 0 || spec.positions.height > 0) continue;
    if (!(spec.shape == b[id].shape) || !(spec.initial == b[id].initial)) return spec.name;
  }
  return "";
}

}  // namespace heed
