#include "heed/nn/families.h"

#include "heed/nn/vit.h"

namespace heed {

namespace {

constexpr ModelFamily list[] = {
    {"vit",
     [](const Experiment& x) -> std::unique_ptr<Model> {
       return std::make_unique<VisionTransformer>(x.model, x.attention, x.train.dropout, x.train.drop_path);
     }},
};

}  // namespace

std::span<const ModelFamily> model_families() { return list; }

std::unique_ptr<Model> make_model(const Experiment& experiment) { return model_families().front().make(experiment); }

}  // namespace heed
