// Comparison of a mechanism with its definition in slow loops: its map, its output, and its gradients, compared with
// finite differences of the definition.
#pragma once

#include "support/mechanism.h"

#include <algorithm>
#include <functional>

namespace heed {

/// One head of one image, as input of a definition. Operands of a single head are shared by all heads.
struct DefinitionHead {
  const Tensors& x;
  Index image, head;

  DefinitionHead(const Tensors& tensors, Index of_image, Index of_head)
      : x(tensors), image(of_image), head(of_head), q_(head_of("q")), k_(head_of("k")), v_(head_of("v")) {}

  Index N() const { return q_.data ? q_.rows : v_.rows; }
  Index M() const { return v_.rows; }
  Index d() const { return q_.columns; }
  double q(Index i, Index c) const { return q_(i, c); }
  double k(Index j, Index c) const { return k_(j, c); }
  double v(Index j, Index c) const { return v_(j, c); }

 private:
  struct Rows {
    const double* data = nullptr;
    Index rows = 0, columns = 0;
    double operator()(Index row, Index c) const { return data[row * columns + c]; }
  };

  Rows head_of(const char* name) const {
    const auto found = x.find(name);
    if (found == x.end()) return {};
    const Shape& s = found->second.shape();
    return {found->second.data() + (image * s[1] + std::min(head, s[1] - 1)) * s[2] * s[3], s[2], s[3]};
  }

  Rows q_, k_, v_;
};

/// A matrix in a definition.
struct SlowMatrix {
  Index rows, columns;
  std::vector<double> values;

  SlowMatrix(Index rows, Index columns)
      : rows(rows), columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(Index r, Index c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  double operator()(Index r, Index c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

SlowMatrix operator*(const SlowMatrix& a, const SlowMatrix& b);

/// Returns the softmax of each row of m, over the columns that sees(row, column) allows.
SlowMatrix slow_softmax(SlowMatrix m, const std::function<bool(Index, Index)>& sees = {});

/// Function that returns a head's attention map, [N, M].
using MapDefinition = std::function<SlowMatrix(const DefinitionHead&)>;

/// The map and the output, for mechanisms whose output is not the map times v.
struct DefinedHead {
  SlowMatrix map, out;
};
using HeadDefinition = std::function<DefinedHead(const DefinitionHead&)>;

/// Runs the mechanism on the tensors x ("q", "k", "v", its parameters and "dout"), and checks
///   - in double its map and its output, to 1e-12 of the largest element;
///   - in double the gradient of each tensor along two random directions, by finite differences of the definition, to
///     1e-7 |gradient| |direction| plus the differences' rounding errors;
///   - in float all results against double, to `float_tolerance` of the largest element.
void check_definition(const std::string& name, const OptionValues& options, const Tensors& x,
                      const MapDefinition& definition, const AttentionShape& place = {}, double float_tolerance = 1e-5);
void check_definition(const std::string& name, const OptionValues& options, const Tensors& x,
                      const HeadDefinition& definition, const AttentionShape& place = {},
                      double float_tolerance = 1e-5);

}  // namespace heed
