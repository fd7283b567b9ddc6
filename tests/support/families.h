// Small models of the host families, and a batch to train them.
#pragma once

#include "heed/nn/families.h"
#include "heed/train/tasks/classification.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace heed::test {

/// Returns an experiment with a model of the family that has small, mostly distinct sizes.
inline Experiment small_experiment(const std::string& family, std::vector<std::string> sets = {}) {
  std::vector<std::string> all{"model.channels=2", "model.classes=3"};
  const auto add = [&](std::initializer_list<const char*> more) { all.insert(all.end(), more.begin(), more.end()); };
  if (family == "xcit")
    add({"model.image=12", "model.dim=6", "model.depth=2", "model.heads=2", "model.hidden=5"});
  else
    add({"model.dim=[4,6]", "model.depth=[1,2]", "model.heads=[2,3]", "model.hidden=[5,7]", "model.stride=[2,2]"});
  if (family == "cvt") add({"model.image=9", "model.patch=[3,3]", "model.padding=[1,1]"});
  if (family == "soft")
    add({"model.image=12", "model.stem=3", "attention.mechanism=[\"soft\",\"softmax\"]", "attention.landmarks=4",
         "attention.vconv=[3,0]"});
  all.insert(all.end(), sets.begin(), sets.end());
  return load_experiment("models/" + family + "-micro.toml", all);
}

/// Images with labels, and a model with random values in all tensors, none zero or one.
struct SmallTraining {
  std::unique_ptr<Model> model;
  Parameters<double> parameters;
  Tensor<double> images, targets;
  std::vector<int> labels;

  explicit SmallTraining(const Experiment& x, Index count = 6)
      : model(make_model(x)),
        parameters(model->parameters()),
        images(Shape{count, 2, x.model.image, x.model.image}),
        targets(Shape{count, 3}) {
    for (ParameterId id = 0; id < parameters.list().size(); ++id) {
      const bool positive = parameters.list()[id].shape.rank() == 1 && !parameters.list()[id].name.ends_with("bias");
      for (Index i = 0; i < parameters[id].size(); ++i)
        parameters[id][i] =
            (positive ? 1 : 0) + RandomStream(3).derive(static_cast<std::uint64_t>(id)).uniform(i, -0.5, 0.5);
    }
    for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(4).normal(i);
    for (Index i = 0; i < count; ++i) {
      labels.push_back(std::array{0, 1, 2, 2, 1, 0}[static_cast<std::size_t>(i % 6)]);
      targets[3 * i + labels.back()] = 1;
    }
  }

  Index count() const { return images.shape()[0]; }
  ClassificationBatch<double> batch() const { return first_images(count()); }
  ClassificationBatch<double> first_images(Index n) const {
    return {ModelInput<double>{.images = images.view().part(0, n)}, targets.view().part(0, n), labels.data()};
  }

  double loss(bool training) {
    Tape<double> tape(
        {.parameters = &parameters, .training = training, .execution = {.recomputing = true, .deterministic = true}});
    const Var<double> logits = batch().logits(*model, tape, {0, 6}, nullptr);
    return *batch().loss(logits, {0, 6}, 6).data();
  }
};

}  // namespace heed::test
