// Attention alone: one head over three tokens, and the gradient with respect to its queries. Prints:
//
//   out =
//   [[[[0.8022, 0.5989],
//      [ 0.424,   0.86],
//      [0.5989, 0.8022]]]]  shape [1, 1, 3, 2]
//   dq =
//   [[[[-0.05609,    0.226],
//      [  0.1727,  -0.2297],
//      [  0.1138, -0.05767]]]]  shape [1, 1, 3, 2]
#include <heed/heed.h>

#include <iostream>

using namespace heed;

int main() {
  const Tensor<float> q({1, 1, 3, 2}, {1, 0, 0, 1, 1, 1});  // [B, H, N, d]
  const Tensor<float> k({1, 1, 3, 2}, {0, 2, 1, 0, 1, 1}), v({1, 1, 3, 2}, {0, 1, 1, 0, 1, 1});

  Tape<float> tape;
  const Var<float> x = tape.input(q.view());
  const auto softmax = make_mechanism("softmax", {});  // or any other name that `heed list` prints
  const Var<float> out = attention(*softmax, x, tape.constant(k.view()), tape.constant(v.view()), {});
  tape.backward(out, v.view());  // dout = v: the loss is sum_i <v_i, out_i>
  std::cout << "out =\n" << out.value() << "\ndq =\n" << tape.gradient(x) << "\n";
}
