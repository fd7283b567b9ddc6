#include "heed/bench/peak.h"

#include "heed/base/parallel.h"
#include "heed/bench/timing.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

double peak_flops(double seconds) {
  using namespace bench;
  constexpr Index n = 512;
  const Index workers = threads();
  std::vector<Tensor<float>> a, b, c;
  for (Index i = 0; i < workers; ++i) {
    for (auto* matrices : {&a, &b, &c}) matrices->emplace_back(Shape{n, n});
    std::fill(a.back().begin(), a.back().end(), 0.5F);
    std::fill(b.back().begin(), b.back().end(), 0.25F);
  }
  double best = 0;
  const Clock::time_point start = Clock::now();
  // The first round warms up caches and threads. It is slower, so it does not affect the maximum.
  while (seconds_since(start) < seconds || best == 0) {
    const Clock::time_point begin = Clock::now();
    parallel_for(workers, [&](Index i) {
      const auto of_worker = [=](std::vector<Tensor<float>>& all) {
        return Matrix(all[static_cast<std::size_t>(i)].data(), n, n);
      };
      kernels::gemm(of_worker(a), of_worker(b), of_worker(c));
    });
    best = std::max(best, 2.0 * n * n * n * static_cast<double>(workers) / seconds_since(begin));
  }
  return best;
}

}  // namespace heed
