#include "definition.h"

#include "definition_text.h"
#include "dual.h"
#include "features.h"

#include "heed/attention/mechanism_base.h"
#include "heed/base/random.h"
#include "heed/base/suggest.h"
#include "heed/base/unicode.h"

#include <algorithm>
#include <cctype>

namespace heed {

namespace {

/// Draws the parts of a definition in order.
class Draw {
 public:
  explicit Draw(const RandomStream& random) : random_(random) {}

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_.below(next_++, static_cast<Index>(values.size()))];
  }
  FeatureMap feature(std::initializer_list<Feature> features) {
    const Feature feature = one_of(features);
    // Two decimals, which are easy to copy: 0.51 to 1.10.
    return {feature, static_cast<double>(51 + random_.below(next_++, 60)) / 100};
  }

 private:
  RandomStream random_;
  Index next_ = 0;
};

constexpr auto positive = {Feature::sigmoid, Feature::softplus, Feature::square, Feature::root, Feature::exp};
constexpr auto any = {Feature::sigmoid, Feature::softplus, Feature::square, Feature::root,
                      Feature::exp,     Feature::silu,     Feature::erf};
constexpr auto gates = {Feature::sigmoid, Feature::silu, Feature::square, Feature::softplus, Feature::erf};

std::string feature_text(const FeatureMap& map, const std::string& of) {
  return fmt::format(fmt::runtime(info_of(map.feature).text), fmt::arg("c", map.c), fmt::arg("x", of));
}

/// Mechanism of a definition, computed step by step as in its equations.
class Defined : public MechanismBase<Defined> {
 public:
  static constexpr const char* mechanism_name = "defined";

  explicit Defined(const Definition& definition) : definition_(definition) {}

  MechanismTraits traits() const override { return {.cross = true}; }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, NoMemory) const {
    for (Index h = 0; h < in.shape.heads; ++h) forward(in.q[h], in.k[h], in.v[h], out[h]);
  }
  /// Uses dual numbers: one forward pass for each element of q, k and v.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, NoMemory,
                    const AttentionGradient<T>& to) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      Tensor<Dual> q = duals(in.q[h]), k = duals(in.k[h]), v = duals(in.v[h]), out({dout[h].rows, dout[h].columns});
      const auto differentiate = [&](Tensor<Dual>& x, Matrix<T> dx) {
        for (Index i = 0; i < x.size(); ++i) {
          x[i].slope = 1;
          forward(matrix(q), matrix(k), matrix(v), Matrix<Dual>(out.data(), dout[h].rows, dout[h].columns));
          x[i].slope = 0;
          double sum = 0;
          for (Index j = 0; j < out.size(); ++j)
            sum += out[j].slope * static_cast<double>(dout[h](j / dout[h].columns, j % dout[h].columns));
          write(to.update, dx(i / dx.columns, i % dx.columns), T(sum));
        }
      };
      differentiate(q, to.q[h]);
      differentiate(k, to.k[h]);
      differentiate(v, to.v[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Tensor<Counted> q({N, d}), k({M, d}), v({M, e}), out({N, e});
    const Counts before = Counted::tally();
    Counted::tally() = {};
    forward(matrix(q), matrix(k), matrix(v), Matrix<Counted>(out.data(), N, e));
    Cost cost;
    cost.forward = Counted::tally();
    Counted::tally() = before;
    cost.backward = 3 * cost.forward;
    const bool pairs = definition_.order == ProductOrder::pairs;
    cost.forward_contractions = pairs ? product_contractions(N, M, d + e) : product_contractions(N + M, d, e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    return shape.heads * cost;
  }

 private:
  template <class T>
  static Matrix<const T> matrix(const Tensor<T>& tensor) {
    return {tensor.data(), tensor.shape()[0], tensor.shape()[1]};
  }
  template <class T>
  static Tensor<Dual> duals(Matrix<const T> x) {
    Tensor<Dual> y({x.rows, x.columns});
    for (Index i = 0; i < y.size(); ++i) y[i] = static_cast<double>(x(i / x.columns, i % x.columns));
    return y;
  }

  /// Returns the feature of x, element by element.
  template <class T>
  static Tensor<T> mapped(const FeatureMap& map, Matrix<const T> x) {
    Tensor<T> y({x.rows, x.columns});
    for (Index i = 0; i < x.rows; ++i)
      for (Index c = 0; c < x.columns; ++c) y[i * x.columns + c] = value_of(map, x(i, c));
    return y;
  }

  /// Divides the vector x[i step], i < count, by its length, sqrt(eps + sum of squares).
  template <class T>
  void normalise(T* x, Index count, Index step) const {
    using std::sqrt;
    T squares(definition_.eps);
    for (Index i = 0; i < count; ++i) squares += x[i * step] * x[i * step];
    const T length = sqrt(squares);
    for (Index i = 0; i < count; ++i) x[i * step] /= length;
  }

  template <class T>
  Tensor<T> features(const FeatureMap& map, Norm norm, Matrix<const T> x) const {
    Tensor<T> y = mapped(map, x);
    if (norm == Norm::token)
      for (Index i = 0; i < x.rows; ++i) normalise(y.data() + i * x.columns, x.columns, 1);
    if (norm == Norm::channel)
      for (Index c = 0; c < x.columns; ++c) normalise(y.data() + c, x.rows, x.columns);
    return y;
  }

  /// Returns x, with each element multiplied by its gate; x itself if the gate is the identity.
  template <class T>
  static Tensor<T> gated(const FeatureMap& gate, Matrix<const T> by, const Tensor<T>& x) {
    Tensor<T> y(x.shape());
    for (Index i = 0; i < by.rows; ++i)
      for (Index c = 0; c < by.columns; ++c) {
        const Index at = i * by.columns + c;
        y[at] = is_map(gate) ? x[at] * value_of(gate, by(i, c)) : x[at];
      }
    return y;
  }

  template <class T>
  static Tensor<T> product(Operand<T> a, Operand<T> b) {
    Tensor<T> y({a.rows, b.columns});
    for (Index i = 0; i < a.rows; ++i)
      for (Index j = 0; j < b.columns; ++j) {
        T sum = a(i, 0) * b(0, j);
        for (Index m = 1; m < a.columns; ++m) sum += a(i, m) * b(m, j);
        y[i * b.columns + j] = sum;
      }
    return y;
  }

  template <class T>
  static Tensor<T> row_sums(Operand<T> a) {
    Tensor<T> sums({a.rows, 1});
    for (Index i = 0; i < a.rows; ++i) {
      sums[i] = a(i, 0);
      for (Index j = 1; j < a.columns; ++j) sums[i] += a(i, j);
    }
    return sums;
  }

  template <class T>
  void forward(Matrix<const T> q, Matrix<const T> k, Matrix<const T> v, Matrix<T> out) const {
    const Definition& x = definition_;
    const Index N = q.rows, M = k.rows, e = v.columns;
    const Tensor<T> F = features(x.query, x.query_norm, q), G = features(x.key, x.key_norm, k);
    const Tensor<T> W = gated(x.key_gate, k, mapped({}, v));
    Tensor<T> P({N, e}), divisors({N, 1});
    if (x.order == ProductOrder::pairs) {
      Tensor<T> E = product<T>(matrix(F), transposed(matrix(G)));
      for (Index i = 0; i < E.size() && is_map(x.score); ++i) E[i] = value_of(x.score, E[i]);
      if (x.by_sums) divisors = row_sums<T>(matrix(E));
      for (Index i = 0; i < N; ++i)
        for (Index j = 0; j < M; ++j) E[i * M + j] /= x.by_sums ? divisors[i] : T(static_cast<double>(M));
      P = product<T>(matrix(E), matrix(W));
    } else {
      const Tensor<T> Z = product<T>(transposed(matrix(G)), matrix(W));
      P = product<T>(matrix(F), matrix(Z));
      if (x.by_sums) divisors = product<T>(matrix(F), matrix(row_sums<T>(transposed(matrix(G)))));
      for (Index i = 0; i < N; ++i)
        for (Index c = 0; c < e; ++c) P[i * e + c] /= x.by_sums ? divisors[i] : T(static_cast<double>(M));
    }
    const Tensor<T> result = gated(x.query_gate, q, P);
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < e; ++c) out(i, c) = result[i * e + c];
  }

  Definition definition_;
};

std::string norm_text(Norm norm, char of, char raw, const Definition& d) {
  if (norm == Norm::token) return fmt::format("{0}_ic = {1}_ic / sqrt({2} + sum_b {1}_ib^2)", of, raw, d.eps);
  return fmt::format("{0}_ic = {1}_ic / sqrt({2} + sum_j {1}_jc^2)", of, raw, d.eps);
}

}  // namespace

void require_composed(const std::string& identity) {
  for (std::size_t at = 0; at < identity.size(); ++at)
    if (const unsigned mark = combining_mark_at(identity, at))
      fail(
          "identity {}: has the combining mark U+{:04X}, so it differs from the same text in composed letters; "
          "expected composed letters (Unicode's form NFC), or ASCII letters",
          in_quotes(identity), mark);
}

std::string plain_identity(std::string identity) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!identity.empty() && is_space(identity.back())) identity.pop_back();
  identity.erase(identity.begin(), std::ranges::find_if_not(identity, is_space));
  require_composed(identity);
  std::ranges::transform(identity, identity.begin(), [](unsigned char c) { return std::tolower(c); });
  return identity;
}

Definition definition_of(const std::string& identity, PersonalTask task) {
  const bool write = task == PersonalTask::write;
  Draw draw(RandomStream(17).derive(plain_identity(identity)).derive(write ? "write" : "repair"));
  Definition d;
  d.order = draw.one_of({ProductOrder::pairs, ProductOrder::state});
  d.by_sums = draw.one_of({true, false});
  const bool scored = d.order == ProductOrder::pairs && draw.one_of({true, false});
  // Positive features keep the divisors away from 0.
  d.query = draw.feature(d.by_sums && !scored ? positive : any);
  d.key = draw.feature(d.by_sums && !scored ? positive : any);
  d.query_norm = draw.one_of({Norm::none, Norm::token, Norm::channel});
  d.key_norm = draw.one_of({Norm::token, Norm::channel});
  if (scored) {
    d.score = draw.feature({Feature::sigmoid, Feature::softplus, Feature::square});
    // F and G divided by their lengths keep the argument of the score moderate.
    if (d.query_norm == Norm::none) d.query_norm = Norm::token;
  }
  d.eps = draw.one_of({0.25, 0.5, 1.0, 2.0});
  if (!write) return d;
  const int gated = draw.one_of({1, 2, 3});
  if (gated != 2) d.query_gate = draw.feature(gates);
  if (gated != 1) d.key_gate = draw.feature(gates);
  return d;
}

std::string equations_of(const Definition& d) {
  std::string text;
  int step = 0;
  const auto say = [&](const std::string& line) { text += fmt::format("  {}. {}\n", ++step, line); };
  const auto features = [&](const FeatureMap& map, Norm norm, char name, const char* x) {
    const char raw = norm == Norm::none ? name : static_cast<char>(name + ('X' - 'F'));
    say(fmt::format("{}_ic = {}", raw, feature_text(map, fmt::format("{}_ic", x))));
    if (norm != Norm::none) say(norm_text(norm, name, raw, d));
  };
  features(d.query, d.query_norm, 'F', "q");
  features(d.key, d.key_norm, 'G', "k");
  std::string W = "v";
  if (is_map(d.key_gate)) {
    say("W_jc = v_jc t, t = " + feature_text(d.key_gate, "k_jc"));
    W = "W";
  }
  const bool gated = is_map(d.query_gate);
  const std::string P = gated ? "P" : "out";
  if (d.order == ProductOrder::pairs) {
    const bool scored = is_map(d.score);
    say(fmt::format("{} = F G^T   [N, M]", scored ? "S" : "E"));
    if (scored) say("E_ij = " + feature_text(d.score, "S_ij"));
    say(d.by_sums ? "A_ij = E_ij / sum_l E_il" : "A_ij = E_ij / M");
    say(fmt::format("{} = A {}   [N, e]", P, W));
  } else {
    say(fmt::format("Z = G^T {}   [d, e]; the product of all pairs is never computed", W));
    if (d.by_sums) say("s_c = sum_j G_jc");
    say(fmt::format("{}_i = F_i Z / {}", P, d.by_sums ? "(F_i s)" : "M"));
  }
  if (gated) say("out_ic = P_ic u, u = " + feature_text(d.query_gate, "q_ic"));
  return text;
}

std::unique_ptr<Mechanism> mechanism_of(const Definition& definition) { return std::make_unique<Defined>(definition); }

}  // namespace heed
