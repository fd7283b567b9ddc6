// Sums over rows, which are divided into parts, and operations on rows.
#include "heed/ops/rows.h"

#include "heed/base/random.h"
#include "heed/base/with_threads.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/layer_norm_parts.h"
#include "heed/ops/linear.h"
#include "heed/ops/scale_channels.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cmath>
#include <vector>

using namespace heed;

namespace {

using D = Var<double>;
using List = std::vector<double>;

constexpr Index width = 16;

/// An operation on rows of `width` elements, and the shapes of its parameters.
struct RowOperation {
  const char* name;
  std::vector<Shape> parameters;
  D (*apply)(D x, const std::vector<D>& p);
};

std::vector<RowOperation> row_operations() {
  const Shape all{width};
  return {{"scale_channels", {all}, [](D x, const std::vector<D>& p) { return scale_channels(x, p[0]); }},
          {"linear", {Shape{width, width}, all}, [](D x, const std::vector<D>& p) { return linear(x, p[0], p[1]); }},
          {"layer_norm", {all, all}, [](D x, const std::vector<D>& p) { return layer_norm(x, p[0], p[1]); }},
          {"layer_norm_parts",
           {Shape{6}, Shape{6}, Shape{10}, Shape{10}},
           [](D x, const std::vector<D>& p) {
             const std::vector<NormPart<double>> parts{{p[0], p[1]}, {p[2], p[3]}};
             return layer_norm_parts(x, std::span<const NormPart<double>>(parts));
           }},
          {"head_norm",
           {Shape{4}, Shape{4}, Shape{3}, Shape{3}},
           [](D x, const std::vector<D>& p) {
             return head_norm(x, AttentionLayout{2, 4, 3, 1}, {p[0], p[1]}, {p[2], p[3]});
           }},
          {"batch_norm", {all, all}, [](D x, const std::vector<D>& p) {
             static Tensor<double> mean(Shape{width}), variance(Shape{width});
             std::fill(mean.begin(), mean.end(), 0.25);
             std::fill(variance.begin(), variance.end(), 2.0);
             return batch_norm(x, p[0], p[1], mean.view(), variance.view());
           }}};
}

/// Results of an operation: y and dx row by row, and the gradients of its parameters.
struct RowResults {
  List y, dx, sums;
};

RowResults results_of(const RowOperation& operation, View<const double> x, View<const double> dy) {
  std::vector<Tensor<double>> values;
  for (const Shape& shape : operation.parameters) {
    Tensor<double>& tensor = values.emplace_back(shape);
    for (Index i = 0; i < tensor.size(); ++i) tensor[i] = std::sin(static_cast<double>(i + shape.rank()));
  }
  Tape<double> tape;
  std::vector<D> parameters;
  for (const Tensor<double>& value : values) parameters.push_back(tape.input(value.view()));
  const D input = tape.input(x), y = operation.apply(input, parameters);
  tape.backward(y, dy);
  const View<const double> dx = tape.gradient(input);
  RowResults results{List(y.data(), y.data() + y.size()), List(dx.begin(), dx.end()), {}};
  for (const D& parameter : parameters) {
    const View<const double> gradient = tape.gradient(parameter);
    results.sums.insert(results.sums.end(), gradient.begin(), gradient.end());
  }
  return results;
}

/// Returns the largest difference between b and the elements of a that begin at `first`, relative to 1 + |b|.
double difference(const List& a, Index first, const List& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(a[static_cast<std::size_t>(first) + i] - b[i]) / (1 + std::abs(b[i])));
  return most;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(row_sums)

// A sum over few rows has one part, one over many rows has several. Both kinds can be assigned or added.
BOOST_AUTO_TEST_CASE(are_assigned_or_added) {
  Tape<double> tape;
  for (const Index rows : {3, 100'000})
    for (const Update update : {Update::assign, Update::accumulate}) {
      std::vector<double> sums{7, 8};
      std::atomic<Index> parts = 0;
      sum_over_row_ranges(tape, rows, 100, 2, update, sums.data(),
                          [&](Index begin, Index end, Update of, double* part) {
                            const auto count = static_cast<double>(end - begin);
                            write(of, part[0], count);
                            write(of, part[1], 2 * count);
                            ++parts;
                          });
      const double before = update == Update::assign ? 0 : 1;
      BOOST_TEST(sums[0] == 7 * before + static_cast<double>(rows));
      BOOST_TEST(sums[1] == 8 * before + 2 * static_cast<double>(rows));
      BOOST_TEST((parts > 1) == (rows > 3));
    }
}

// 48,000 rows are divided between threads, and sums over them into parts; 6,000 rows have one part. A row's results do
// not depend on other rows, and gradients of parameters are sums over rows, which differ only in their order.
BOOST_AUTO_TEST_CASE(of_many_rows_are_the_sums_of_those_of_few) {
  constexpr Index rows = 48'000, some = 6'000;
  Tensor<double> x(Shape{rows, width}), dy(Shape{rows, width});
  for (Index i = 0; i < x.size(); ++i)
    x[i] = RandomStream(1).uniform(i, -1, 1), dy[i] = RandomStream(2).uniform(i, 0, 1);
  const WithThreads with(3);
  for (const RowOperation& operation : row_operations()) {
    const RowResults all = results_of(operation, x.view(), dy.view());
    List sums(all.sums.size());
    double off = 0;
    for (Index first = 0; first < rows; first += some) {
      const RowResults part = results_of(operation, x.view().part(first, some), dy.view().part(first, some));
      off = std::max({off, difference(all.y, first * width, part.y), difference(all.dx, first * width, part.dx)});
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part.sums[i];
    }
    BOOST_TEST(off < 1e-12, operation.name << ": rows differ by " << off);
    BOOST_TEST(difference(all.sums, 0, sums) < 1e-10,
               operation.name << ": sums differ by " << difference(all.sums, 0, sums));
  }
}

BOOST_AUTO_TEST_SUITE_END()
