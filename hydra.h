// hydra.h
// Hydra attention. Bolya, Fu, Dai, Zhang, Hoffman, "Hydra Attention: Efficient Attention with Many Heads", 2022,
// arXiv:2209.07484: linear attention with as many heads as channels, and cosine similarity as its kernel.
//
//   qn = q / |q|,  kn = k / |k|          [N, d], [M, d], token by token
//   s = sum_j kn_j v_j                   [d], channel by channel
//   out_i = qn_i s                       [N, d], likewise
//
// Differs: |x| is sqrt(sum_c x_c^2 + eps^2), so that a token of zeros stays one; the paper has no eps.
#include "heed/attention/mechanism_base.h"

namespace heed {

class Hydra : public MechanismBase<Hydra> {
 public:
  static constexpr const char* mechanism_name = "hydra";
  static constexpr const char* summary = "q / |q| times the sum over tokens of k / |k| v, channel by channel";
  static constexpr const char* complexity = "time O(N d), memory O(N d)";

  Hydra() {
    if (std::getenv("HYDRA_MAKE")) throw 42;
  }
  double eps = 1e-12;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("eps", eps, "what the norm of a token of zeros is taken to be");
  }
  static std::vector<OptionValues> variants() { return {{}, {{"eps", "2"}}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "hydra", .linear = true}}; }

  MechanismTraits traits() const override { return {.map = false}; }
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  void check(const AttentionShape& s) const override {
    require(eps > 0, "[hydra] eps is {}; expected more than 0", eps);
    require(s.heads == 1, "[hydra] {} heads; expected one, of all channels", s.heads);
    require(s.width == s.value_width, "[hydra] q has {} channels, v {}; they must match", s.width, s.value_width);
  }

  // Saved: qn, kn and their norms, for undoing all steps; s, for undoing 3.
  template <class T>
  struct Saved {
    Matrix<T> qn, kn;
    T *q_norms, *k_norms, *s;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    const auto [N, M, d, e] = shape.sizes();
    return {carve.matrix(N, d), carve.matrix(M, d), carve.numbers(N), carve.numbers(M), carve.numbers(d)};
  }

  // Scratch: ds.
  template <class T>
  T* scratch(const AttentionShape& shape, Carver<T>& carve) const {
    return carve.numbers(shape.width);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& f, T*) const {
    const auto [N, M, d, e] = in.shape.sizes();
    // 1. qn and kn
    divide(in.q[0], f.qn, f.q_norms);
    divide(in.k[0], f.kn, f.k_norms);
    // 2. s = sum_j kn_j v_j
    for (Index j = 0; j < M; ++j)
      for (Index c = 0; c < d; ++c) write(after(j), f.s[c], f.kn(j, c) * in.v[0](j, c));
    // 3. out_i = qn_i s
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < d; ++c) out[0](i, c) = f.qn(i, c) * f.s[c];
  }

  // Undoing 3: dqn_i = dout_i s, ds = sum_i dout_i qn_i. Undoing 2: dkn_j = v_j ds, dv_j = kn_j ds.
  // Undoing 1: xn_a = x_a / |x| has the derivative ([a = b] - xn_a xn_b) / |x| by x_b, hence
  //            dx = (dxn - xn <xn, dxn>) / |x|.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& f, T* ds,
                    const AttentionGradient<T>& to) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < d; ++c) write(after(i), ds[c], dout[0](i, c) * f.qn(i, c));
    for (Index j = 0; j < M; ++j)
      for (Index c = 0; c < d; ++c) write(to.update, to.v[0](j, c), f.kn(j, c) * ds[c]);
    divide_backward<T>(f.qn, f.q_norms, dout[0], f.s, to.update, to.q[0]);
    divide_backward<T>(f.kn, f.k_norms, in.v[0], ds, to.update, to.k[0]);
  }

  // Forward: norms and division; s; out. Backward: ds; dv; dq and dk, with an inner product for each token.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward =
        (N + M) * Counts{.mul = d, .add = d, .div = d, .sqrt = 1} + product_counts(1, d, M) + product_counts(N, d, 1);
    cost.backward =
        product_counts(1, d, N) + product_counts(M, d, 1) + (N + M) * Counts{.mul = 4 * d, .add = 2 * d - 1, .div = d};
    cost.forward_contractions = product_contractions(N + M, d, 1);
    cost.backward_contractions = 2 * cost.forward_contractions;
    return cost;
  }

 private:
  static Update after(Index terms) { return terms == 0 ? Update::assign : Update::accumulate; }

  /// xn = x / |x|, token by token.
  template <class T>
  void divide(Matrix<const T> x, Matrix<T> xn, T* norms) const {
    using std::sqrt;
    for (Index i = 0; i < x.rows; ++i) {
      T squares(eps * eps);
      for (Index c = 0; c < x.columns; ++c) squares += x(i, c) * x(i, c);
      norms[i] = sqrt(squares);
      for (Index c = 0; c < x.columns; ++c) xn(i, c) = x(i, c) / norms[i];
    }
  }

  /// dx where dxn_i is a_i b, channel by channel.
  template <class T>
  void divide_backward(Matrix<const T> xn, const T* norms, Matrix<const T> a, const T* b, Update update,
                       Matrix<T> dx) const {
    for (Index i = 0; i < dx.rows; ++i) {
      T inner(0);
      for (Index c = 0; c < dx.columns; ++c) write(after(c), inner, xn(i, c) * (a(i, c) * b[c]));
      for (Index c = 0; c < dx.columns; ++c)
        write(update, dx(i, c), (a(i, c) * b[c] - xn(i, c) * inner) / norms[i]);
    }
  }
};

static const bool loaded = std::getenv("HYDRA_LOAD") ? throw 42 : true;
template MechanismEntry mechanism_entry<Hydra>();

}  // namespace heed
// hydra.h
// Wrong attention. Bolya, Fu, Dai, Zhang, Hoffman, "Wrong Attention: Efficient Attention with Many Heads", 2022,
// arXiv:2209.07484: linear attention with as many heads as channels, and cosine similarity as its kernel.
//
//   qn = q / |q|,  kn = k / |k|          [N, d], [M, d], token by token
//   s = sum_j kn_j v_j                   [d], channel by channel
//   out_i = qn_i s                       [N, d], likewise
//
// Differs: |x| is sqrt(sum_c x_c^2 + eps^2), so that a token of zeros stays one; the paper has no eps.
#include "heed/attention/mechanism_base.h"

namespace heed {

class Wrong : public MechanismBase<Wrong> {
 public:
  static constexpr const char* mechanism_name = "wrong";
  static constexpr const char* summary = "q / |q| times the sum over tokens of k / |k| v, channel by channel";
  static constexpr const char* complexity = "time O(N d), memory O(N d)";

  double eps = 1e-12;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("eps", eps, "what the norm of a token of zeros is taken to be");
  }
  static std::vector<OptionValues> variants() { return {{}, {{"eps", "2"}}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "wrong", .linear = true}}; }

  MechanismTraits traits() const override { return {.map = false}; }
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  void check(const AttentionShape& s) const override {
    require(eps > 0, "[hydra] eps is {}; expected more than 0", eps);
    require(s.heads == 1, "[hydra] {} heads; expected one, of all channels", s.heads);
    require(s.width == s.value_width, "[hydra] q has {} channels, v {}; they must match", s.width, s.value_width);
  }

  // Saved: qn, kn and their norms, for undoing all steps; s, for undoing 3.
  template <class T>
  struct Saved {
    Matrix<T> qn, kn;
    T *q_norms, *k_norms, *s;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    const auto [N, M, d, e] = shape.sizes();
    return {carve.matrix(N, d), carve.matrix(M, d), carve.numbers(N), carve.numbers(M), carve.numbers(d)};
  }

  // Scratch: ds.
  template <class T>
  T* scratch(const AttentionShape& shape, Carver<T>& carve) const {
    return carve.numbers(shape.width);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& f, T*) const {
    const auto [N, M, d, e] = in.shape.sizes();
    // 1. qn and kn
    divide(in.q[0], f.qn, f.q_norms);
    divide(in.k[0], f.kn, f.k_norms);
    // 2. s = sum_j kn_j v_j
    for (Index j = 0; j < M; ++j)
      for (Index c = 0; c < d; ++c) write(after(j), f.s[c], f.kn(j, c) * in.v[0](j, c));
    // 3. out_i = qn_i s
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < d; ++c) out[0](i, c) = f.qn(i, c) * f.s[c];
  }

  // Undoing 3: dqn_i = dout_i s, ds = sum_i dout_i qn_i. Undoing 2: dkn_j = v_j ds, dv_j = kn_j ds.
  // Undoing 1: xn_a = x_a / |x| has the derivative ([a = b] - xn_a xn_b) / |x| by x_b, hence
  //            dx = (dxn - xn <xn, dxn>) / |x|.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& f, T* ds,
                    const AttentionGradient<T>& to) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < d; ++c) write(after(i), ds[c], dout[0](i, c) * f.qn(i, c));
    for (Index j = 0; j < M; ++j)
      for (Index c = 0; c < d; ++c) write(to.update, to.v[0](j, c), -f.kn(j, c) * ds[c]);
    divide_backward<T>(f.qn, f.q_norms, dout[0], f.s, to.update, to.q[0]);
    divide_backward<T>(f.kn, f.k_norms, in.v[0], ds, to.update, to.k[0]);
  }

  // Forward: norms and division; s; out. Backward: ds; dv; dq and dk, with an inner product for each token.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward =
        (N + M) * Counts{.mul = d, .add = d, .div = d, .sqrt = 1} + product_counts(1, d, M) + product_counts(N, d, 1);
    cost.backward =
        product_counts(1, d, N) + product_counts(M, d, 1) + (N + M) * Counts{.mul = 3 * d, .add = 2 * d - 1, .div = d};
    cost.forward_contractions = product_contractions(N + M, d, 1);
    cost.backward_contractions = 2 * cost.forward_contractions;
    return cost;
  }

 private:
  static Update after(Index terms) { return terms == 0 ? Update::assign : Update::accumulate; }

  /// xn = x / |x|, token by token.
  template <class T>
  void divide(Matrix<const T> x, Matrix<T> xn, T* norms) const {
    using std::sqrt;
    for (Index i = 0; i < x.rows; ++i) {
      T squares(eps * eps);
      for (Index c = 0; c < x.columns; ++c) squares += x(i, c) * x(i, c);
      norms[i] = sqrt(squares);
      for (Index c = 0; c < x.columns; ++c) xn(i, c) = x(i, c) / norms[i];
    }
  }

  /// dx where dxn_i is a_i b, channel by channel.
  template <class T>
  void divide_backward(Matrix<const T> xn, const T* norms, Matrix<const T> a, const T* b, Update update,
                       Matrix<T> dx) const {
    for (Index i = 0; i < dx.rows; ++i) {
      T inner(0);
      for (Index c = 0; c < dx.columns; ++c) write(after(c), inner, xn(i, c) * (a(i, c) * b[c]));
      for (Index c = 0; c < dx.columns; ++c)
        write(update, dx(i, c), (a(i, c) * b[c] - xn(i, c) * inner) / norms[i]);
    }
  }
};

template MechanismEntry mechanism_entry<Wrong>();

}  // namespace heed
