// Steps of softmax attention over one block, with rows split across blocks (src/attention/softmax.cpp).
#include "heed/bench/kernels.h"

#include "heed/kernels/products/packed_weight.h"
#include "heed/kernels/rows/softmax.h"

#include <memory>
#include <optional>

namespace heed::bench {

namespace {

constexpr AttentionShape shape{.queries = 4096, .keys = 4096, .width = 64, .value_width = 64};
constexpr const char* where = "softmax of 4096 tokens";

/// Parts of a pass over a block, in the order of softmax.cpp.
constexpr const char* forward[] = {"block q k^T", "block exp", "block A v"};
constexpr const char* backward[] = {"block q k^T",   "block A again", "block A^T dout", "block dout v^T",
                                    "block dS of A", "block dS k",    "block dS^T q"};

QueriesAndKeys first_block() {
  std::optional<QueriesAndKeys> first;
  MapBlocks<float>(shape, false).by_keys([&](const MapBlock& b) {
    if (!first) first = b;
  });
  return *first;
}

/// Returns "softmax of 4096 tokens, forward: block q k^T 40 %, ...", the share of each part in the total time; empty if
/// a part was not measured.
template <std::size_t n>
std::string shares(const char* pass, const char* const (&parts)[n], const std::vector<KernelResult>& results) {
  double total = 0;
  std::vector<double> times;
  for (const char* part : parts)
    for (const KernelResult& r : results)
      if (r.kernel == part) times.push_back(r.microseconds), total += r.microseconds;
  if (times.size() < n) return {};
  std::string line = fmt::format("{}, {}:", where, pass);
  for (std::size_t i = 0; i < n; ++i)
    line += fmt::format("{} {} {:.0f} %", i == 0 ? "" : ",", parts[i], 100 * times[i] / total);
  return line;
}

}  // namespace

std::vector<KernelCase> long_row_cases() {
  const QueriesAndKeys block = first_block();
  const Index rows = block.rows, keys = block.seen, d = shape.width, stride = padded_row(keys);
  const std::string map_size = fmt::format("{} x {}", rows, keys);
  KernelCases cases;
  // `b` is packed once for all blocks of queries.
  const auto shared = [&](const char* kernel) {
    cases.add_product(kernel, where, Resource::gemm, rows, keys, d, [=](Operands& o) {
      const auto b = std::make_shared<kernels::SharedOperand<float>>();
      b->set(Products::exact, transposed(o.in(keys, d)), true);
      return [=, a = o.in(rows, d), s = o.out(rows, keys, stride)] { b->product(a, s); };
    });
  };
  const auto to_queries = [&](const char* kernel) {
    cases.add_product(kernel, where, Resource::gemm, rows, d, keys, [=](Operands& o) {
      return [=, a = o.in(rows, keys, stride), b = o.in(keys, d), out = o.in_out(rows, d, d)] {
        kernels::Gemm{}(a, b, Update::accumulate, out);
      };
    });
  };
  const auto to_keys = [&](const char* kernel) {
    cases.add_product(kernel, where, Resource::gemm, keys, d, rows, [=](Operands& o) {
      return [=, a = o.in(rows, keys, stride), b = o.in(rows, d), out = o.in_out(keys, d, d)] {
        kernels::Gemm{}(transposed(a), b, Update::accumulate, out);
      };
    });
  };
  const kernels::ScoreRows plain{1.0};
  const std::vector<Work> exponentials{{Resource::exp, rows * keys}};
  shared(forward[0]);
  cases.add(forward[1], where, map_size, exponentials, [=](Operands& o) {
    const Matrix<float> s = o.in_out(rows, keys, stride), sums = o.in_out(rows, 2, 2), out = o.in_out(rows, d, d);
    return [=] { kernels::attention_softmax_part(plain, s, Update::accumulate, sums, out); };
  });
  to_queries(forward[2]);
  cases.add(backward[1], where, map_size, exponentials, [=](Operands& o) {
    return [=, s = o.in_out(rows, keys, stride), saved = o.in(rows, 2)] {
      kernels::attention_softmax_again(plain, s, saved);
    };
  });
  to_keys(backward[2]);
  shared(backward[3]);
  cases.add(backward[4], where, map_size, {}, [=](Operands& o) {
    // With A = 1 and D = 0, dS = dA, so dA can be reused in every call.
    const Matrix<const float> A(o.filled(rows * stride, 1.0F), rows, keys, stride);
    const float* const D = o.filled(rows, 0.0F);
    return [=, dA = o.in_out(rows, keys, stride)] { kernels::attention_softmax_backward_from_sums(plain, A, D, dA); };
  });
  to_queries(backward[5]);
  to_keys(backward[6]);
  return cases;
}

std::vector<std::string> long_row_shares(const std::vector<KernelResult>& results) {
  std::vector<std::string> lines{shares("forward", forward, results), shares("backward", backward, results)};
  std::erase(lines, "");
  return lines;
}

}  // namespace heed::bench
