// A program linked from the core alone (CORE in the Makefile): constructs a model without a file and trains it on four
// images.
#include "heed/nn/vit.h"
#include "heed/ops/cross_entropy.h"

#include <cstdio>

using namespace heed;

int main() {
  ModelConfig config;
  config.image = 8, config.channels = 1, config.patch = 2, config.classes = 4;
  config.dim = 16, config.depth = 2, config.heads = 2, config.hidden = 32;
  const VisionTransformer model(config, {});
  Parameters<float> parameters(model.parameters());
  parameters.initialise(1);
  Gradients<float> gradients(parameters);

  Tensor<float> images(Shape{4, 1, 8, 8}), targets(Shape{4, 4});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<float>(RandomStream(2).normal(i));
  for (Index i = 0; i < 4; ++i) targets[i * 5] = 1;

  float first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    gradients.reset();
    Tape<float> tape({.parameters = &parameters, .gradients = &gradients, .training = true});
    const Var<float> logits = model.logits<float>(tape, {std::as_const(images).view()});
    const Var<float> loss = cross_entropy(logits, std::as_const(targets).view(), 0.0, 4);
    tape.backward(loss);
    gradients.complete();
    for (Index i = 0; i < parameters.trainable_size(); ++i) parameters.data()[i] -= 0.1F * gradients.data()[i];
    last = *loss.data();
    if (step == 0) first = last;
  }
  std::printf("loss %.3f, after 200 steps %.3f\n", static_cast<double>(first), static_cast<double>(last));
  return last < first / 2 ? 0 : 1;
}
