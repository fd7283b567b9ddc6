// Kernels of single mechanisms: AFT-conv's neighbourhoods, SOFT's Gaussian kernel and inverse.
#include "heed/bench/kernels.h"

#include "heed/kernels/gaussian.h"
#include "heed/kernels/neighbourhood.h"
#include "heed/kernels/newton_inverse.h"

namespace heed::bench {

namespace {

/// Multiply-adds and exponentials of a closed form.
std::vector<Work> work_of(const Counts& counts) {
  return {{Resource::gemm, 2 * counts.mul}, {Resource::exp, counts.exp}};
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
  const auto gram = [=](Operands& o) {
    float* const A = o.in_out(newton.elements());
    const float* const points = o.in(landmarks * d);
    kernels::gaussian(landmarks, landmarks, d, points, d, points, d, 1.0, A, landmarks);
    return static_cast<const float*>(A);
  };
  return {
      {"neighbourhood sums", head, fmt::format("{} x {}, 5 x 5", cells, d),
       work_of(kernels::neighbourhood_sums_counts(grid, d, false)),
       [=](Operands& o) {
         const kernels::ExpSums<const float> terms{{o.in(cells), cells, 1}, {}, {o.in(cells * d), cells, d}};
         const kernels::ExpSums<float> sums{
             {o.out(cells), cells, 1}, {o.out(cells), cells, 1}, {o.out(cells * d), cells, d}};
         Carver<float> size;
         kernels::carve_running_sums(grid, d, size);
         Carver<float> carve(o.scratch(size.taken()));
         return [=, bias = o.in(grid.places()), running = kernels::carve_running_sums(grid, d, carve)] {
           kernels::neighbourhood_sums(grid, terms, bias, false, running, sums);
         };
       }},
      {"gaussian forward", head, fmt::format("{} x {} x {}", landmarks, N, d),
       work_of(kernels::gaussian_cost(landmarks, N, d, false).forward),
       [=](Operands& o) {
         return [=, x = o.in(landmarks * d), y = o.in(N * d), g = o.out(landmarks * N)] {
           kernels::gaussian(landmarks, N, d, x, d, y, d, 0.25, g, N);
         };
       }},
      {"gaussian backward", head, fmt::format("{} x {} x {}", landmarks, N, d),
       work_of(kernels::gaussian_cost(landmarks, N, d, false).backward_contractions),
       [=](Operands& o) {
         return [=, x = o.in(landmarks * d), y = o.in(N * d), g = o.in(landmarks * N), dg = o.in(landmarks * N),
                 dx = o.out(landmarks * d), dy = o.out(N * d)] {
           kernels::gaussian_backward(landmarks, N, d, x, d, y, d, 0.25, g, dg, N, Update::assign, dx, d,
                                      Update::assign, dy, d);
         };
       }},
      {"newton inverse", head, fmt::format("{} x {}, 20 steps", landmarks, landmarks), work_of(newton_cost.forward),
       [=](Operands& o) {
         return [=, A = gram(o), X = o.out(newton.elements()), rest = o.scratch(newton.forward_scratch())] {
           kernels::newton_inverse(newton, A, X, rest);
         };
       }},
      {"newton inverse backward", head, fmt::format("{} x {}, 20 steps", landmarks, landmarks),
       work_of(newton_cost.backward),
       [=](Operands& o) {
         return [=, A = gram(o), dX = o.in_out(newton.elements()), dA = o.out(newton.elements()),
                 rest = o.scratch(newton.backward_scratch())] {
           std::fill_n(dX, newton.elements(), 1.0F);  // what the last call has left of it grows
           kernels::newton_inverse_backward(newton, A, dX, dA, rest);
         };
       }},
  };
}

}  // namespace heed::bench
