#include "heed/bench/peak.h"

#include "heed/kernels/gemm_by_stride.h"
#include "heed/base/parallel.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace heed {

double peak_flops(double seconds) {
  using Clock = std::chrono::steady_clock;
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
  // The first round, which warms caches and wakes threads, is never the best.
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds || best == 0) {
    const Clock::time_point begin = Clock::now();
    parallel_for(workers, [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      kernels::gemm(Transpose::no, Transpose::no, n, n, n, a[at].data(), n, b[at].data(), n, Update::assign,
                    c[at].data(), n);
    });
    const double time = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * n * n * n * static_cast<double>(workers) / time);
  }
  return best;
}

}  // namespace heed
