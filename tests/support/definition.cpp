#include "support/definition.h"

#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace heed {

SlowMatrix operator*(const SlowMatrix& a, const SlowMatrix& b) {
  BOOST_REQUIRE(a.columns == b.rows);
  SlowMatrix c(a.rows, b.columns);
  double* sums = c.values.data();
  for (Index i = 0; i < a.rows; ++i, sums += c.columns)
    for (Index l = 0; l < a.columns; ++l) {
      const double factor = a(i, l), *const row = b.values.data() + l * b.columns;
      for (Index j = 0; j < c.columns; ++j) sums[j] += factor * row[j];
    }
  return c;
}

SlowMatrix slow_softmax(SlowMatrix m, const std::function<bool(Index, Index)>& sees) {
  for (Index i = 0; i < m.rows; ++i) {
    double sum = 0;
    for (Index j = 0; j < m.columns; ++j) {
      m(i, j) = !sees || sees(i, j) ? std::exp(m(i, j)) : 0;
      sum += m(i, j);
    }
    for (Index j = 0; j < m.columns; ++j) m(i, j) /= sum;
  }
  return m;
}

namespace {

Tensors by_definition(const Tensors& x, const HeadDefinition& definition) {
  const Shape& asking = (x.contains("q") ? x.at("q") : x.at("v")).shape();
  const Index images = asking[0], heads = asking[1];
  std::vector<double> outs, maps;
  Shape out, map;
  for (Index b = 0; b < images; ++b)
    for (Index h = 0; h < heads; ++h) {
      const DefinedHead defined = definition({x, b, h});
      outs.insert(outs.end(), defined.out.values.begin(), defined.out.values.end());
      maps.insert(maps.end(), defined.map.values.begin(), defined.map.values.end());
      out = {images, heads, defined.out.rows, defined.out.columns};
      map = {images, heads, defined.map.rows, defined.map.columns};
    }
  Tensors results;
  for (const auto& [name, shape, values] : {std::tuple("out", out, &outs), std::tuple("map", map, &maps)}) {
    Tensor<double>& result = results[name] = Tensor<double>(shape);
    std::copy(values->begin(), values->end(), result.begin());
  }
  return results;
}

double inner(const Tensor<double>& a, const Tensor<double>& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Slope {
  double value, rounding;  ///< the slope, and a bound on its rounding error
};

/// Returns the derivative of <dout, out> with respect to tensor `name` along `direction`, from finite differences with
/// two steps, whose second-order errors cancel.
Slope slope(const Tensors& x, const std::string& name, const Tensor<double>& direction,
            const HeadDefinition& definition) {
  const auto difference = [&](double step) {
    const auto moved = [&](double by) {
      Tensors y = x;
      for (Index i = 0; i < direction.size(); ++i) y.at(name)[i] += by * direction[i];
      return inner(by_definition(y, definition).at("out"), x.at("dout"));
    };
    return (moved(step) - moved(-step)) / (2 * step);
  };
  const double step = 1e-5, value = (4 * difference(step / 2) - difference(step)) / 3;
  const Tensor<double>&dout = x.at("dout"), out = by_definition(x, definition).at("out");
  return {value, 4 * 0x1p-52 * std::sqrt(inner(dout, dout) * inner(out, out)) / step};
}

}  // namespace

void check_definition(const std::string& name, const OptionValues& options, const Tensors& x,
                      const MapDefinition& definition, const AttentionShape& place, double float_tolerance) {
  const HeadDefinition head = [&](const DefinitionHead& of) {
    const SlowMatrix A = definition(of);
    SlowMatrix v(of.M(), x.at("v").shape()[3]);
    for (Index j = 0; j < v.rows; ++j)
      for (Index c = 0; c < v.columns; ++c) v(j, c) = of.v(j, c);
    return DefinedHead{A, A * v};
  };
  check_definition(name, options, x, head, place, float_tolerance);
}

void check_definition(const std::string& name, const OptionValues& options, const Tensors& x,
                      const HeadDefinition& definition, const AttentionShape& place, double float_tolerance) {
  std::string what = name;
  for (const auto& [option, value] : options) what += ", " + option + "=" + value;
  what += ", N = " + std::to_string(DefinitionHead{x, 0, 0}.N());
  const Tensors exact = run_mechanism<double>(name, options, x, place);
  check_same(exact, by_definition(x, definition), 1e-12, what);
  for (const auto& [tensor, values] : x) {
    if (!exact.contains("d" + tensor)) continue;
    const Tensor<double>& gradient = exact.at("d" + tensor);
    for (const std::uint64_t seed : {71, 72}) {
      const Tensor<double> direction = random_tensor(values.shape(), seed);
      const double got = inner(gradient, direction);
      const Slope expected = slope(x, tensor, direction, definition);
      const double scale = std::sqrt(inner(gradient, gradient) * inner(direction, direction));
      BOOST_TEST(std::abs(got - expected.value) <= 1e-7 * scale + expected.rounding,
                 what << ", d" << tensor << " along a direction: got " << got << ", expected " << expected.value);
    }
  }
  check_same(run_mechanism<float>(name, options, x, place), exact, float_tolerance, what);
}

}  // namespace heed
