#include "support/mechanism.h"

#include "heed/attention/capabilities/pictures.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/ops/attention_capabilities.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

namespace heed {

Tensor<double> tokens(Index count, Index channels, const std::vector<double>& values) {
  Tensor<double> x(Shape{1, 1, count, channels});
  BOOST_REQUIRE(x.size() == static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), x.begin());
  return x;
}

Tensor<double> random_tensor(const Shape& shape, std::uint64_t seed, double spread) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(RandomStream(seed).uniform(i, -spread, spread));
  return x;
}

namespace {

Tensor<double> in_double(auto values) {
  Tensor<double> copy(values.shape());
  std::copy(values.begin(), values.end(), copy.begin());
  return copy;
}

template <class T>
Heads<const T> heads_of(const Tensor<T>& x, Index image) {
  const Shape& s = x.shape();
  return {{x.data() + image * s[1] * s[2] * s[3], s[2], s[3]}, s[1], s[2] * s[3]};
}

/// Calls f(image, input) for each image.
template <class T, class F>
void for_each_input(const Mechanism& mechanism, const AttentionShape& shape, const std::map<std::string, Tensor<T>>& x,
                    const std::vector<View<const T>>& own, Products products, const F& f) {
  AttentionInput<T> in{.shape = shape, .q = {}, .k = {}, .v = {}, .parameters = own, .products = products};
  Buffer<T> prepared(mechanism.memory(shape).prepared);
  if (prepared.size() > 0)
    mechanism.preparation()->prepare(AttentionPreparation<T>{shape, own, false, {}, {prepared.data()}});
  in.prepared = {prepared.data()};
  for (Index image = 0; image < x.at("v").shape()[0]; ++image) {
    if (x.contains("q")) in.q = heads_of(x.at("q"), image);
    if (x.contains("k")) in.k = heads_of(x.at("k"), image);
    in.v = heads_of(x.at("v"), image);
    f(image, in);
  }
}

}  // namespace

template <class T>
Tensors run_mechanism(const std::string& name, const OptionValues& options, const Tensors& given,
                      const AttentionShape& place, Products products) {
  const auto mechanism = make_mechanism(name, options);
  std::map<std::string, Tensor<T>> x;
  std::map<std::string, Shape> shapes;
  for (const auto& [tensor, values] : given) {
    std::copy(values.begin(), values.end(), x.emplace(tensor, values.shape()).first->second.begin());
    shapes[tensor] = values.shape();
  }
  mechanism->read_sizes(shapes);
  AttentionShape shape = place;
  const Shape& vs = x.at("v").shape();
  shape.keys = vs[2], shape.value_width = vs[3];
  const Shape& qs = x.contains("q") ? x.at("q").shape() : vs;
  shape.heads = qs[1], shape.queries = qs[2], shape.width = qs[3];

  Tape<T> tape({.execution = {.products = products}});
  std::map<std::string, Var<T>> vars;
  std::vector<Var<T>> own;
  std::vector<View<const T>> own_values;
  const AttentionLayout layout = mechanism->layout(shape.heads * shape.value_width, shape.heads);
  for (const RowPart& part : projection_parts(layout))
    if (x.contains(part.name)) vars[part.name] = tape.input(x.at(part.name).view());
  for (const ParameterSpec& spec : mechanism->parameters(shape)) {
    own_values.push_back(std::as_const(x.at(spec.name)).view());
    own.push_back(spec.trainable ? tape.input(own_values.back()) : tape.constant(own_values.back()));
    if (spec.trainable) vars[spec.name] = own.back();
  }
  const Var<T> out = attention<T>(*mechanism, vars["q"], vars["k"], vars["v"], shape, std::span<const Var<T>>(own));
  Tensors results;
  results["out"] = in_double(out.value());
  Tensor<T> ones(out.shape());
  std::fill(ones.begin(), ones.end(), T(1));
  tape.backward(out, x.contains("dout") ? std::as_const(x.at("dout")).view() : std::as_const(ones).view());
  for (const auto& [tensor, var] : vars)
    if (var) results["d" + tensor] = in_double(tape.gradient(var));
  const Shape size = map_shape(*mechanism, shape);
  Tensor<T> maps(mechanism->maps() ? Shape{vs[0], size[0], size[1], size[2]} : Shape{0});
  for_each_input(*mechanism, shape, x, own_values, products, [&](Index image, const AttentionInput<T>& in) {
    if (maps.size() > 0) make_map(*mechanism, in, maps.data() + image * size.elements());
    if constexpr (std::is_same_v<T, float>)
      for (const PictureInfo& picture : picture_infos(*mechanism))
        results["picture." + picture.name] = in_double(mechanism->pictures()->picture(picture.name, in).view());
  });
  if (maps.size() > 0) results["map"] = in_double(std::as_const(maps).view());
  return results;
}

template Tensors run_mechanism<float>(const std::string&, const OptionValues&, const Tensors&, const AttentionShape&,
                                      Products);
template Tensors run_mechanism<double>(const std::string&, const OptionValues&, const Tensors&, const AttentionShape&,
                                       Products);

void check_near(const Tensor<double>& got, const std::vector<double>& expected, double tolerance) {
  BOOST_REQUIRE(got.size() == static_cast<Index>(expected.size()));
  for (Index i = 0; i < got.size(); ++i) {
    const double e = expected[static_cast<std::size_t>(i)];
    BOOST_TEST(std::abs(got[i] - e) <= tolerance * std::max(1.0, std::abs(e)),
               "element " << i << ": got " << got[i] << ", expected " << e);
  }
}

void check_same(const Tensors& a, const Tensors& b, double tolerance, const std::string& what, double least) {
  double all = 0;
  for (const auto& [name, x] : a)
    for (const double value : x) all = std::max(all, std::abs(value));
  for (const auto& [name, x] : a) {
    if (!b.contains(name)) continue;
    const Tensor<double>& y = b.at(name);
    BOOST_REQUIRE(x.size() == y.size());
    double most = least * all, difference = 0;
    for (Index i = 0; i < x.size(); ++i) {
      BOOST_REQUIRE_MESSAGE(std::isfinite(x[i]) && std::isfinite(y[i]),
                            what << ", " << name << "[" << i << "] is not finite");
      most = std::max(most, std::abs(y[i]));
      difference = std::max(difference, std::abs(x[i] - y[i]));
    }
    BOOST_TEST(difference <= tolerance * most,
               what << ", " << name << ": differs by " << difference << ", largest " << most);
  }
}

std::string refusal(const std::string& name, const OptionValues& options, const AttentionShape& shape) {
  try {
    make_mechanism(name, options)->check(shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace heed
