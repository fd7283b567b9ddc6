// Nystroemformer. Xiong, Zeng, Chakraborty, Tan, Fung, Li, Singh, "Nystroemformer: A Nystroem-Based Algorithm for
// Approximating Self-Attention", 2021, arXiv:2102.03902v3. Queries are compared with m landmarks instead of all keys,
// and landmarks are compared with the keys.
//
//   ql, kl = landmarks of q, k                  [m, d]      means of segments or cells           Section 3.2
//   F = softmax(q kl^T / sqrt(d))               [N, m]
//   A = softmax(ql kl^T / sqrt(d))              [m, m]
//   B = softmax(ql k^T / sqrt(d))               [m, M]
//   Z close to A^+, the pseudo-inverse          [m, m]      by `iterations` steps                Eq. 11
//   out = F Z B v                               [N, e]      products from the right              Eq. 13
//
// A step is Z <- Z (13 I - W (15 I - W (7 I - W))) / 4 with W = A Z, starting with A^T / (|A|_1 |A|_inf)
// (kernels/solvers/softmax_inverse.h).
//
// landmarks=m: means of m segments of equal length, which divide all tokens in order. A sequence has min(m, N)
// segments, which may overlap if their number does not divide its length. ratio: means of ratio x ratio cells of the
// image grid, without the class token. Time 4 (N + M) m d and 8 m^3 per step; memory (N + M) m.
//
// Differs from the authors' code, which by default scales the initial Z by the largest column sum of the whole batch,
// so that an image's result depends on the other images; here, as in the paper, each matrix is scaled by its own sums.
// The code's depth-wise convolution of v is not included.
#include "src/attention/shared/image_grid.h"

#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/grids/pooling.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/kernels/solvers/softmax_inverse.h"

namespace heed {

class Nystrom : public MechanismBase<Nystrom>, public WithMap<Nystrom> {
 public:
  static constexpr const char* mechanism_name = "nystrom";
  static constexpr const char* summary =
      "softmax maps from queries to m landmarks and from landmarks to keys, with the inverse of the landmarks' map "
      "between them";
  static constexpr const char* complexity = "time O(N m d + m^3), memory O(N m)";

  Index landmarks = 0, ratio = 0, iterations = 6;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("landmarks", landmarks, "number of landmarks, means of equal segments; must divide the number of tokens");
    visit("ratio", ratio, "instead of landmarks: side of the cells of the image grid whose means are the landmarks");
    visit("iterations", iterations, "iterations for the inverse, 0 to 64");
  }

  MechanismTraits traits() const override { return {.independent_heads = true}; }

  static std::vector<OptionValues> variants() {
    return {{{"landmarks", "2"}},
            {{"landmarks", "3"}, {"iterations", "1"}},
            {{"ratio", "2"}},
            {{"landmarks", "1"}, {"iterations", "0"}}};
  }
  static std::vector<MechanismSetting> settings() { return {{"nystrom", {{"landmarks", "16"}}, true}}; }

  void check(const AttentionShape& s) const override {
    constexpr Index most = 16'384;  // since the map between all pairs of landmarks is inverted
    require(iterations >= 0 && iterations <= 64, "[nystrom] iterations is {}; expected 0 to 64", iterations);
    require(landmarks >= 0, "[nystrom] landmarks is {}; expected 1 or more", landmarks);
    require(ratio >= 0, "[nystrom] ratio is {}; expected 1 or more", ratio);
    require((landmarks > 0) != (ratio > 0),
            "[nystrom] landmarks is {}, ratio is {}; set exactly one of them, such as attention.landmarks=49",
            landmarks, ratio);
    if (ratio > 0) {
      require_image_grid(s, name(), fmt::format("ratio is {}", ratio), "landmarks");
      require_cells(s, name(), "ratio", ratio);
    } else {
      require(s.sequence() || (s.queries % landmarks == 0 && s.keys % landmarks == 0),
              "[nystrom] landmarks is {}; it must divide the {} queries and {} keys", landmarks, s.queries, s.keys);
    }
    require(count(s) <= most, "[nystrom] there are {} landmarks; expected at most {}", count(s), most);
  }

  // Saved: all intermediate results, including Y = B v and X = Z Y, for the backward pass.
  template <class T>
  struct Saved {
    Heads<T> ql, kl, F, A, B, Z, Y, X;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const Index m = count(s);
    const auto take = [&](Index rows, Index columns) { return lay_out_heads(s.heads, rows, columns, layout); };
    return {take(m, s.width), take(m, s.width), take(s.queries, m),     take(m, m),
            take(m, s.keys),  take(m, m),       take(m, s.value_width), take(m, s.value_width)};
  }

  // Scratch: gradients of the saved matrices, and the inverse's memory.
  template <class T>
  struct Scratch {
    Matrix<T> dql, dkl, dF, dA, dB, dZ, dY, dX;
    kernels::SoftmaxInverseScratch<T> inverse;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const Index m = count(s);
    return {layout.matrix(m, s.width),
            layout.matrix(m, s.width),
            layout.matrix(s.queries, m),
            layout.matrix(m, m),
            layout.matrix(m, s.keys),
            layout.matrix(m, m),
            layout.matrix(m, s.value_width),
            layout.matrix(m, s.value_width),
            {inverse(s), layout}};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. ql, kl; 2. F, A, B; 3. Z
      make(in, h, saved, scratch);
      // 4. out = F (Z (B v))
      gemm(saved.B[h], in.v[h], saved.Y[h]);
      gemm(saved.Z[h], saved.Y[h], saved.X[h]);
      gemm(saved.F[h], saved.X[h], out[h]);
    }
  }

  // Undoing 4: out = F X, X = Z Y, Y = B v give, in turn, dX = F^T dout, dF = dout X^T; dY = Z^T dX, dZ = dX Y^T;
  //            dv = B^T dY, dB = dY v^T.
  // Undoing 3: kernels/solvers/softmax_inverse.h.
  // Undoing 2: with P = softmax(x y^T / sqrt(d)), dS = P (dP - sum_j P dP) / sqrt(d), dx = dS y, dy = dS^T x.
  // Undoing 1: each of the n tokens of a segment or cell gets 1 / n of its landmark's gradient.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const kernels::Gemm gemm{in.products};
    const kernels::ScoreRows rows = this->rows(in.shape);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h], dout = douts[h];
      const Matrix<const T> ql = saved.ql[h], kl = saved.kl[h];
      const Matrix<T> dq = gradient.q[h], dk = gradient.k[h], dv = gradient.v[h];
      const auto& [dql, dkl, dF, dA, dB, dZ, dY, dX, inverse_memory] = scratch;
      // 4.
      gemm(transposed(saved.F[h]), dout, dX);
      gemm(dout, transposed(saved.X[h]), dF);
      gemm(transposed(saved.Z[h]), dX, dY);
      gemm(dX, transposed(saved.Y[h]), dZ);
      gemm(transposed(saved.B[h]), dY, gradient.update, dv);
      gemm(dY, transposed(v), dB);
      // 3.
      kernels::softmax_inverse_backward(inverse(in.shape), saved.A[h], dZ, inverse_memory, dA);
      // 2. each dS overwrites its dP
      kernels::attention_softmax_backward(rows, saved.F[h], dF);
      kernels::attention_softmax_backward(rows, saved.A[h], dA);
      kernels::attention_softmax_backward(rows, saved.B[h], dB);
      gemm(dF, kl, gradient.update, dq);
      gemm(transposed(dF), q, dkl);
      gemm(dA, kl, dql);
      gemm(transposed(dA), ql, Update::accumulate, dkl);
      gemm(dB, k, Update::accumulate, dql);
      gemm(transposed(dB), ql, gradient.update, dk);
      // 1.
      kernels::pool_cells_backward(cells(in.shape, q.rows), dql, pooled(in.shape, dq));
      kernels::pool_cells_backward(cells(in.shape, k.rows), dkl, pooled(in.shape, dk));
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    const Matrix<T> ZB = scratch.dB;
    for (Index h = 0; h < in.shape.heads; ++h) {
      make(in, h, saved, scratch);
      gemm(saved.Z[h], saved.B[h], ZB);
      gemm(saved.F[h], ZB, map[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = count(shape);
    const kernels::Cells of_q = cells(shape, N), of_k = cells(shape, M);
    Cost cost = kernels::softmax_inverse_cost(inverse(shape));  // 3.
    // 1. ql and kl
    cost.forward += kernels::pool_cells_counts(of_q, d) + kernels::pool_cells_counts(of_k, d);
    cost.backward += kernels::pool_cells_backward_counts(of_q, d) + kernels::pool_cells_backward_counts(of_k, d);
    // 2. F, A and B; dS, dx and dy of each; dql and dkl are each a sum of two of these
    for (const auto& [rows, columns] : {std::pair{N, m}, {m, m}, {m, M}}) {
      cost.forward += product_counts(rows, columns, d) + kernels::attention_softmax_counts(rows, rows * columns);
      cost.backward += kernels::attention_softmax_backward_counts(rows, rows * columns) +
                       product_counts(rows, d, columns) + product_counts(columns, d, rows);
    }
    cost.backward.add += 2 * m * d;
    // 4. Y, X and out; dX, dF, dY, dZ, dv, dB
    cost.forward += product_counts(m, e, M) + product_counts(m, e, m) + product_counts(N, e, m);
    cost.backward += product_counts(m, e, N) + product_counts(N, m, e) + product_counts(m, e, m) +
                     product_counts(m, m, e) + product_counts(M, e, m) + product_counts(m, M, e);
    const Counts products = product_contractions(N + m + M, m, d + e);
    cost.forward_contractions += products;
    cost.backward_contractions += 2 * products;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  static kernels::ScoreRows rows(const AttentionShape& shape) { return {score_scale(shape)}; }

  /// Returns the number of landmarks.
  Index count(const AttentionShape& s) const {
    if (s.sequence()) return std::min(landmarks, s.queries);
    return landmarks > 0 ? landmarks : (s.grid_height / ratio) * (s.grid_width / ratio);
  }
  kernels::SoftmaxInverse inverse(const AttentionShape& s) const { return {count(s), iterations}; }

  /// Return the cells, among `tokens` tokens, whose means are the landmarks, and the rows of x that are divided into
  /// cells.
  kernels::Cells cells(const AttentionShape& s, Index tokens) const {
    if (landmarks > 0) return {1, tokens, 1, count(s)};
    return {s.grid_height, s.grid_width, s.grid_height / ratio, s.grid_width / ratio};
  }
  template <class T>
  Matrix<T> pooled(const AttentionShape& s, Matrix<T> x) const {
    const Index skip = landmarks > 0 ? 0 : s.class_token;
    return x.middle_rows(skip, x.rows - skip);
  }

  template <class T>
  void make(const AttentionInput<T>& in, Index h, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    const Matrix<const T> q = in.q[h], k = in.k[h];
    const Matrix<T> ql = saved.ql[h], kl = saved.kl[h], F = saved.F[h], A = saved.A[h], B = saved.B[h];
    // 1.
    kernels::pool_cells(cells(in.shape, q.rows), pooled(in.shape, q), ql);
    kernels::pool_cells(cells(in.shape, k.rows), pooled(in.shape, k), kl);
    // 2.
    gemm(q, transposed(kl), F);
    gemm(ql, transposed(kl), A);
    gemm(ql, transposed(k), B);
    for (const Matrix<T>& S : {F, A, B}) kernels::attention_softmax(rows(in.shape), S);
    // 3.
    kernels::softmax_inverse(inverse(in.shape), A, scratch.inverse, saved.Z[h]);
  }
};

template MechanismEntry mechanism_entry<Nystrom>();

}  // namespace heed
