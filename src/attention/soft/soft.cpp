// SOFT. Lu, Yao, Zhang, Zhu, Xu, Gao, Xu, Xiang, Zhang, "SOFT: Softmax-free Transformer with Linear Complexity",
// NeurIPS 2021, arXiv:2110.11945v2. A Gaussian kernel between tokens instead of a softmax. q is used as k, so the map
// is a Gram matrix, and m landmarks approximate it (Nystroem).
//
//   G(x, y) = exp(-|x - y|^2 / (2 sqrt(d)))      Eq. 4-5
//   L = landmarks of q          [m, d]           Section 3.2, "Sampling": the paper's Q~
//   A = G(L, L) + ridge I       [m, m]           Eq. 8
//   P = G(L, q)                 [m, N]           Eq. 8
//   X = Newton-Raphson(A)       [m, m]           Eq. 10, Algorithm 2: about A^+
//   out = P^T X P v             [N, d]           Eq. 7 and 9; products from the right, S = P^T X P is never stored
//
//   kernel=exact       S = G(q, q), with which the paper's training did not converge; time O(N^2 d), in blocks of rows
//   normalize=map      S becomes D^-1/2 S D^-1/2, D the row sums of S, at least 1e-6
//   normalize=inverse  X becomes E^-1/2 X E^-1/2, E the row sums of A (the authors' later code)
//
// Time 4 N m d in products, 3 N m d in distances, 4 i m^3 for i iterations and (N + m) m exps; memory N m.
//
// Differs from the paper: the starting factor is 1.8 / |A|^2, as in the authors' code, since the paper's 2 / |A|^2
// (init=plain) stalls if |A| is an eigenvalue. Backtracking tests I - a A A, the iteration's residual; the paper has
// I - a A. The gradient is the derivative of the iteration; the authors' code uses that of the true inverse
// (inverse_grad=implicit). Their code has two additions to the paper:
//
//   landmark_act  L becomes d^(1/4) gelu(norm(L / d^(1/4))), with a norm over d
//   vconv=k       out += a depth-wise k x k convolution of v on the grid, without a class token; one filter per head
//
// Steps 1 to 3, which compute L, A, P and X, and products with S are in map.h.
#include "src/attention/shared/landmarks.h"
#include "map.h"
#include "vconv.h"

#include <numeric>

#include "heed/attention/capabilities/inverse.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/pictures.h"

namespace heed {

class Soft : public MechanismBase<Soft>, public WithMap<Soft>, public PicturesCapability, public InverseCapability {
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
  bool landmark_act = false;
  Index vconv = 0;

  template <class Visitor>
  void options(Visitor& visit) {
    landmark.options(visit);
    visit("ridge", ridge, "added to the diagonal of A");
    visit("iterations", iterations, "Newton-Raphson steps, 0 to 64; in float, more than 30 may show rounding errors");
    visit("init", init, {"damped", "plain", "backtrack"}, "starting factor: 1.8, 2 or 2 b^n over |A|^2");
    visit("inverse_grad", inverse_grad, {"unrolled", "implicit"}, "gradient of the iteration or of the true inverse");
    visit("kernel", kernel, {"nystrom", "exact"}, "nystrom: approximated by landmarks; exact: between all tokens");
    visit("normalize", normalize, {"none", "map", "inverse"}, "matrix normalised by the square roots of its row sums");
    visit("landmark_act", landmark_act, "layer norm and gelu on landmarks");
    visit("vconv", vconv, "odd kernel size of a depth-wise convolution of v, added to the result; 0: none");
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
            {{"ratio", "2"}, {"landmark_act", "true"}, {"iterations", "6"}, {"ridge", "0.1"}},
            {{"ratio", "1"},
             {"sampling", "conv"},
             {"landmark_act", "true"},
             {"iterations", "5"},
             {"ridge", "0.1"},
             {"vconv", "3"}},
            {{"kernel", "exact"}},
            {{"landmarks", "3"}, {"sampling", "first"}, {"normalize", "map"}, {"vconv", "3"}},
            {{"kernel", "exact"}, {"vconv", "5"}},
            {{"kernel", "exact"}, {"normalize", "map"}}};
  }

  static std::vector<OptionNeed> needs() {
    std::vector<OptionNeed> needs{{"dims", "sampling", {"pool"}}};
    for (const char* option : {"sampling", "ratio", "landmarks", "dims", "ridge", "iterations", "init", "inverse_grad"})
      needs.push_back({option, "kernel", {"nystrom"}});
    return needs;
  }
  static std::vector<MechanismSetting> settings() {
    return {{"soft", {{"landmarks", "49"}}, true}, {"soft-exact", {{"kernel", "exact"}}}};
  }

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, dim / heads, 0, dim / heads}; }

  MechanismTraits traits() const override {
    const bool exact_gradient = kernel == Kernel::exact || inverse_grad == InverseGradient::unrolled;
    return {.qk_norm = false,
            .independent_heads = true,
            .surrogate = exact_gradient ? "" : "through A^+ by -X^T dX X^T, the derivative once X has converged"};
  }
  MapTraits map_traits() const override { return {.partial = vconv > 0}; }

  // kernel=exact has no landmarks.
  const InverseCapability* inverse() const override { return kernel == Kernel::nystrom ? this : nullptr; }
  const PicturesCapability* pictures() const override { return kernel == Kernel::nystrom ? this : nullptr; }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    landmark.read_sizes(tensors);
    const auto filters = tensors.find("vconv.weight");
    if (vconv == 0 && filters != tensors.end() && filters->second.rank() == 4) vconv = filters->second[3];
  }

  void check(const AttentionShape& shape) const override {
    require(shape.queries == shape.keys,
            "[soft] there are {} queries and {} keys; the numbers must be equal, since q is also the key",
            shape.queries, shape.keys);
    require(iterations >= 0 && iterations <= 64, "[soft] iterations is {}; expected 0 to 64", iterations);
    require(ridge >= 0 && std::isfinite(ridge), "[soft] ridge is {}; expected a finite number, 0 or more", ridge);
    require(kernel == Kernel::nystrom || normalize != Normalize::inverse,
            "[soft] normalize is inverse; expected none or map, since kernel=exact has no inverse");
    require(kernel == Kernel::nystrom || !landmark_act, "[soft] landmark_act is true; kernel=exact has no landmarks");
    require(vconv == 0 || (vconv > 0 && vconv % 2 == 1 && vconv < 1000),
            "[soft] vconv is {}; expected an odd number up to 999, or 0", vconv);
    require(vconv == 0 ||
                (shape.grid_height > 0 && shape.grid_height * shape.grid_width + shape.class_token == shape.queries),
            "[soft] vconv is {}; its convolution needs an image grid, but {} tokens do not fill {} x {}", vconv,
            shape.queries - shape.class_token, shape.grid_height, shape.grid_width);
    if (kernel == Kernel::nystrom) landmark.check(mechanism_name, shape);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    std::vector<ParameterSpec> list;
    if (kernel == Kernel::nystrom) list = landmark.parameters(shape);
    if (landmark_act) {
      list.push_back({"landmark_norm.weight", {shape.width}, Initial::constant(1), false});
      list.push_back({"landmark_norm.bias", {shape.width}, Initial::constant(0), false});
    }
    if (vconv > 0)
      list.push_back(
          {"vconv.weight", {shape.heads, 1, vconv, vconv}, Initial::uniform(1 / static_cast<double>(vconv))});
    return list;
  }

  template <class T>
  SoftSaved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {setting(shape), layout};
  }
  template <class T>
  struct Scratch {
    SoftScratch<T> map;
    VconvScratch<T> vconv;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const SoftScratch<T> map(setting(shape), layout);
    return {map, {convolution(shape), layout}};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const SoftSaved<T>& saved, const Scratch<T>& all) const {
    const SoftScratch<T>& scratch = all.map;
    each_head(in, saved, scratch, [&](Index h, const SoftMap<T>& S) {
      const Matrix<const T> v = in.v[h];
      // 1. L, 2. A and P, 3. X
      S.make();
      // 4. out = S v; or D^-1/2 S D^-1/2 v with D = S 1
      if (normalize != Normalize::map) return S.multiply({v, saved.Z[h], saved.Y[h]}, out[h]);
      const Matrix<T> D = saved.D[h], w = scratch.w;
      fill(scratch.ones, T(1));
      S.multiply({scratch.ones, saved.Z1[h], saved.Y1[h]}, D);
      kernels::scale_rows(D, v, Update::assign, w);
      S.multiply({w, saved.Z[h], saved.Y[h]}, out[h]);
      kernels::scale_rows(D, out[h], Update::assign, out[h]);
    });
    // 5. out += vconv(v)
    const Vconv convolution = this->convolution(in.shape);
    for (Index h = 0; h < in.shape.heads && vconv > 0; ++h)
      convolution.add(in.v[h], filter(in.parameters.back(), h), all.vconv, out[h]);
  }

  // Undoing 4: out = P^T Y, Y = X Z, Z = P v give, in turn, dY = P dout, dP = Y dout^T; dX = dY Z^T, dZ = X^T dY;
  //   dP += dZ v^T, dv = P^T dZ. With normalize=map, r = D^-1/2, out = r (S w), w = r v: dw = S^T (r dout), dv = r dw,
  //   dD from kernels/rows/row_sums.h, and the gradients of D = S 1 are like those of out.
  // Undoing 3, 2 and 1: map.h.
  // Undoing 5: vconv.h; normalize=map needs out without the convolution.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts, const SoftSaved<T>& saved,
                    const Scratch<T>& all, const AttentionGradient<T>& gradient) const {
    const SoftScratch<T>& scratch = all.map;
    const Vconv convolution = this->convolution(in.shape);
    each_head(in, saved, scratch, [&](Index h, const SoftMap<T>& S) {
      const Matrix<const T> v = in.v[h], dout = douts[h];
      const Matrix<T> dq = gradient.q[h], dv = gradient.v[h];
      // Update of the first contribution to the gradient of S. If S is exact, contributions go directly to dq.
      const Update first = kernel == Kernel::exact ? gradient.update : Update::assign;
      // 4.
      if (normalize != Normalize::map) {
        S.multiply_backward({v, saved.Z[h], saved.Y[h]}, dout, gradient.update, dv, first, dq);
      } else {
        const Matrix<T> D = saved.D[h], w = scratch.w, dw = scratch.dw, dscaled = scratch.dscaled, dD = scratch.dD;
        kernels::scale_rows(D, v, Update::assign, w);
        kernels::scale_rows(D, dout, Update::assign, dscaled);
        S.multiply_backward({w, saved.Z[h], saved.Y[h]}, dscaled, Update::assign, dw, first, dq);
        kernels::scale_rows(D, dw, gradient.update, dv);
        Matrix<const T> out = outs[h];
        if (vconv > 0) out = convolution.without(in.v[h], filter(in.parameters.back(), h), all.vconv, out);
        kernels::row_sums_backward(D, out, dout, w, dw, dD);
        fill(scratch.ones, T(1));
        S.multiply_backward({scratch.ones, saved.Z1[h], saved.Y1[h]}, dD, Update::assign, {}, Update::accumulate, dq);
      }
      // 3., 2. and 1.
      S.make_backward(tensor_gradients(gradient), gradient.update, dq);
    });
    // 5.
    for (Index h = 0; h < in.shape.heads && vconv > 0; ++h)
      convolution.add_backward({in.v[h], filter(in.parameters.back(), h)}, douts[h], all.vconv,
                               {gradient.v[h], filter(gradient.parameters.back(), h)});
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, const SoftSaved<T>& saved, const Scratch<T>& all) const {
    each_head(in, saved, all.map, [&](Index h, const SoftMap<T>& S) {
      const Matrix<T> map = maps[h];
      S.make();
      S.make_map(map);
      if (normalize != Normalize::map) return;
      const Matrix<T> D = saved.D[h];
      for (Index i = 0; i < map.rows; ++i) D(i, 0) = std::accumulate(map[i], map[i] + map.columns, T(0));
      for (Index i = 0; i < map.rows; ++i)
        for (Index j = 0; j < map.columns; ++j)
          map(i, j) *= kernels::inverse_root(D(i, 0)) * kernels::inverse_root(D(j, 0));
    });
  }

  /// Returns A of each head.
  Tensor<float> inverted(const AttentionInput<float>& in) const override {
    return made(in, &SoftSaved<float>::A, [](const SoftMap<float>& S) { S.make_gram(); });
  }

  std::vector<PictureInfo> picture_infos() const override {
    return {{"landmarks", "Similarity of each landmark (row) to each token (column)", PictureAxes::matrix}};
  }

  /// Returns P of each head.
  Tensor<float> picture(const std::string&, const AttentionInput<float>& in) const override {
    return made(in, &SoftSaved<float>::P, [](const SoftMap<float>& S) { S.make(); });
  }

  Cost cost(const AttentionShape& shape) const override {
    const SoftSetting s = setting(shape);
    const auto product = [&](Index e, bool added) {
      return s.exact ? kernels::gaussian_product_cost(s.N, s.d, e, added)
                     : kernels::nystrom_product_cost(s.m, s.N, e, added);
    };
    Cost cost;
    if (!s.exact) {
      // 1. L
      cost += kernels::landmarks_cost(s.landmarks, s.d);
      if (s.activates) cost += SoftMap<float>::activation_cost(s.m, s.d);
      // 2. A and P
      cost += kernels::gaussian_gram_cost(s.m, s.d) + kernels::gaussian_cost(s.m, s.N, s.d);
      cost.forward.add += ridge > 0 ? s.m : 0;
      // 3. X
      cost += kernels::newton_inverse_cost(s.newton, s.unrolled);
      if (s.normalizes_inverse) cost += kernels::scale_inverse_cost(s.m);
    }
    // 4. out; D
    cost += product(s.e, false);
    if (s.normalizes_map) cost += product(1, true) + kernels::row_sums_cost(s.N, s.e);
    // 5. the convolution of v
    if (vconv > 0) cost += convolution(shape).cost(s.normalizes_map);
    if (vconv > 0 && s.normalizes_map) cost.left_out += product_contractions(s.N, s.e, 1);  // D^-1/2
    return shape.heads * cost;
  }

 private:
  Vconv convolution(const AttentionShape& shape) const {
    return {vconv, shape.class_token, {shape.value_width, shape.grid_height, shape.grid_width, vconv, 1, vconv / 2}};
  }

  /// Returns head h's filter of v, or its gradient; `filters` is the last parameter.
  template <class T>
  T* filter(View<T> filters, Index h) const {
    return filters.data() + h * vconv * vconv;
  }

  /// Returns `part` of the saved memory of all heads, [heads, rows, columns], as written by make(S).
  template <class Make>
  Tensor<float> made(const AttentionInput<float>& in, Heads<float> SoftSaved<float>::*part, const Make& make) const {
    const LaidOut<SoftSaved, float> saved(setting(in.shape));
    const LaidOut<SoftScratch, float> scratch(setting(in.shape));
    each_head(in, *saved, *scratch, [&](Index, const SoftMap<float>& S) { make(S); });
    const Heads<float> heads = (*saved).*part;
    Tensor<float> all(Shape{heads.count, heads.first.rows, heads.first.columns});
    std::copy_n(heads.first.data, all.size(), all.data());
    return all;
  }

  template <class T>
  SoftTensors<const T> tensors(const AttentionInput<T>& in) const {
    return with_norm<const T>(landmark.tensor(mechanism_name, in), in.parameters);
  }
  template <class T>
  SoftTensors<T> tensor_gradients(const AttentionGradient<T>& gradient) const {
    return with_norm<T>(kernel == Kernel::exact ? Matrix<T>{} : landmark.tensor_gradient(gradient),
                        gradient.parameters);
  }
  template <class T>
  SoftTensors<T> with_norm(Matrix<T> sampling, std::span<const View<T>> parameters) const {
    const std::size_t norm = landmark.has_tensor();
    if (!landmark_act) return {sampling};
    return {sampling, parameters[norm].data(), parameters[norm + 1].data()};
  }

  SoftSetting setting(const AttentionShape& shape) const {
    const bool exact = kernel == Kernel::exact;
    const kernels::Landmarks landmarks = exact ? kernels::Landmarks{} : landmark.of(shape);
    return {.heads = shape.heads,
            .N = shape.queries,
            .d = shape.width,
            .e = shape.value_width,
            .m = landmarks.count,
            .scale = 1 / (2 * std::sqrt(static_cast<double>(shape.width))),
            .ridge = ridge,
            .exact = exact,
            .normalizes_map = normalize == Normalize::map,
            .normalizes_inverse = normalize == Normalize::inverse,
            .unrolled = inverse_grad == InverseGradient::unrolled,
            .activates = landmark_act,
            .landmarks = landmarks,
            .newton = {landmarks.count, iterations, init}};
  }

  /// Calls f(h, S) for each head.
  template <class T, class F>
  void each_head(const AttentionInput<T>& in, const SoftSaved<T>& saved, const SoftScratch<T>& scratch,
                 const F& f) const {
    const SoftSetting s = setting(in.shape);
    const SoftTensors<const T> own = kernel == Kernel::exact ? SoftTensors<const T>{} : tensors(in);
    for (Index h = 0; h < s.heads; ++h) f(h, SoftMap<T>{s, saved, scratch, h, in.q[h], own});
  }
};

template MechanismEntry mechanism_entry<Soft>();

}  // namespace heed
