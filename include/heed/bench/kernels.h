// Benchmarks of the kernels at the sizes of the standard models, each compared with its limiting resource.
#pragma once

#include "heed/bench/limits.h"

#include "heed/attention/map_blocks.h"

#include <algorithm>
#include <deque>

namespace heed::bench {

/// Memory for a kernel call, filled with random numbers, and the number of bytes that the call moves.
class Operands {
 public:
  /// Return n elements that the kernel reads, writes, reads and writes, or uses as scratch memory.
  const float* in(Index n) { return take(n, true, false); }
  float* out(Index n) { return take(n, false, true); }
  float* in_out(Index n) { return take(n, true, true); }
  float* scratch(Index n) { return take(n, false, false); }

  /// Return operands of these kinds as matrices; the gaps between rows count as moved.
  Matrix<const float> in(Index rows, Index columns, Index stride) { return {in(rows * stride), rows, columns, stride}; }
  Matrix<const float> in(Index rows, Index columns) { return in(rows, columns, columns); }
  Matrix<float> out(Index rows, Index columns, Index stride) { return {out(rows * stride), rows, columns, stride}; }
  Matrix<float> out(Index rows, Index columns) { return out(rows, columns, columns); }
  Matrix<float> in_out(Index rows, Index columns, Index stride) {
    return {in_out(rows * stride), rows, columns, stride};
  }

  /// Returns an array of n elements for the kernel to read, all equal to `value`.
  const float* filled(Index n, float value) {
    float* const numbers = take(n, true, false);
    std::fill_n(numbers, n, value);
    return numbers;
  }

  /// Return the bytes read, if each operand is read once; the bytes read and written; and the bytes allocated.
  double read() const { return read_; }
  double moved() const { return read_ + written_; }
  double held() const { return held_; }

 private:
  float* take(Index n, bool read, bool written);

  std::deque<Tensor<float>> memory_;
  double read_ = 0, written_ = 0, held_ = 0;
};

/// Amount of a kernel's work that uses a resource, in floating-point operations or elements.
struct Work {
  Resource of;
  Index amount;
};

/// A kernel at one size.
struct KernelCase {
  std::string kernel;                                       ///< "gemm forward"
  std::string where;                                        ///< "vit-micro qkv"
  std::string size;                                         ///< "400 x 192 x 64"
  std::vector<Work> work;                                   ///< the rate refers to the first entry; if empty, to bytes
  std::function<std::function<void()>(Operands&)> prepare;  ///< allocates operands and returns the call

  std::string name() const { return kernel + ", " + where; }
};

/// A list of cases.
struct KernelCases : std::vector<KernelCase> {
  /// Adds a case for a model or a layer, `where`.
  template <class Prepare>
  void add(std::string kernel, std::string where, std::string size, std::vector<Work> work, const Prepare& prepare) {
    push_back({std::move(kernel), std::move(where), std::move(size), std::move(work), prepare});
  }

  /// Adds a case of m n k multiply-adds if `limit` is gemm, otherwise of m n k terms of l1 distances or of their
  /// clamped gradients.
  template <class Prepare>
  void add_product(std::string kernel, std::string where, Resource limit, Index m, Index n, Index k,
                   const Prepare& prepare) {
    const Index amount = (limit == Resource::gemm ? 2 : 1) * m * n * k;
    add(std::move(kernel), std::move(where), fmt::format("{} x {} x {}", m, n, k), {{limit, amount}}, prepare);
  }
};

/// The measured rate of a kernel.
struct KernelResult {
  std::string kernel, size;
  double microseconds = 0;
  Measurement measured;
  Resource limit{};     ///< the limiting resource: the one whose work takes longest at its limit
  double fraction = 0;  ///< the time at that limit divided by the measured time
};

/// Kernel sizes of the two standard models, for a microbatch of `images` images.
struct ModelSizes {
  const char* name;
  Index tokens, dim, hidden, heads, grid, parameters;

  static constexpr Index images = 8;
  Index rows() const { return images * tokens; }
  Index head() const { return dim / heads; }
  /// Returns the number of rows of an attention map that are computed at a time.
  Index map_rows() const { return map_block(tokens); }
  /// Returns the stride of a map's rows, which are aligned to cache lines.
  Index map_stride() const { return padded_row(tokens); }

  /// A linear layer: name, input and output channels.
  struct Layer {
    const char* name;
    Index in, out;
  };
  std::vector<Layer> layers() const {
    return {{"qkv", dim, 3 * dim}, {"proj", dim, dim}, {"fc1", dim, hidden}, {"fc2", hidden, dim}};
  }
};
inline constexpr ModelSizes model_sizes[] = {{"vit-micro", 50, 64, 128, 4, 7, 139'018},
                                             {"deit-tiny-p4", 65, 192, 768, 3, 8, 5'362'762}};

/// Return a model's cases: matrix products, l1 distances, kernels with exps, memory-bound kernels, and kernels of
/// single mechanisms.
std::vector<KernelCase> product_cases(const ModelSizes& model);
std::vector<KernelCase> distance_cases(const ModelSizes& model);
std::vector<KernelCase> exponential_cases(const ModelSizes& model);
std::vector<KernelCase> row_cases(const ModelSizes& model);
std::vector<KernelCase> mechanism_cases(const ModelSizes& model);

/// Returns the cases of convolutions, which the standard models lack.
std::vector<KernelCase> convolution_cases();

/// Returns the cases of the parts of softmax attention over a block of long rows.
std::vector<KernelCase> long_row_cases();

/// Returns all cases, ordered by kernel.
std::vector<KernelCase> kernel_cases();

/// Measures a kernel on one thread for about `seconds`.
KernelResult measure(const KernelCase& kernel, const Limits& limits, double seconds);

/// Returns one line, with the reason, for each kernel slower than expected even in its fastest tenth of calls. The
/// expectations are 80 % of the limit for l1 distances, 75 % for clamped gradients, 60 % for kernels with exps, for
/// gelu and for dense convolutions, 50 % for depth-wise convolutions; other kernels have none.
std::vector<std::string> shortfalls(const std::vector<KernelResult>& results);

/// Returns the share of each part in the time of a pass over a block of long rows, one line per pass. Omits a pass if
/// the result of any of its parts is missing.
std::vector<std::string> long_row_shares(const std::vector<KernelResult>& results);

}  // namespace heed::bench
