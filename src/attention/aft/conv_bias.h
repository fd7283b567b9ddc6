// Part of AFT (aft.cpp): the biases of conv, which depend only on the mechanism's parameters, and the loss term of
// `entropy`. Per head, with P positions in the window around a query:
//
//   w' = gain (w - mean w) / sqrt(mean (w - mean w)^2 + 1e-5) + bias        Eq. 8; without `reparam` w' = w
//   the biases used: w'; with `gumbel` w' z, where z is a sample softmax((w' + noise) / tau) in training, and one-hot
//   at the largest w' in evaluation.
#pragma once

#include "options.h"

#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/base/math.h"
#include "heed/kernels/rows/softmax.h"

#include <vector>

namespace heed {

struct AftConvBias {
  using Sparsity = AftOptions::Sparsity;

  Index places = 0;  ///< P
  bool reparam = true;
  Sparsity sparsity = Sparsity::none;
  double coefficient = 0.001, tau = 0.5;

  static constexpr double epsilon = 1e-5;

  /// Memory of the biases, a row for each head: `normal` is the normalised w, `deviation` its divisor, `plain` w',
  /// `sample` z, `used` the biases used (`plain` without `gumbel`). In a gradient, only `used` has values.
  template <class T>
  struct Memory {
    Matrix<T> normal, deviation, plain, sample, used;

    operator Memory<const T>() const requires(!std::is_const_v<T>) { return {normal, deviation, plain, sample, used}; }
  };
  template <class T>
  Memory<T> memory(Index heads, MemoryLayout<T>& layout) const {
    Memory<T> bias;
    if (reparam) bias.normal = layout.matrix(heads, places), bias.deviation = layout.matrix(heads, 1);
    bias.plain = bias.used = layout.matrix(heads, places);
    if (sparsity == Sparsity::gumbel)
      bias.sample = layout.matrix(heads, places), bias.used = layout.matrix(heads, places);
    return bias;
  }

  // 1. Computes the biases of head h.
  template <class T>
  void make(const AttentionPreparation<T>& of, Index h, const Memory<T>& bias) const {
    using std::sqrt;
    const Index P = places;
    const T* const w = of.parameters[0].data() + h * P;
    T* const plain = bias.plain[h];
    if (reparam) {
      T* const normal = bias.normal[h];
      T& deviation = bias.deviation(h, 0);
      const T mean = sum(P, [&](Index i) { return w[i]; }) / T(static_cast<double>(P));
      for (Index i = 0; i < P; ++i) normal[i] = w[i] - mean;
      const T variance = sum(P, [&](Index i) { return normal[i] * normal[i]; }) / T(static_cast<double>(P));
      deviation = sqrt(variance + T(epsilon));
      for (Index i = 0; i < P; ++i) {
        normal[i] = normal[i] / deviation;
        plain[i] = of.parameters[1][h] * normal[i] + of.parameters[2][h];
      }
    } else {
      std::copy_n(w, P, plain);
    }
    if (sparsity != Sparsity::gumbel) return;
    T *const sample = bias.sample[h], *const used = bias.used[h];
    if (of.training) {
      for (Index i = 0; i < P; ++i) sample[i] = (plain[i] + of.noise[h * P + i]) / T(tau);
      kernels::softmax_rows(Matrix<T>(sample, 1, P));
    } else {
      Index largest = 0;
      for (Index i = 1; i < P; ++i)
        if (plain[i] > plain[largest]) largest = i;
      for (Index i = 0; i < P; ++i) sample[i] = T(i == largest ? 1 : 0);
    }
    for (Index i = 0; i < P; ++i) used[i] = sample[i] * plain[i];
  }
  Counts make_counts() const {
    const Index P = places;
    Counts counts;
    if (reparam) counts += {.mul = 2 * P, .add = 4 * P - 1, .div = P + 2, .sqrt = 1};
    if (sparsity == Sparsity::gumbel)
      counts += P * Counts{.mul = 1, .add = 1, .div = 1} + kernels::softmax_counts(1, P);
    return counts;
  }

  // Undoing 1: dw' overwrites dused [P]. With z = softmax(l), l = (w' + noise) / tau, used = z w':
  //   dw' = z dused + z (w' dused - sum z w' dused) / tau;   evaluation: z is constant, dw' = z dused.
  // With n = (w - mean) / deviation, w' = gain n + bias:
  //   dgain = sum dw' n,  dbias = sum dw',  dw = gain / deviation (dw' - mean dw' - n mean(dw' n)).
  template <class T>
  void make_backward(const AttentionPreparation<T>& of, Index h, const Memory<const T>& bias, T* dused,
                     std::span<const View<T>> gradient) const {
    const Index P = places;
    const T* const plain = bias.plain[h];
    T *const dw = gradient[0].data() + h * P, *const dplain = dused;
    if (sparsity == Sparsity::gumbel) {
      const T *const sample = bias.sample[h], *const used = bias.used[h];
      if (of.training) {
        const T dot = sum(P, [&](Index i) { return used[i] * dused[i]; });
        for (Index i = 0; i < P; ++i) dplain[i] = sample[i] * (dused[i] + (plain[i] * dused[i] - dot) / T(tau));
      } else {
        for (Index i = 0; i < P; ++i) dplain[i] = sample[i] * dused[i];
      }
    }
    if (!reparam) {
      for (Index i = 0; i < P; ++i) dw[i] += dplain[i];
      return;
    }
    const T* const normal = bias.normal[h];
    const T dgain = sum(P, [&](Index i) { return dplain[i] * normal[i]; });
    const T dbias = sum(P, [&](Index i) { return dplain[i]; });
    gradient[1][h] += dgain;
    gradient[2][h] += dbias;
    const T mean = dbias / T(static_cast<double>(P)), along = dgain / T(static_cast<double>(P));
    const T factor = of.parameters[1][h] / bias.deviation(h, 0);
    for (Index i = 0; i < P; ++i) dw[i] += factor * (dplain[i] - mean - normal[i] * along);
  }
  Counts make_backward_counts() const {
    const Index P = places;
    Counts counts = reparam ? Counts{.mul = 3 * P, .add = 5 * P, .div = 3} : Counts{.add = P};
    if (sparsity == Sparsity::gumbel) counts += {.mul = 3 * P, .add = 3 * P - 1, .div = P};
    return counts;
  }

  /// Returns coef sum_heads H(softmax(w')), H(p) = -sum p log p, the entropy (Eq. 9); dH/dw' = -p (log p + H).
  template <class T>
  T run_penalty(const AttentionPenalty<T>& call) const {
    const Index P = places;
    std::vector<T> numbers(static_cast<std::size_t>(memory_size(call.shape.heads) + 2 * P));
    MemoryLayout<T> layout(numbers.data());
    const Memory<T> bias = memory(call.shape.heads, layout);
    T *const p = layout.numbers(P), *const log_p = layout.numbers(P), *const dplain = log_p;
    const AttentionPreparation<T> own{call.shape, call.parameters, {}, {}, {}};
    T total(0);
    for (Index h = 0; h < call.shape.heads; ++h) {
      make(own, h, bias);
      const T H = entropy<T>(P, bias.plain[h], p, log_p);
      total = h == 0 ? H : total + H;
      if (call.gradient.empty()) continue;
      entropy_backward<T>(P, -(call.factor * T(coefficient)), H, p, dplain);
      make_backward<T>(own, h, bias, dplain, call.gradient);
    }
    return T(coefficient) * total;
  }

  /// Returns the cost of the biases of all heads.
  Cost cost(Index heads) const {
    Cost cost;
    cost.forward = make_counts();
    cost.backward = make_backward_counts();
    cost.attention_exp = cost.forward.exp;
    return heads * cost;
  }

  /// Returns the cost of the penalty. Forward: w', softmax, logarithms, entropies and their sum. Backward: all of these
  /// recomputed, and the gradient.
  Cost penalty_cost(Index heads) const {
    const Index P = places;
    Cost cost;
    cost.forward = heads * (make_counts() + entropy_counts(P)) + Counts{.mul = 1, .add = heads - 1};
    cost.backward = cost.forward + heads * (entropy_backward_counts(P) + make_backward_counts());
    return cost;
  }

 private:
  /// Returns H(p) = -sum p log p for p = softmax(w') of P elements, and writes p and log p.
  template <class T>
  static T entropy(Index P, const T* plain, T* p, T* log_p) {
    using math::log;
    std::copy_n(plain, P, p);
    T kept[2]{};
    kernels::softmax_rows(Matrix<T>(p, 1, P), Matrix<T>(kept, 1, 2));
    const T log_sum = log(kept[1]);
    for (Index i = 0; i < P; ++i) log_p[i] = (plain[i] - kept[0]) - log_sum;
    T H = -p[0] * log_p[0];
    for (Index i = 1; i < P; ++i) H -= p[i] * log_p[i];
    return H;
  }
  static Counts entropy_counts(Index P) {
    return kernels::softmax_counts(1, P) + Counts{.mul = P, .add = 3 * P - 1, .log = 1};
  }

  /// Replaces log p by factor p (log p + H), which is -factor dH/dw'.
  template <class T>
  static void entropy_backward(Index P, T factor, T H, const T* p, T* log_p) {
    for (Index i = 0; i < P; ++i) log_p[i] = factor * (p[i] * (log_p[i] + H));
  }
  static Counts entropy_backward_counts(Index P) { return Counts{.mul = 2 * P + 1, .add = P}; }

  Index memory_size(Index heads) const {
    MemoryLayout<float> layout;
    memory(heads, layout);
    return layout.taken();
  }

  /// Returns term(0) + ... + term(n - 1).
  template <class F>
  static auto sum(Index n, const F& term) {
    auto total = term(0);
    for (Index i = 1; i < n; ++i) total += term(i);
    return total;
  }
};

}  // namespace heed
