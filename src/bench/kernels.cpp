#include "heed/bench/kernels.h"

#include "heed/base/with_threads.h"
#include "heed/bench/timing.h"

namespace heed::bench {

float* Operands::take(Index n, bool read, bool written) {
  const RandomStream random(memory_.size());
  Tensor<float>& numbers = memory_.emplace_back(Shape{n});
  for (Index i = 0; i < n; ++i) numbers[i] = static_cast<float>(random.uniform(i));
  const double bytes = 4 * static_cast<double>(n);
  held_ += bytes;
  if (read) read_ += bytes;
  if (written) written_ += bytes;
  return numbers.data();
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const auto& list : {product_cases, distance_cases, exponential_cases, row_cases, mechanism_cases})
    for (const ModelSizes& model : model_sizes)
      for (KernelCase& kernel : list(model)) cases.push_back(std::move(kernel));
  for (const auto& list : {convolution_cases, long_row_cases})
    for (KernelCase& kernel : list()) cases.push_back(std::move(kernel));
  std::vector<std::string> order;
  for (const KernelCase& c : cases)
    if (std::find(order.begin(), order.end(), c.kernel) == order.end()) order.push_back(c.kernel);
  const auto place = [&](const KernelCase& c) { return std::find(order.begin(), order.end(), c.kernel); };
  std::stable_sort(cases.begin(), cases.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return cases;
}

KernelResult measure(const KernelCase& kernel, const Limits& limits, double seconds) {
  const WithThreads alone(1);
  Operands operands;
  const std::function<void()> call = kernel.prepare(operands);
  const Times times = time_calls(seconds, 1e-4, call);

  const Resource memory = limits.memory_for(operands.held());
  KernelResult result{kernel.kernel, kernel.size, 1e6 * times.median(), {}, memory, 0};
  double longest = std::max(limits.seconds(memory, operands.moved()), limits.seconds_to_read(memory, operands.read()));
  for (const Work& work : kernel.work) {
    const double time = limits.seconds(work.of, static_cast<double>(work.amount));
    if (time > longest) result.limit = work.of, longest = time;
  }
  result.fraction = longest / times.median();

  const bool computes = !kernel.work.empty();
  const double amount = computes ? static_cast<double>(kernel.work[0].amount) : operands.moved();
  const auto rate = [=](double time) { return amount / time / 1e9; };
  result.measured = {kernel.name(), unit_of(computes ? kernel.work[0].of : memory), rate(times.median()),
                     rate(times.high()), rate(times.low())};
  return result;
}

namespace {

struct Expectation {
  const char* kernel;
  double least;
  const char* reason;
};

// Reasons were determined on a Zen 4 with AVX-512, where a vector of 16 exps takes 8 cycles.
constexpr Expectation expectations[] = {
    {"l1 distance", 0.8,
     "maxima and products occupy all execution units: any other instruction, such as a broadcast that the CPU does not "
     "fuse with the load of its operand, costs a cycle"},
    {"l1 scores", 0.8,
     "three instructions (difference, magnitude, sum), which are exact for close rows, instead of two (maximum, sum); "
     "short rows"},
    {"clamped gradient", 0.75, "without AVX-512, a clamp takes two instructions, and there are fewer registers"},
    {"softmax forward", 0.6,
     "a row has 4 or 5 vectors, the last nearly empty; its maximum and sum are reductions across lanes, on which the "
     "next instructions depend"},
    {"softmax again", 0.6, "a row has 4 or 5 vectors, the last nearly empty, each scaled twice"},
    {"gelu forward", 0.6,
     "a polynomial with coefficients from a table takes as long as the exponential, and longer without AVX-512, where "
     "a coefficient takes several instructions"},
    {"gelu backward", 0.6,
     "a choice by sign, three arrays and a polynomial with coefficients from a table; without AVX-512, a coefficient "
     "takes several instructions"},
    {"sigmoid gate forward", 0.6, "a division in addition to the exponential"},
    {"sigmoid gate backward", 0.6,
     "a division and three products in addition to the exponential; three arrays read, two written"},
    {"conv 3 x 3 forward", 0.6, "windows are gathered before they are multiplied"},
    {"conv 3 x 3 forward and back", 0.6, "windows are gathered three times"},
    {"depth-wise 3 x 3 forward", 0.5,
     "windows at the ends of a row, or outside groups of four, are bound by latency: nine dependent multiply-adds "
     "each"},
    {"depth-wise 3 x 3 input gradient", 0.5, "bound by latency, as the forward kernel is"},
    {"depth-wise 3 x 3 weight gradient", 0.5, "nine sums, each added to its total once per four positions"},
    {"exp sums", 0.6, "an additional pass for the maxima"},
    {"exp of columns", 0.6, "an additional pass for the maxima; two results written per element"},
};

}  // namespace

std::vector<std::string> shortfalls(const std::vector<KernelResult>& results) {
  std::vector<std::string> lines;
  for (const Expectation& e : expectations) {
    double least = 1, most = 0;
    for (const KernelResult& r : results)
      if (const double reached = r.fraction * r.measured.high / r.measured.rate;
          r.kernel == e.kernel && reached < e.least)
        least = std::min(least, reached), most = std::max(most, reached);
    if (most == 0) continue;
    const std::string low = fmt::format("{:.0f}", 100 * least), high = fmt::format("{:.0f}", 100 * most);
    lines.push_back(fmt::format("{}: {}{} % of the limit, below {:.0f} %: {}", e.kernel,
                                low == high ? "" : low + " to ", high, 100 * e.least, e.reason));
  }
  return lines;
}

}  // namespace heed::bench
