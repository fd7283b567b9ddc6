// Cosine attention with a learned temperature: a composed mechanism with an option and a parameter.
//
//   S = t q k^T / (|q| |k|)             [N, M], t learned for each head
//   A = softmax(S)
//   out = A v                           [N, e]
//
//   heed plugin cosine.h && heed gradcheck cosine --plugin cosine.so
#pragma once

#include <heed/heed.h>

namespace heed {

class Cosine : public ComposedMechanism<Cosine> {
 public:
  static constexpr const char* mechanism_name = "cosine";
  static constexpr const char* summary = "softmax(t q k^T / (|q| |k|)) v, with t learned for each head";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  double eps = 1e-6;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("eps", eps, "added to the squares of the norms");
  }
  static std::vector<OptionValues> variants() { return {{}, {{"eps", "0.5"}}}; }

  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    return {{.name = "temperature", .shape = {s.heads, 1, 1}, .initial = Initial::constant(4), .decay = false}};
  }

  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const auto unit = [&](Var<T> x) { return x / sqrt(sum(x * x, {-1}, true) + eps); };
    const Var<T> S = step("S", matmul(unit(in.q), transposed(unit(in.k))) * in.parameters[0]);
    const Var<T> A = step("A", softmax(S));
    return matmul(A, in.v);
  }
};

template MechanismEntry mechanism_entry<Cosine>();

}  // namespace heed
