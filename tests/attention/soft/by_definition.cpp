// SOFT compared with its definition, for every option. The gradient of inverse_grad=implicit equals that of the
// iteration only once the iteration has converged: soft.cpp compares the two.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

struct SoftCase {
  OptionValues options;
  Index height, width;    ///< size of the grid
  Index class_token = 0;  ///< number of tokens before the grid: a class token, registers
  bool sequence = false;
  Index longest = 0;  ///< length of the longest sequence; 0: the number of tokens

  std::string get(const char* name, const char* fallback) const {
    const auto found = options.find(name);
    return found == options.end() ? fallback : found->second;
  }
  Index number(const char* name, const char* fallback) const { return std::stoll(get(name, fallback)); }
  Index tokens() const { return height * width + class_token; }
};

constexpr Index soft_width = 3, soft_values = 4, soft_heads = 2;

double gelu_of(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }

SlowMatrix transposed(const SlowMatrix& x) {
  SlowMatrix y(x.columns, x.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j) y(j, i) = x(i, j);
  return y;
}

SlowMatrix gaussian(const SlowMatrix& x, const SlowMatrix& y) {
  SlowMatrix G(x.rows, y.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < y.rows; ++j) {
      double square = 0;
      for (Index c = 0; c < x.columns; ++c) square += std::pow(x(i, c) - y(j, c), 2);
      G(i, j) = std::exp(-square / (2 * std::sqrt(static_cast<double>(x.columns))));
    }
  return G;
}

/// Returns the tokens of each landmark, numbered from the first token of the grid.
std::vector<std::vector<Index>> cells_of(const SoftCase& c) {
  std::vector<std::vector<Index>> cells;
  const Index ratio = c.number("ratio", "0"), landmarks = c.number("landmarks", "0");
  if (c.get("dims", "2") == "1" && ratio > 0) {
    for (Index first = 0; first < c.height * c.width; first += ratio) {
      cells.emplace_back();
      for (Index t = first; t < std::min(first + ratio, c.height * c.width); ++t) cells.back().push_back(t);
    }
    return cells;
  }
  const Index side = std::lround(std::sqrt(static_cast<double>(landmarks)));
  const Index rows = ratio > 0 ? c.height / ratio : c.sequence ? 1 : side;
  const Index columns = ratio > 0 ? c.width / ratio : c.sequence ? std::min(landmarks, c.width) : side;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      cells.emplace_back();
      for (Index y = i * c.height / rows; y < ((i + 1) * c.height + rows - 1) / rows; ++y)
        for (Index x = j * c.width / columns; x < ((j + 1) * c.width + columns - 1) / columns; ++x)
          cells.back().push_back(y * c.width + x);
    }
  return cells;
}

SlowMatrix landmarks_of(const SoftCase& c, const DefinitionHead& x) {
  const std::string sampling = c.get("sampling", "pool");
  const auto row = [&](Index token, Index channel) { return x.q(token + c.class_token, channel); };
  const Index d = x.d();
  if (sampling == "first" || sampling == "random") {
    SlowMatrix L(std::min(c.number("landmarks", "0"), c.height * c.width), d);
    for (Index i = 0; i < L.rows; ++i)
      for (Index e = 0; e < d; ++e)
        L(i, e) = sampling == "first" ? row(i, e) : x.q(static_cast<Index>(x.x.at("landmark_index")[i]), e);
    return L;
  }
  const std::vector<std::vector<Index>> cells = cells_of(c);
  SlowMatrix L(static_cast<Index>(cells.size()), d);
  for (Index i = 0; i < L.rows; ++i) {
    const std::vector<Index>& cell = cells[static_cast<std::size_t>(i)];
    for (std::size_t t = 0; t < cell.size(); ++t)
      for (Index e = 0; e < d; ++e) {
        if (sampling == "pool") L(i, e) += row(cell[t], e) / static_cast<double>(cell.size());
        for (Index from = 0; from < d && sampling == "conv"; ++from)  // a cell's tokens are in a filter's order
          L(i, e) +=
              x.x.at("landmark.weight")[(e * d + from) * static_cast<Index>(cell.size()) + static_cast<Index>(t)] *
              row(cell[t], from);
      }
  }
  return L;
}

SlowMatrix activated(const DefinitionHead& x, SlowMatrix L) {
  const double root = std::pow(static_cast<double>(L.columns), 0.25), d = static_cast<double>(L.columns);
  for (Index i = 0; i < L.rows; ++i) {
    double mean = 0, variance = 0;
    for (Index e = 0; e < L.columns; ++e) mean += L(i, e) / root / d;
    for (Index e = 0; e < L.columns; ++e) variance += std::pow(L(i, e) / root - mean, 2) / d;
    for (Index e = 0; e < L.columns; ++e)
      L(i, e) =
          root * gelu_of((L(i, e) / root - mean) / std::sqrt(variance + 1e-5) * x.x.at("landmark_norm.weight")[e] +
                         x.x.at("landmark_norm.bias")[e]);
  }
  return L;
}

double column_norm(const SlowMatrix& x) {
  double most = 0;
  for (Index j = 0; j < x.columns; ++j) {
    double sum = 0;
    for (Index i = 0; i < x.rows; ++i) sum += std::abs(x(i, j));
    most = std::max(most, sum);
  }
  return most;
}

SlowMatrix newton_inverse(const SoftCase& c, const SlowMatrix& A) {
  const std::string init = c.get("init", "damped");
  double a = (init == "damped" ? 1.8 : 2) / std::pow(column_norm(A), 2);
  for (int n = 0; init == "backtrack" && n < 10; ++n, a /= 2) {
    SlowMatrix residual = A * A;
    for (Index i = 0; i < A.rows; ++i)
      for (Index j = 0; j < A.rows; ++j) residual(i, j) = (i == j) - a * residual(i, j);
    if (column_norm(residual) <= 1.01) break;
  }
  SlowMatrix X = A;
  for (double& value : X.values) value *= a;
  for (Index i = 0; i < c.number("iterations", "20"); ++i) {
    const SlowMatrix XAX = X * A * X;
    for (std::size_t e = 0; e < X.values.size(); ++e) X.values[e] = 2 * X.values[e] - XAX.values[e];
  }
  return X;
}

/// Returns D^-1/2 x D^-1/2, where D is the diagonal matrix of the row sums of `of`, each at least `least`.
SlowMatrix divided_by_roots(SlowMatrix x, const SlowMatrix& of, double least) {
  std::vector<double> roots;
  for (Index i = 0; i < of.rows; ++i) {
    double sum = 0;
    for (Index j = 0; j < of.columns; ++j) sum += of(i, j);
    roots.push_back(std::sqrt(std::max(sum, least)));
  }
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j)
      x(i, j) /= roots[static_cast<std::size_t>(i)] * roots[static_cast<std::size_t>(j)];
  return x;
}

HeadDefinition soft_definition(const SoftCase& c) {
  return [c](const DefinitionHead& x) {
    SlowMatrix q(x.N(), x.d()), v(x.M(), soft_values);
    for (Index i = 0; i < x.N(); ++i) {
      for (Index e = 0; e < x.d(); ++e) q(i, e) = x.q(i, e);
      for (Index e = 0; e < soft_values; ++e) v(i, e) = x.v(i, e);
    }
    SlowMatrix map = gaussian(q, q);
    if (c.get("kernel", "nystrom") == "nystrom") {
      SlowMatrix L = landmarks_of(c, x);
      if (c.get("landmark_act", "false") == "true") L = activated(x, L);
      SlowMatrix A = gaussian(L, L);
      for (Index i = 0; i < A.rows; ++i) A(i, i) += std::stod(c.get("ridge", "0"));
      SlowMatrix X = newton_inverse(c, A);
      if (c.get("normalize", "none") == "inverse") X = divided_by_roots(X, A, 0);
      const SlowMatrix P = gaussian(L, q);
      map = transposed(P) * X * P;
    }
    if (c.get("normalize", "none") == "map") map = divided_by_roots(map, map, 1e-6);
    SlowMatrix out = map * v;
    const Index k = c.number("vconv", "0");
    for (Index t = 0; t < c.height * c.width; ++t)
      for (Index i = 0; i < k; ++i)
        for (Index j = 0; j < k; ++j) {
          const Index y = t / c.width + i - k / 2, z = t % c.width + j - k / 2;
          if (y < 0 || z < 0 || y >= c.height || z >= c.width) continue;
          for (Index e = 0; e < soft_values; ++e)
            out(t + c.class_token, e) +=
                x.x.at("vconv.weight")[(x.head * k + i) * k + j] * v(y * c.width + z + c.class_token, e);
        }
    return DefinedHead{map, out};
  };
}

Tensors soft_operands(const SoftCase& c) {
  const Index N = c.tokens(), ratio = c.number("ratio", "0"), k = c.number("vconv", "0");
  Tensors x{{"q", random_tensor({2, soft_heads, N, soft_width}, 1, 2)},
            {"v", random_tensor({2, soft_heads, N, soft_values}, 2)},
            {"dout", random_tensor({2, soft_heads, N, soft_values}, 3)}};
  const std::string sampling = c.get("sampling", "pool");
  if (sampling == "conv") x["landmark.weight"] = random_tensor({soft_width, soft_width, ratio, ratio}, 4);
  if (sampling == "random") {
    x["landmark_index"] = Tensor<double>(Shape{c.number("landmarks", "0")});
    for (Index i = 0; i < x["landmark_index"].size(); ++i) x["landmark_index"][i] = static_cast<double>(N - 1 - 2 * i);
  }
  if (c.get("landmark_act", "false") == "true") {
    x["landmark_norm.weight"] = random_tensor({soft_width}, 5, 2);
    x["landmark_norm.bias"] = random_tensor({soft_width}, 6);
  }
  if (k > 0) x["vconv.weight"] = random_tensor({soft_heads, 1, k, k}, 7);
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(soft_by_definition)

BOOST_AUTO_TEST_CASE(every_option) {
  std::vector<SoftCase> cases;
  const auto add = [&](const OptionValues& options, Index height, Index width, Index class_token = 0) {
    cases.push_back({options, height, width, class_token});
    cases.back().options.try_emplace("iterations", "4");  // few iterations, so that each affects the result
    if (options.contains("kernel")) cases.back().options.erase("iterations");
  };
  for (const Index cls : {0, 1, 3}) {
    add({{"ratio", "2"}}, 4, 6, cls);
    add({{"ratio", "2"}, {"sampling", "conv"}}, 4, 6, cls);
    add({{"landmarks", "4"}}, 3, 5, cls);  // adaptive cells that overlap
    add({{"landmarks", "9"}}, 4, 4, cls);
    add({{"landmarks", "5"}, {"sampling", "first"}}, 3, 4, cls);
    add({{"landmarks", "4"}, {"sampling", "random"}}, 3, 4, cls);
    add({{"ratio", "3"}, {"dims", "1"}}, 3, 4, cls);
    add({{"ratio", "2"}, {"landmark_act", "true"}, {"vconv", "3"}}, 4, 4, cls);
    add({{"ratio", "1"}, {"vconv", "5"}, {"normalize", "map"}}, 2, 3, cls);
  }
  for (const char* normalize : {"none", "map", "inverse"}) {
    add({{"kernel", "exact"}, {"normalize", normalize == std::string("inverse") ? "none" : normalize}}, 3, 3);
    for (const char* init : {"damped", "plain", "backtrack"})  // `backtrack` halves the factor six or seven times
      add({{"ratio", "2"}, {"normalize", normalize}, {"init", init}, {"ridge", "0.05"}}, 4, 4);
  }
  for (const char* normalize : {"none", "map"})  // 70 tokens: the kernel matrix is computed in two blocks
    add({{"kernel", "exact"}, {"normalize", normalize}}, 7, 10);
  add({{"ratio", "2"}, {"iterations", "0"}}, 4, 4);
  add({{"ratio", "2"}, {"iterations", "1"}, {"landmark_act", "true"}, {"sampling", "conv"}}, 4, 4);
  for (const bool cls : {false, true}) {  // the last cell of a sequence may have fewer tokens
    add({{"ratio", "3"}, {"dims", "1"}}, 1, 7, cls);
    add({{"landmarks", "3"}, {"dims", "1"}}, 1, 7, cls);
  }
  for (auto c = cases.end() - 4; c != cases.end(); ++c) c->sequence = true;
  for (const OptionValues& options : {OptionValues{{"landmarks", "6"}, {"dims", "1"}},
                                      {{"landmarks", "6"}, {"sampling", "first"}},
                                      {{"ratio", "6"}, {"dims", "1"}}})  // 6 exceeds the number of tokens
    for (const bool cls : {false, true}) {
      add(options, 1, 4, cls);
      cases.back().sequence = true, cases.back().longest = 9;
    }
  for (const SoftCase& c : cases) {
    AttentionShape place{.class_token = c.class_token};
    if (c.sequence)
      place.longest = std::max(c.tokens(), c.longest), place.whole = c.tokens() >= c.longest;
    else
      place.grid_height = c.height, place.grid_width = c.width;
    check_definition("soft", c.options, soft_operands(c), soft_definition(c), place, 1e-4);
  }
}

BOOST_AUTO_TEST_SUITE_END()
