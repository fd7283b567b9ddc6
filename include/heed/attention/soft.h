// SOFT. Lu, Yao, Zhang, Zhu, Xu, Gao, Xu, Xiang, Zhang, "SOFT: Softmax-free Transformer with Linear Complexity",
// NeurIPS 2021, arXiv:2110.11945v2. A Gaussian kernel between tokens instead of a softmax. q serves as k, so the map is
// a Gram matrix, and m landmarks approximate it (Nystroem).
//
//   G(x, y) = exp(-|x - y|^2 / (2 sqrt(d)))      Eq. 4-5
//   L = landmarks of q          [m, d]           Section 3.2, "Sampling": its Q~
//   A = G(L, L) + ridge I       [m, m]           Eq. 8
//   P = G(L, q)                 [m, N]           Eq. 8
//   X = Newton-Raphson(A)       [m, m]           Eq. 10, Algorithm 2: about A^+
//   out = P^T X P v             [N, d]           Eq. 7 and 9; from the right, so that S = P^T X P is never made
//
//   kernel=exact       S = G(q, q), with which training did not converge; time O(N^2 d), in blocks of rows
//   normalize=map      S becomes D^-1/2 S D^-1/2, D the row sums of S, at least 1e-6
//   normalize=inverse  X becomes E^-1/2 X E^-1/2, E the row sums of A (the authors' later code)
//
// Time 4 N m d in products, 3 N m d in distances, 4 i m^3 for i iterations and (N + m) m exponentials; memory N m.
// Differs: the starting factor is 1.8 / |A|^2, as in the authors' code, for the paper's 2 / |A|^2 (init=plain) stalls
// where |A| is an eigenvalue. Backtracking tests I - a A A, the iteration's residual, where the paper prints I - a A.
// The gradient is that of the iteration, where the authors' code takes that of the true inverse
// (inverse_grad=implicit). Their LayerNorm and GELU on landmarks and convolution of v are no part of this.
//
// A, P, X and products with S are in soft_map.h.
#pragma once

#include "heed/attention/soft_map.h"
#include "heed/attention/landmarks.h"

#include <numeric>

namespace heed {

class Soft : public MechanismBase<Soft> {
 public:
  static constexpr const char* mechanism_name = "soft";
  static constexpr const char* summary = "G(q, l) G(l, l)^+ G(l, q) v for m landmarks l of q, G a Gaussian kernel";
  static constexpr const char* complexity = "time O(N m d + m^3), memory O(N m)";

  enum class InverseGradient { unrolled, implicit };
  enum class Kernel { nystrom, exact };
  enum class Normalize { none, map, inverse };

  LandmarkOptions landmark{};
  double ridge = 0;
  Index iterations = 20;
  kernels::NewtonStart init = kernels::NewtonStart::damped;
  InverseGradient inverse_grad = InverseGradient::unrolled;
  Kernel kernel = Kernel::nystrom;
  Normalize normalize = Normalize::none;
  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    landmark.options(visit);
    visit("ridge", ridge, "added to the diagonal of A");
    visit("iterations", iterations, "Newton-Raphson steps, 0 to 64; in float, rounding may show above 30");
    visit("init", init, {"damped", "plain", "backtrack"}, "starting factor: 1.8, 2 or 2 b^n over |A|^2");
    visit("inverse_grad", inverse_grad, {"unrolled", "implicit"}, "gradient of the iteration or of the true inverse");
    visit("kernel", kernel, {"nystrom", "exact"}, "by landmarks, or between all tokens");
    visit("normalize", normalize, {"none", "map", "inverse"}, "what is divided by the roots of its row sums");
    visit("causal", causal, "must be false: landmarks see all tokens");
  }

  static std::vector<OptionValues> variants() {
    return {{{"ratio", "2"}},
            {{"ratio", "1"}, {"init", "plain"}, {"iterations", "3"}, {"ridge", "0.01"}},
            {{"landmarks", "9"}, {"init", "backtrack"}, {"iterations", "4"}},
            {{"ratio", "2"}, {"dims", "1"}, {"iterations", "0"}},
            {{"ratio", "2"}, {"sampling", "conv"}, {"normalize", "map"}},
            {{"landmarks", "3"}, {"sampling", "first"}, {"normalize", "inverse"}},
            {{"landmarks", "2"}, {"sampling", "random"}, {"iterations", "5"}},
            {{"landmarks", "1"}, {"sampling", "first"}, {"normalize", "map"}},
            {{"ratio", "2"}, {"inverse_grad", "implicit"}},
            {{"ratio", "2"}, {"inverse_grad", "implicit"}, {"normalize", "inverse"}},
            {{"kernel", "exact"}},
            {{"kernel", "exact"}, {"normalize", "map"}}};
  }

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, dim / heads, 0, dim / heads}; }

  std::string surrogate() const override {
    const bool exact_gradient = kernel == Kernel::exact || inverse_grad == InverseGradient::unrolled;
    return exact_gradient ? "" : "through A^+ by -X^T dX X^T, the derivative once X has converged";
  }

  void read_sizes(const std::map<std::string, Shape>& tensors) override { landmark.read_sizes(tensors); }

  void check(const AttentionShape& shape) const override {
    require(!causal, "[soft] causal is true; expected false, since landmarks see all tokens");
    require(shape.queries == shape.keys,
            "[soft] there are {} queries and {} keys; q serves as k, so they must be the same", shape.queries,
            shape.keys);
    require(iterations >= 0 && iterations <= 64, "[soft] iterations is {}; expected 0 to 64", iterations);
    require(ridge >= 0 && std::isfinite(ridge), "[soft] ridge is {}; expected a finite number, not below 0", ridge);
    require(kernel == Kernel::nystrom || normalize != Normalize::inverse,
            "[soft] normalize is inverse; expected none or map, since kernel=exact has no inverse");
    if (kernel == Kernel::nystrom) landmark.check(mechanism_name, shape);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return kernel == Kernel::nystrom ? landmark.parameters(shape) : std::vector<ParameterSpec>{};
  }

  // Saved per head: L, A, P, X; with normalize=inverse X before and after scaling and E^-1/2; Z = P v and Y = X Z; with
  // normalize=map D, and P 1 and X P 1, from which it comes. All but D is for undoing the step it went into.
  Index saved(const AttentionShape& shape) const override { return shape.heads * map_of(shape).saved(); }

  Index scratch(const AttentionShape& shape) const override {
    const SoftMap s = map_of(shape);
    const Index block = s.exact ? kernels::gaussian_product_scratch(s.N, s.d) : 2 * s.m * s.e;
    const Index inverse = std::max(s.newton.forward_scratch(), s.newton.backward_scratch());
    return (s.map ? s.N * (3 * s.e + 2) : 0) + s.m * (s.N + 2 * s.m + s.d + 1) +
           std::max({block, inverse, s.landmarks.backward_scratch(s.d)});
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const SoftMap s = map_of(in.shape);
    const T* const tensor = landmark.tensor(mechanism_name, in);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const SoftSaved<T> f = s.divide(saved + h * s.saved());
      const Rows<const T> q{in.q[h], in.q.row_stride}, v{in.v[h], in.v.row_stride};
      const Rows<T> result{out[h], out.row_stride};
      // 1. L, 2. A and P, 3. X
      if (!s.exact) s.make(q, tensor, f, scratch);
      // 4. out = S v; or D^-1/2 S D^-1/2 v with D = S 1
      if (!s.map) {
        s.multiply<T>(q, f, s.e, v, f.Z, f.Y, result, scratch);
        continue;
      }
      T *const ones = scratch, *const w = ones + s.N, *const rest = w + s.N * s.e;
      std::fill(ones, ones + s.N, T(1));
      s.multiply<T>(q, f, 1, {ones, 1}, f.Z1, f.Y1, {f.D, 1}, rest);
      kernels::scale_rows(s.N, s.e, f.D, v.data, v.stride, Update::assign, w, s.e);
      s.multiply<T>(q, f, s.e, {w, s.e}, f.Z, f.Y, result, rest);
      kernels::scale_rows<T>(s.N, s.e, f.D, result.data, result.stride, Update::assign, result.data, result.stride);
    }
  }

  // Undoing 4: out = P^T Y, Y = X Z, Z = P v give, in turn, dY = P dout, dP = Y dout^T; dX = dY Z^T, dZ = X^T dY;
  //   dP += dZ v^T, dv = P^T dZ. With normalize=map, r = D^-1/2, out = r (S w), w = r v: dw = S^T (r dout), dv = r dw,
  //   dD from kernels/row_sums.h, and D = S 1 is undone as out is.
  // Undoing 3: kernels/newton_inverse.h.
  // Undoing 2: dL and dq from P; dL from A, whose rows and columns both are landmarks: hence dA + dA^T.
  // Undoing 1: dq from dL.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const SoftMap s = map_of(in.shape);
    const Index m = s.m;
    const T* const tensor = landmark.tensor(mechanism_name, in);
    T* const dtensor = gradient.parameters.empty() ? nullptr : gradient.parameters[0].data();
    for (Index h = 0; h < in.shape.heads; ++h) {
      const SoftSaved<const T> f = s.divide(saved + h * s.saved());
      const Rows<const T> q{in.q[h], in.q.row_stride}, v{in.v[h], in.v.row_stride}, dresult{dout[h], dout.row_stride};
      const Rows<T> dv{gradient.v[h], gradient.v.row_stride};
      SoftGradients<T> df{gradient.update, {gradient.q[h], gradient.q.row_stride}};
      T *const dL = scratch, *const dA = dL + m * s.d, *const dE = dA + m * m;
      df.dX = dE + m, df.dP = df.dX + m * m;
      T* const rest = df.dP + m * s.N;
      // 4.
      if (!s.map) {
        s.multiply_backward<T>(q, f, s.e, v, f.Z, f.Y, dresult, gradient.update, dv, df, rest);
      } else {
        T *const ones = rest, *const dD = ones + s.N, *const w = dD + s.N, *const dscaled = w + s.N * s.e;
        T *const dw = dscaled + s.N * s.e, *const more = dw + s.N * s.e;
        kernels::scale_rows(s.N, s.e, f.D, v.data, v.stride, Update::assign, w, s.e);
        kernels::scale_rows(s.N, s.e, f.D, dresult.data, dresult.stride, Update::assign, dscaled, s.e);
        s.multiply_backward<T>(q, f, s.e, {w, s.e}, f.Z, f.Y, {dscaled, s.e}, Update::assign, {dw, s.e}, df, more);
        kernels::scale_rows<T>(s.N, s.e, f.D, dw, s.e, gradient.update, dv.data, dv.stride);
        kernels::row_sums_backward<T>(s.N, s.e, f.D, out[h], out.row_stride, dresult.data, dresult.stride, w, dw, dD);
        std::fill(ones, ones + s.N, T(1));
        s.multiply_backward<T>(q, f, 1, {ones, 1}, f.Z1, f.Y1, {dD, 1}, Update::assign, {}, df.more(), more);
      }
      if (s.exact) continue;
      // 3.
      if (s.inverse) kernels::scale_inverse_backward(m, f.root, f.scaled, df.dX, dE);
      if (inverse_grad == InverseGradient::unrolled)
        kernels::newton_inverse_backward(s.newton, f.A, df.dX, dA, rest);
      else
        kernels::inverse_backward(m, f.X, df.dX, dA, rest);
      for (Index i = 0; i < m * m && s.inverse; ++i) dA[i] += dE[i / m];
      // 2.
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j <= i; ++j) dA[i * m + j] = dA[j * m + i] = dA[i * m + j] + dA[j * m + i];
      kernels::gaussian_backward(m, s.N, s.d, f.L, s.d, q.data, q.stride, s.scale, f.P, df.dP, s.N, Update::assign, dL,
                                 s.d, gradient.update, df.dq.data, df.dq.stride);
      kernels::gaussian_backward(m, m, s.d, f.L, s.d, f.L, s.d, s.scale, f.A, dA, m, Update::accumulate, dL, s.d,
                                 Update::assign, static_cast<T*>(nullptr), 0);
      // 1.
      kernels::sample_landmarks_backward(s.landmarks, s.d, q.data, q.stride, tensor, dL, df.dq.data, df.dq.stride,
                                         dtensor, rest);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, T* map) const {
    const SoftMap s = map_of(in.shape);
    const T* const tensor = landmark.tensor(mechanism_name, in);
    Buffer<T> saved(s.saved()), scratch(this->scratch(in.shape)), XP(s.m * s.N);
    const SoftSaved<T> f = s.divide(saved.data());
    for (Index h = 0; h < in.shape.heads; ++h, map += s.N * s.N) {
      const Rows<const T> q{in.q[h], in.q.row_stride};
      if (s.exact) {
        kernels::gaussian(s.N, s.N, s.d, q.data, q.stride, q.data, q.stride, s.scale, map, s.N);
      } else {
        s.make(q, tensor, f, scratch.data());
        kernels::gemm(Transpose::no, Transpose::no, s.m, s.N, s.m, f.scaled, s.m, f.P, s.N, Update::assign, XP.data(),
                      s.N);
        kernels::gemm(Transpose::yes, Transpose::no, s.N, s.N, s.m, f.P, s.N, XP.data(), s.N, Update::assign, map, s.N);
      }
      if (!s.map) continue;
      for (Index i = 0; i < s.N; ++i) f.D[i] = std::accumulate(map + i * s.N, map + (i + 1) * s.N, T(0));
      for (Index i = 0; i < s.N; ++i)
        for (Index j = 0; j < s.N; ++j)
          map[i * s.N + j] *= kernels::inverse_root(f.D[i]) * kernels::inverse_root(f.D[j]);
    }
  }

  /// A of each head, [heads, m, m]. Throws Error with kernel=exact, which has none.
  template <class T>
  Tensor<T> landmark_gram(const AttentionInput<T>& in) const {
    require(kernel == Kernel::nystrom, "[soft] kernel is exact; expected nystrom, which has landmarks");
    const SoftMap s = map_of(in.shape);
    const T* const tensor = landmark.tensor(mechanism_name, in);
    Tensor<T> A(Shape{in.shape.heads, s.m, s.m});
    Buffer<T> L(s.m * s.d), scratch(this->scratch(in.shape));
    for (Index h = 0; h < in.shape.heads; ++h)
      s.make_gram<T>({in.q[h], in.q.row_stride}, tensor, L.data(), A.data() + h * s.m * s.m, scratch.data());
    return A;
  }

  Cost cost(const AttentionShape& shape) const override {
    const SoftMap s = map_of(shape);
    const auto product = [&](Index e, bool added) {
      return s.exact ? kernels::gaussian_product_cost(s.N, s.d, e, added)
                     : kernels::nystrom_product_cost(s.m, s.N, e, added);
    };
    Cost cost;
    if (!s.exact) {
      // 1. L
      cost += kernels::landmarks_cost(s.landmarks, s.d);
      // 2. A, of whose gradient the transpose is added, and P
      cost += kernels::gaussian_cost(s.m, s.m, s.d, true) + kernels::gaussian_cost(s.m, s.N, s.d, false);
      cost.forward.add += ridge > 0 ? s.m : 0;
      cost.backward.add += s.m * (s.m + 1) / 2;
      // 3. X
      cost += kernels::newton_inverse_cost(s.newton, inverse_grad == InverseGradient::unrolled);
      if (s.inverse) cost += kernels::scale_inverse_cost(s.m);
    }
    // 4. out; D
    cost += product(s.e, false);
    if (s.map) cost += product(1, true) + kernels::row_sums_cost(s.N, s.e);
    return shape.heads * cost;
  }

 private:
  SoftMap map_of(const AttentionShape& shape) const {
    const bool exact = kernel == Kernel::exact;
    const kernels::Landmarks landmarks = exact ? kernels::Landmarks{} : landmark.of(shape);
    return {shape.queries,
            shape.width,
            shape.value_width,
            landmarks.count,
            1 / (2 * std::sqrt(static_cast<double>(shape.width))),
            exact,
            normalize == Normalize::map,
            normalize == Normalize::inverse,
            ridge,
            landmarks,
            {landmarks.count, iterations, init}};
  }
};

}  // namespace heed
