// Holds a mechanism against its definition, written in slow loops: its map, its output, and its gradients, which are
// compared with differences of the definition.
#pragma once

#include "support/mechanism.h"

#include <functional>

namespace heed {

/// One head of one image, for definitions to read.
struct DefinitionHead {
  const Tensors& x;
  Index image, head;

  Index N() const { return rows(x.contains("q") ? "q" : "v"); }
  Index M() const { return rows("v"); }
  Index d() const { return x.at("q").shape()[3]; }
  double q(Index i, Index c) const { return operand("q", i, c); }
  double k(Index j, Index c) const { return operand("k", j, c); }
  double v(Index j, Index c) const { return operand("v", j, c); }

 private:
  Index rows(const char* name) const { return x.at(name).shape()[2]; }
  double operand(const char* name, Index row, Index c) const {
    const Shape& s = x.at(name).shape();
    return x.at(name)[((image * s[1] + head) * s[2] + row) * s[3] + c];
  }
};

/// A matrix of a definition.
struct SlowMatrix {
  Index rows, columns;
  std::vector<double> values;

  SlowMatrix(Index rows, Index columns)
      : rows(rows), columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(Index r, Index c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  double operator()(Index r, Index c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

SlowMatrix operator*(const SlowMatrix& a, const SlowMatrix& b);

/// The rows of m from 0 to m.rows - 1, each exp(m) over its sum, for the columns that sees(row, column) lets through.
SlowMatrix slow_softmax(SlowMatrix m, const std::function<bool(Index, Index)>& sees = {});

/// The matrix that multiplies v, [N, M].
using MapDefinition = std::function<SlowMatrix(const DefinitionHead&)>;

/// Runs the mechanism on x, "q", "k", "v", its own tensors and "dout", and checks
///   - in double its map and its output, up to 1e-12 of the largest;
///   - in double the gradient of each tensor along two random directions, by differences of the definition, up to 1e-7;
///   - in float all results against double, up to `float_tolerance`.
void check_definition(const std::string& name, const OptionValues& options, const Tensors& x,
                      const MapDefinition& definition, const AttentionShape& place = {}, double float_tolerance = 1e-5);

}  // namespace heed
