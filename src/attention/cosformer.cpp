// cosFormer. Qin, Sun, Deng, Li, Wei, Lv, Yan, Kong, Zhong, "cosFormer: Rethinking Softmax in Attention", 2022,
// arXiv:2202.08791v1, Eq. 7 to 12; in two dimensions as in Koohpayegani, Pirsiavash, "SimA", 2022, arXiv:2206.08898v2
// (Appendix).
//
//   A_ij = relu(q_i) relu(k_j) w(i, j)                         [N, M]
//   out_i = sum_j A_ij v_j / (sum_j A_ij + 1e-6)               [N, e]
//   w(i, j) = 1                                                reweight=none
//             cos(t_i - t_j),  t_i = pi/2 i / max(N, M)        1d: falls with the distance, never below 0
//             cos(a_i - a_j) cos(b_i - b_j)                    2d: a = pi/2 row / height, b = pi/2 column / width
//
// A cosine of a difference is a product of features, cos(s - t) = cos s cos t + sin s sin t, so that sums over keys are
// the same for all queries (kernel_attention.h). The features of a token are n copies of relu(x), multiplied by 1
// (n = 1), (cos t, sin t) (n = 2) or (cos a cos b, cos a sin b, sin a cos b, sin a sin b) (n = 4). Time
// 2 (N + M) d e n; no exps.
//
// Differs from the authors' code, which clamps the denominator at 1e-6: here 1e-6 is added, as in linear attention.
// Their indices begin at 1, those here at 0, which is equivalent. A class token has no grid position, so 2d rejects it.
#include "src/attention/shared/image_grid.h"
#include "src/attention/shared/kernel_attention.h"

#include "heed/base/math.h"
#include "heed/kernels/rows/weighted_relu.h"

#include <numbers>

namespace heed {

namespace {

/// Features: relu(x) times each weight of the token, or relu(x) itself without weights. The weights are [positions, 2]
/// along the tokens or [positions, 4] on the grid.
template <class T>
struct ReluFeatures final : KernelFeatures<T> {
  using typename KernelFeatures<T>::Side;

  ReluFeatures(Matrix<T> weights, Index grid_height, Index grid_width)
      : weights(weights), grid_height(grid_height), grid_width(grid_width) {}

  // Computes the weights, which are saved.
  void start() const override {
    const auto angle = [](Index position, Index extent) {
      return std::numbers::pi / 2 * static_cast<double>(position) / static_cast<double>(extent);
    };
    for (Index i = 0; i < weights.rows; ++i) {
      T* const w = weights[i];
      if (weights.columns == 2) {
        const double t = angle(i, weights.rows);
        w[0] = T(math::cos(t)), w[1] = T(math::sin(t));
      } else {
        const double a = angle(i / grid_width, grid_height), b = angle(i % grid_width, grid_width);
        w[0] = T(math::cos(a) * math::cos(b)), w[1] = T(math::cos(a) * math::sin(b));
        w[2] = T(math::sin(a) * math::cos(b)), w[3] = T(math::sin(a) * math::sin(b));
      }
    }
  }

  void make(Side, Index first, Matrix<const T> x, Matrix<T> f) const override {
    kernels::weighted_relu(x, weights_of(first, x.rows), f);
  }
  // Computes dx = sum_a w_a df_a where x > 0.
  void undo(Side, Index first, Matrix<const T> x, Matrix<T>, Matrix<T> df, Update update, Matrix<T> dx) const override {
    kernels::weighted_relu_backward(x, weights_of(first, x.rows), df, update, dx);
  }

 private:
  Matrix<T> weights_of(Index first, Index count) const { return weights ? weights.middle_rows(first, count) : weights; }

  Matrix<T> weights;
  Index grid_height, grid_width;
};

}  // namespace

class Cosformer : public KernelMechanism<Cosformer> {
 public:
  static constexpr const char* mechanism_name = "cosformer";
  static constexpr const char* summary = "relu(q) relu(k)^T v, pairs reweighted by cosines of their distance";
  static constexpr const char* complexity = "time O(N d^2), memory O(N d)";

  enum class Reweight { none, one, two };
  Reweight reweight = Reweight::none;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("reweight", reweight, {"none", "1d", "2d"}, "cosines of distances along the tokens, or the axes of the grid");
  }

  static std::vector<OptionValues> variants() { return {{}, {{"reweight", "1d"}}, {{"reweight", "2d"}}}; }
  static std::vector<MechanismSetting> settings() {
    return {{"cosformer", {}, true}, {"cosformer-1d", {{"reweight", "1d"}}, true}};
  }

  void check(const AttentionShape& s) const override {
    if (reweight == Reweight::two) require_image_grid_alone(s, name(), "reweight is 2d", "none or 1d");
  }

  template <class T>
  ReluFeatures<T> features(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const Index positions = reweight == Reweight::none ? 0 : std::max(s.queries, s.keys);
    return {layout.matrix(positions, positions > 0 ? copies() : 0), s.grid_height, s.grid_width};
  }
  KernelAttention kernel(const AttentionShape& s) const {
    return {.heads = s.heads, .N = s.queries, .M = s.keys, .p = copies() * s.width, .e = s.value_width, .eps = 1e-6};
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index weights = reweight == Reweight::none ? 0 : copies();
    const auto features = [&](Index tokens) { return kernels::weighted_relu_counts(tokens, shape.width, weights); };
    Cost cost = kernel(shape).cost(features(shape.queries), features(shape.keys));
    cost.backward += kernels::weighted_relu_backward_counts(shape.queries + shape.keys, shape.width, weights);
    if (weights > 0) cost.left_out = {.mul = shape.keys * kernel(shape).p};  // sums of weighted keys
    return shape.heads * cost;
  }

 private:
  /// Returns the number of copies of a token in its features.
  Index copies() const { return reweight == Reweight::none ? 1 : reweight == Reweight::one ? 2 : 4; }
};

template MechanismEntry mechanism_entry<Cosformer>();

}  // namespace heed
