// SOFT with the first tokens as landmarks. Lu, Yao, Zhang, Zhu, Xu, Gao, Xu, Xiang, Zhang, "SOFT: Softmax-free
// Transformer with Linear Complexity", NeurIPS 2021, arXiv:2110.11945v2.
//
//   G(x, y) = exp(-|x - y|^2 / (2 sqrt(d)))
//   L = the first m tokens of q         [m, d]    (those after the class token)
//   A = G(L, L), P = G(L, q)            [m, m], [m, N]
//   X_0 = a A, a = 1.8 / |A|^2          [m, m]    |A| is the largest row sum
//   X_{k+1} = 2 X_k - X_k A X_k         [m, m]    X is the last one, near the inverse of A
//   out = P^T X P v                     [N, e]
//
// The gradient is exact for these steps, converged or not.
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/distances/gaussian.h"
#include "heed/kernels/products/nystrom.h"

namespace heed {

class MySoft : public MechanismBase<MySoft> {
 public:
  static constexpr const char* mechanism_name = "my_soft";
  static constexpr const char* summary =
      "G(q, l) G(l, l)^-1 G(l, q) v for the first m tokens l of q, G a Gaussian kernel";
  static constexpr const char* complexity = "time O(N m d + m^3), memory O(N m)";

  Index landmarks = 3;
  Index iterations = 20;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("landmarks", landmarks, "m, number of tokens that serve as landmarks");
    visit("iterations", iterations, "Newton-Raphson steps");
  }
  static std::vector<OptionValues> variants() { return {{}, {{"iterations", "2"}}, {{"iterations", "0"}}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "my_soft", .linear = true}}; }

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, dim / heads, 0, dim / heads}; }
  void check(const AttentionShape& shape) const override {
    require(shape.queries == shape.keys,
            "[my_soft] {} queries and {} keys; the numbers must be equal, since q is also the key", shape.queries,
            shape.keys);
    require(landmarks >= 1 && landmarks <= shape.body(),
            "[my_soft] landmarks is {}; expected 1 to {}, the number of tokens", landmarks, shape.body());
    require(iterations >= 0 && iterations <= 64, "[my_soft] iterations is {}; expected 0 to 64", iterations);
  }

  // Saved, for each head: A, P, all X_k stacked, Z = P v and Y = X Z.
  template <class T>
  struct Saved {
    Heads<T> A, P, iterates, Z, Y;

    Matrix<T> X(Index h, Index k) const { return iterates[h].middle_rows(k * A.first.rows, A.first.rows); }
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const auto take = [&](Index rows, Index columns) { return lay_out_heads(s.heads, rows, columns, layout); };
    const Index m = landmarks, N = s.queries, e = s.value_width;
    return {take(m, m), take(m, N), take((iterations + 1) * m, m), take(m, e), take(m, e)};
  }

  // Scratch, for one head: U = X A; gradients of the saved tensors; B and R for undoing 3.
  template <class T>
  struct Scratch {
    Matrix<T> U, dL, dA, dP, dX, dZ, dY, B, R;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const auto take = [&](Index rows, Index columns) { return layout.matrix(rows, columns); };
    const Index m = landmarks, N = s.queries, d = s.width, e = s.value_width;
    return {take(m, m), take(m, d), take(m, m), take(m, N), take(m, m), take(m, e), take(m, e), take(m, m), take(m, m)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& f, const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. L
      const Matrix<const T> q = in.q[h], L = first_tokens(q, in.shape);
      // 2. A and P
      kernels::gaussian(L, L, scale(in.shape), f.A[h]);
      kernels::gaussian(L, q, scale(in.shape), f.P[h]);
      // 3. X
      invert<T>(f, h, scratch.U);
      // 4. out = P^T X P v
      kernels::nystrom_product({f.P[h], f.X(h, iterations), in.v[h], f.Z[h], f.Y[h]}, out[h]);
    }
  }

  // Undoing 4: out = P^T Y, Y = X Z, Z = P v give dP, dX and dv (heed/kernels/products/nystrom.h).
  // Undoing 3: dA from dX, below.
  // Undoing 2: dL and dq from P; dL from A, whose rows and columns are landmarks (heed/kernels/distances/gaussian.h).
  // Undoing 1: the rows of dL are added to those of dq.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& f,
                    const Scratch<T>& to, const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> q = in.q[h], L = first_tokens(q, in.shape);
      // 4.
      kernels::nystrom_product_backward(kernels::NystromProduct<T>{f.P[h], f.X(h, iterations), in.v[h], f.Z[h], f.Y[h]},
                                        dout[h],
                                        {Update::assign, to.dP, to.dX, gradient.update, gradient.v[h], to.dZ, to.dY});
      // 3.
      invert_backward<T>(f, h, to);
      // 2.
      kernels::gaussian_backward({L, q, scale(in.shape), f.P[h]}, to.dP, Update::assign, to.dL, gradient.update,
                                 gradient.q[h]);
      kernels::gaussian_gram_backward({L, L, scale(in.shape), f.A[h]}, to.dA, to.dL);
      // 1.
      const Matrix<T> dq = first_tokens(gradient.q[h], in.shape);
      for (Index i = 0; i < dq.rows; ++i)
        for (Index c = 0; c < dq.columns; ++c) dq(i, c) += to.dL(i, c);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index m = landmarks, N = shape.queries, d = shape.width, e = shape.value_width;
    Cost cost;
    // 2. and 1. A and P; in the backward pass also dL, added to dq
    cost += kernels::gaussian_gram_cost(m, d) + kernels::gaussian_cost(m, N, d);
    cost.backward.add += m * d;
    // 3. X
    cost += inverse_cost();
    // 4. out
    cost += kernels::nystrom_product_cost(m, N, e, false);
    return shape.heads * cost;
  }

 private:
  static double scale(const AttentionShape& shape) { return 1 / (2 * std::sqrt(static_cast<double>(shape.width))); }

  /// Returns the rows of the landmarks.
  template <class T>
  Matrix<T> first_tokens(Matrix<T> tokens, const AttentionShape& shape) const {
    return tokens.middle_rows(shape.class_token, landmarks);
  }

  /// Computes all X_k of head h, f.X(h, 0) to f.X(h, iterations), from A. U [m, m] is scratch memory.
  template <class T>
  void invert(const Saved<T>&, Index, Matrix<T>) const {
    fail("not yet");
  }

  /// Computes to.dA from to.dX, which may be overwritten: undoes the steps, from the last to the first. Write your
  /// equations in a line `// Undoing 3: dA = ....` above run_backward: gradcheck quotes it if a gradient is wrong.
  template <class T>
  void invert_backward(const Saved<T>&, Index, const Scratch<T>&) const {
    fail("not yet");
  }

  /// Returns the cost of invert() and invert_backward().
  Cost inverse_cost() const {
    return {};  // not yet
  }
};

template MechanismEntry mechanism_entry<MySoft>();

}  // namespace heed
