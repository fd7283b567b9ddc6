#include "heed/bench/limits.h"

#include "heed/base/error.h"
#include "heed/base/parallel.h"

#include <fstream>

#ifndef HEED_NO_SIMD
#include "limit_loops.h"
#include "heed/bench/timing.h"

#include "heed/kernels/products/gemm.h"

#ifndef HEED_NO_BLAS
#include "heed/kernels/shared/blas.h"
#endif
#endif

namespace heed::bench {

namespace {

struct ResourceRow {
  const char *name, *unit;
};

/// Rows in the order of Resource.
constexpr ResourceRow resource_rows[] = {
    {"multiply-add", "GF/s"}, {"gemm", "GF/s"},     {"l1", "Gelem/s"},    {"clamp", "Gelem/s"}, {"exp", "Gelem/s"},
    {"L1 cache", "GB/s"},     {"L2 cache", "GB/s"}, {"L3 cache", "GB/s"}, {"memory", "GB/s"},
};

const ResourceRow& row(Resource resource) { return resource_rows[static_cast<std::size_t>(resource)]; }

}  // namespace

double cache_bytes(Resource cache) {
  const int level = 1 + static_cast<int>(cache) - static_cast<int>(Resource::l1_cache);
  for (int i = 0;; ++i) {
    const std::string directory = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    std::ifstream level_file(directory + "level"), type_file(directory + "type"), size_file(directory + "size");
    int found = 0;
    double kilobytes = 0;
    std::string type;
    if (!(level_file >> found && type_file >> type && size_file >> kilobytes)) break;
    if (found == level && type != "Instruction") return 1024 * kilobytes;
  }
  constexpr double common[] = {0x1p15, 0x1p20, 0x1p24};
  return common[level - 1];
}

const char* name_of(Resource resource) { return row(resource).name; }
const char* unit_of(Resource resource) { return row(resource).unit; }

double Limits::rate(Resource resource, int threads, const std::string& variant) const {
  double best = 0;
  for (const Limit& limit : limits_)
    if (limit.of == resource && limit.threads == threads && (variant.empty() || limit.variant == variant))
      best = std::max(best, limit.measured.rate);
  return best;
}

double Limits::seconds_on_all(Resource resource, double amount) const {
  // Other load may have slowed the measurement with all threads, which together reach at least the rate of one thread.
  return amount / 1e9 / std::max(rate(resource, threads(), ""), rate(resource, 1, ""));
}

Resource Limits::memory_for(double bytes) const {
  for (const Resource cache : {Resource::l1_cache, Resource::l2_cache, Resource::l3_cache})
    if (bytes <= cache_bytes(cache)) return cache;
  return Resource::memory;
}

#ifndef HEED_NO_SIMD

namespace {

/// Times f(worker) called on `workers` threads, in batches large enough that starting threads takes negligible time.
template <class F>
Times time_workers(int workers, double seconds, const F& f) {
  if (workers == 1) return time_calls(seconds, 0, [&] { f(0); });
  constexpr double together = 2e-3;
  const double alone = time_calls(0, 0, [&] { f(0); }).best();
  const int calls = static_cast<int>(std::min(together / alone, 1e4)) + 1;
  Times times = time_calls(seconds, 0, [&] {
    parallel_for(workers, [&](Index worker) {
      for (int i = 0; i < calls; ++i) f(worker);
    });
  });
  for (double& time : times.sorted) time /= calls;
  return times;
}

/// Returns the limit that follows from `times`, if each worker processes `amount` per call.
Limit limit_of(Resource of, int workers, double amount, const Times& times, const std::string& variant,
               std::string how) {
  const double total = amount * static_cast<double>(workers) / 1e9;
  const std::string name = std::string(name_of(of)) + (variant.empty() ? "" : ", " + variant) +
                           (workers == 1 ? "" : fmt::format(", {} threads", workers));
  return {of,
          workers,
          {name, unit_of(of), total / times.best(), total / times.median(), total / times.best()},
          variant,
          std::move(how)};
}

const Limit& better(const Limit& a, const Limit& b) { return a.measured.rate < b.measured.rate ? b : a; }

/// Measures a loop that accesses registers only; a call takes long enough to be timed: tens to hundreds of
/// microseconds.
Limit register_limit(Resource of, int workers, double seconds, double operations, RegisterLoop loop, const char* how) {
  constexpr Index steps = 1 << 15;
  const Times times = time_workers(workers, seconds, [&](Index) { loop(steps); });
  return limit_of(of, workers, operations * static_cast<double>(steps * terms_per_step), times, "", how);
}

/// Measures the largest rate of products of square matrices, in two sizes, by heed and, if available, by OpenBLAS.
Limit gemm_limit(int workers, double seconds) {
  constexpr Index sizes[] = {256, 512};
  Limit best{};
  for (const Index n : sizes) {
    std::vector<Tensor<float>> a, b, c;
    for (int i = 0; i < workers; ++i)
      for (auto* matrices : {&a, &b, &c}) {
        matrices->emplace_back(Shape{n, n});
        std::fill(matrices->back().begin(), matrices->back().end(), 0.5F);
      }
    const double flop = 2.0 * static_cast<double>(n * n * n);
    const auto consider = [&](const std::string& library, const auto& multiply) {
      const Times times = time_workers(workers, seconds / (2 * std::size(sizes)), [&](Index worker) {
        const auto w = static_cast<std::size_t>(worker);
        multiply(a[w].data(), b[w].data(), c[w].data());
      });
      best = better(
          best, limit_of(Resource::gemm, workers, flop, times, "", fmt::format("{}, {} x {} x {}", library, n, n, n)));
    };
    consider("heed", [n](const float* x, const float* y, float* z) {
      kernels::gemm(Matrix(x, n, n), Matrix(y, n, n), Matrix(z, n, n));
    });
#ifndef HEED_NO_BLAS
    kernels::prepare_call();
    consider("OpenBLAS", [n](const float* x, const float* y, float* z) {
      const blasint size = kernels::narrow(n);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0F, x, size, y, size, 0.0F, z, size);
    });
#endif
  }
  return best;
}

/// Measures the fastest of several ways to compute a clamped difference.
Limit clamp_limit(int workers, double seconds) {
  const auto measured = [=](RegisterLoop loop, const char* how) {
    return register_limit(Resource::clamp, workers, seconds / 3, 1, loop, how);
  };
  return better(measured(clamp_by_turns, "difference (alternately fused), clamp, fma in registers"),
                better(measured(clamp_difference, "fused difference, clamp, fma in registers"),
                       measured(clamp_shifted, "max, min, difference, fma in registers")));
}

Limit exp_limit(int workers, double seconds) {
  constexpr Index n = 2048, rounds = 64;  // 16 KB: half of a small L1 cache
  std::vector<Tensor<float>> x, y;
  for (int i = 0; i < workers; ++i) {
    for (auto* rows : {&x, &y}) rows->emplace_back(Shape{n});
    for (Index j = 0; j < n; ++j) x.back()[j] = -20.0F * static_cast<float>(j) / static_cast<float>(n);
  }
  const Times times = time_workers(workers, seconds, [&](Index worker) {
    const auto w = static_cast<std::size_t>(worker);
    for (Index i = 0; i < rounds; ++i) exp_of(n, x[w].data(), y[w].data());
  });
  return limit_of(Resource::exp, workers, static_cast<double>(n * rounds), times, "",
                  "a polynomial of degree 6, 2048 elements");
}

/// Measures the bandwidth of a memory by streaming through a block. The block has three quarters of the size of a
/// private cache, a quarter of the size of a shared cache or, for main memory, three times the size of the largest
/// cache. If the memory is shared, this size is divided among the workers' blocks. Each block is divided into a
/// stream's arrays.
std::vector<Limit> bandwidths(Resource memory, int workers, double seconds) {
  const bool own = memory == Resource::l1_cache || memory == Resource::l2_cache;
  const double bytes = own                            ? 0.75 * cache_bytes(memory)
                       : memory == Resource::l3_cache ? 0.25 * cache_bytes(memory)
                                                      : 3 * cache_bytes(Resource::l3_cache);
  const Index n = std::max<Index>(static_cast<Index>(bytes / 4 / (own ? 1 : workers)) / stream_block, 3) * stream_block;
  const Index rounds = std::max<Index>(1, (1 << 18) / n);
  std::vector<Tensor<float>> blocks;
  for (int i = 0; i < workers; ++i) blocks.emplace_back(Shape{n});
  std::vector<Limit> limits;
  for (const Stream& stream : streams) {
    const Index each = n / stream.arrays / stream_block * stream_block;
    const Times times = time_workers(workers, seconds / static_cast<double>(std::size(streams)), [&](Index worker) {
      float* const block = blocks[static_cast<std::size_t>(worker)].data();
      for (Index i = 0; i < rounds; ++i) stream.run(each, block);
    });
    limits.push_back(limit_of(memory, workers, static_cast<double>(4 * stream.moves * each * rounds), times,
                              stream.name, fmt::format("{} KB{}", n / 256, workers > 1 ? " each" : "")));
  }
  return limits;
}

}  // namespace

void Limits::keep_better(Limit limit) {
  for (Limit& known : limits_)
    if (known.of == limit.of && known.threads == limit.threads && known.variant == limit.variant) {
      known = better(known, limit);
      return;
    }
  limits_.push_back(std::move(limit));
}

Limits::Limits(double seconds, const std::function<void(const std::string&)>& progress) {
  std::vector<int> workers{1};
  if (threads() > 1) workers.push_back(threads());
  // Every limit is measured once in each turn, so that a short period of other load affects only one of its
  // measurements.
  constexpr int turns = 3;
  const double share = seconds / turns;
  const auto measure = [&](Resource of, const auto& limit) {
    progress(fmt::format("limits: {}", name_of(of)));
    for (const int w : workers) keep_better(limit(w));
  };
  for (int turn = 0; turn < turns; ++turn) {
    measure(Resource::multiply_add,
            [=](int w) { return register_limit(Resource::multiply_add, w, share, 2, multiply_add, "in registers"); });
    measure(Resource::gemm, [=](int w) { return gemm_limit(w, share); });
    measure(Resource::l1,
            [=](int w) { return register_limit(Resource::l1, w, share, 1, l1_by_maxima, "max and fma in registers"); });
    measure(Resource::clamp, [=](int w) { return clamp_limit(w, share); });
    measure(Resource::exp, [=](int w) { return exp_limit(w, share); });
    for (const Resource memory : {Resource::l1_cache, Resource::l2_cache, Resource::l3_cache, Resource::memory}) {
      progress(fmt::format("limits: {}", name_of(memory)));
      for (const int w : workers)
        for (Limit& limit : bandwidths(memory, w, share)) keep_better(std::move(limit));
    }
  }
}

#else

Limits::Limits(double, const std::function<void(const std::string&)>&) {
  fail("bench: no MODEL is given; a build of plain loops (KERNELS=reference or SIMD=none) can measure models only");
}

#endif

}  // namespace heed::bench
