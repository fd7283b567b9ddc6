// An operation of your own: forward, backward and cost on the tape, checked by gradcheck and costcheck.
// docs/adding-an-operation.md explains it. Prints (X: a number that varies):
//
//   magnitude of (3, 4): 5, da = 0.6, db = 0.8
//   operation  tensor  elements  absolute  relative  index  got  expected
//   magnitude  a  6  X  X  X  X  X
//   magnitude  b  6  X  X  X  X  X
//   2 of 2 gradients agree with central differences to 1e-06
//   2 of 2 stated costs agree with the executed operations
//   gradients and costs: right
#include <heed/heed.h>

#include <cmath>
#include <iostream>

using namespace heed;

/// y = sqrt(a^2 + b^2) element-wise, for equal shapes. da += a / y dy, db += b / y dy.
template <class T>
Var<T> magnitude(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("magnitude", a, b);
  require(a.shape() == b.shape(), "[magnitude] a has shape {}, b has {}; they must match", a.shape(), b.shape());
  const Index n = a.size();
  Cost cost;
  cost.forward = {.mul = 2 * n, .add = n, .sqrt = n};
  cost.backward = {.mul = 2 * n, .div = 2 * n};
  return tape.record(
      {"magnitude", cost}, a.shape(), {a, b},
      [=](T* y) {
        using std::sqrt;
        for (Index i = 0; i < n; ++i) y[i] = sqrt(a.data()[i] * a.data()[i] + b.data()[i] * b.data()[i]);
      },
      [=, &tape](const Adjoint<T>& dy) {
        for (const Var<T> x : {a, b})
          if (const auto dx = tape.target(x))
            for (Index i = 0; i < n; ++i) write(dx.update, dx.data[i], x.data()[i] / dy.value()[i] * dy.data()[i]);
      });
}

int main() {
  const Tensor<float> three(Shape{}, {3}), four(Shape{}, {4});
  Tape<float> tape;
  const Var<float> a = tape.input(three.view()), b = tape.input(four.view()), y = magnitude(a, b);
  tape.backward(y);
  std::cout << "magnitude of (3, 4): " << *y.data() << ", da = " << tape.gradient(a)[0]
            << ", db = " << tape.gradient(b)[0] << "\n";

  // Inputs are at least 0.2 from 0, where the square root has no derivative.
  const CheckCase check = check_case("magnitude", {{"a", {2, 3}, -1, 1, 0.2}, {"b", {2, 3}, -1, 1, 0.2}},
                                     [](auto&, const auto& in) { return magnitude(in[0], in[1]); });
  const bool right = print_gradcheck(std::cout, check);
  std::cout << "gradients and costs: " << (right ? "right" : "wrong") << "\n";
  return right ? 0 : 1;
}
