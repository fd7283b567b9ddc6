// A regression with elementary operations: fits the slope and offset of a line to noisy points by minimising the mean
// squared error. Prints (X: a number that varies):
//
//   step 100  loss X
//   step 200  loss X
//   step 300  loss X
//   y = 2.0 x - 1.0
#include <heed/heed.h>

#include <fmt/format.h>
#include <iostream>

using namespace heed;

int main() {
  const Index points = 200;
  Tensor<float> x(Shape{points}), y(Shape{points});
  const RandomStream random(/*seed=*/1);
  for (Index i = 0; i < points; ++i) {
    x[i] = static_cast<float>(random.uniform(i, -1, 1));
    y[i] = 2 * x[i] - 1 + static_cast<float>(0.1 * random.derive("noise").normal(i));
  }

  ParameterList list;
  const ParameterId slope = list.add({.name = "slope", .shape = {1}});
  const ParameterId offset = list.add({.name = "offset", .shape = {1}});
  Parameters<float> weights(list);
  Gradients<float> gradients(weights);
  Optimizer<float> adamw(OptimConfig{}, weights);

  Tape<float> tape;
  for (int step = 1; step <= 300; ++step) {
    tape.begin(weights, gradients);
    const Var<float> line = tape.parameter(slope) * tape.constant(x.view()) + tape.parameter(offset);
    const Var<float> loss = mean_squared_error(line, tape.constant(y.view()));
    tape.backward(loss);
    adamw.step(weights, gradients, {.lr = 0.05});
    if (step % 100 == 0) std::cout << "step " << step << "  loss " << *loss.data() << "\n";
  }
  std::cout << fmt::format("y = {:.1f} x - {:.1f}\n", weights[slope][0], -weights[offset][0]);
}
