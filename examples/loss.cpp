// A value computed with elementary operations, and its gradient; docs/operations.md lists the operations. Prints:
//
//   0.3565  shape []
//   [   0.0367,    0.1411, 1.663e-06]  shape [3]
#include <heed/heed.h>

#include <iostream>

int main() {
  const heed::Tensor<double> x({2, 3}, {1, 2, 3, 4, 5, 6}), w({3}, {0.5, -1, 2});
  heed::Tape<double> tape;
  const auto a = tape.input(x.view()), b = tape.input(w.view());
  const auto loss = mean(tanh(a * b + 1.0));
  tape.backward(loss);
  std::cout << loss.value() << "\n" << tape.gradient(b) << "\n";
}
