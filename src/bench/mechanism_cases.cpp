// Kernels of individual mechanisms: sums over neighbourhoods, Gaussian kernels, Newton's inverse.
#include "heed/bench/kernels.h"

#include "heed/kernels/distances/gaussian.h"
#include "heed/kernels/grids/neighbourhood.h"
#include "heed/kernels/solvers/newton_inverse.h"

namespace heed::bench {

namespace {

/// Returns the multiply-adds and exps in `counts` as work.
std::vector<Work> work_of(const Counts& counts) {
  return {{Resource::gemm, 2 * counts.mul}, {Resource::exp, counts.exp}};
}

/// Returns the inverse's scratch memory, allocated as operands.
template <class Scratch>
Scratch laid_out(const kernels::NewtonInverse& newton, Operands& o) {
  MemoryLayout<float> measure;
  static_cast<void>(Scratch(newton, measure));
  MemoryLayout layout(o.scratch(measure.taken()));
  return Scratch(newton, layout);
}

}  // namespace

std::vector<KernelCase> mechanism_cases(const ModelSizes& model) {
  constexpr Index landmarks = 16;
  const std::string name = model.name, head = name + " head";
  const Index N = model.tokens, d = model.head();
  const kernels::Neighbourhood grid{model.grid, model.grid, 2, 2};
  const Index cells = grid.cells();
  const kernels::NewtonInverse newton{landmarks};
  const Cost newton_cost = kernels::newton_inverse_cost(newton, true);
  const Cost gaussian_cost = kernels::gaussian_cost(landmarks, N, d);
  const auto gram = [=](Operands& o) {
    const Matrix<float> A = o.in_out(landmarks, landmarks, landmarks);
    const Matrix<const float> points = o.in(landmarks, d);
    kernels::gaussian(points, points, 1.0, A);
    return Matrix<const float>(A);
  };
  KernelCases cases;
  cases.add("neighbourhood sums", head, fmt::format("{} x {}, 5 x 5", cells, d),
            work_of(kernels::neighbourhood_sums_counts(grid, d, false)), [=](Operands& o) {
              const kernels::ExpSums<const float> terms{o.in(cells, 1), {}, o.in(cells, d)};
              const kernels::ExpSums<float> sums{o.out(cells, 1), o.out(cells, 1), o.out(cells, d)};
              MemoryLayout<float> size;
              kernels::lay_out_neighbourhood(grid, d, size);
              MemoryLayout<float> layout(o.scratch(size.taken()));
              return [=, bias = o.in(grid.places()), scratch = kernels::lay_out_neighbourhood(grid, d, layout)] {
                kernels::neighbourhood_sums(grid, terms, bias, false, scratch, sums);
              };
            });
  cases.add("gaussian forward", head, fmt::format("{} x {} x {}", landmarks, N, d), work_of(gaussian_cost.forward),
            [=](Operands& o) {
              return [=, x = o.in(landmarks, d), y = o.in(N, d), G = o.out(landmarks, N)] {
                kernels::gaussian(x, y, 0.25, G);
              };
            });
  cases.add("gaussian backward", head, fmt::format("{} x {} x {}", landmarks, N, d),
            work_of(gaussian_cost.backward_contractions), [=](Operands& o) {
              return [=, x = o.in(landmarks, d), y = o.in(N, d), G = o.in(landmarks, N), dG = o.in(landmarks, N),
                      dx = o.out(landmarks, d), dy = o.out(N, d)] {
                kernels::gaussian_backward({x, y, 0.25, G}, dG, Update::assign, dx, Update::assign, dy);
              };
            });
  cases.add("newton inverse", head, fmt::format("{} x {}, 20 steps", landmarks, landmarks),
            work_of(newton_cost.forward), [=](Operands& o) {
              return [=, A = gram(o), X = o.out(landmarks, landmarks),
                      scratch = laid_out<kernels::NewtonScratch<float>>(newton, o)] {
                kernels::newton_inverse(newton, A, scratch, X);
              };
            });
  cases.add("newton inverse backward", head, fmt::format("{} x {}, 20 steps", landmarks, landmarks),
            work_of(newton_cost.backward), [=](Operands& o) {
              return [=, A = gram(o), dX = o.in_out(landmarks, landmarks, landmarks), dA = o.out(landmarks, landmarks),
                      scratch = laid_out<kernels::NewtonBackwardScratch<float>>(newton, o)] {
                fill(dX, 1.0F);  // reset, since repeated calls would make it grow
                kernels::newton_inverse_backward(newton, A, dX, scratch, dA);
              };
            });
  return cases;
}

}  // namespace heed::bench
