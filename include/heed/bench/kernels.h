// The kernels at the sizes of the standard models, each held against what limits it.
#pragma once

#include "heed/bench/limits.h"

#include "heed/attention/map_blocks.h"

#include <deque>

namespace heed::bench {

/// Memory for a call of a kernel, filled with random numbers, and how much of it the call moves.
class Operands {
 public:
  /// n numbers that the kernel reads, writes, or reads and writes.
  const float* in(Index n) { return take(n, true, false); }
  float* out(Index n) { return take(n, false, true); }
  float* in_out(Index n) { return take(n, true, true); }
  float* scratch(Index n) { return take(n, false, false); }

  /// Matrices likewise; of their numbers, those between rows count as the others do.
  Matrix<const float> in(Index rows, Index columns, Index stride) { return {in(rows * stride), rows, columns, stride}; }
  Matrix<const float> in(Index rows, Index columns) { return in(rows, columns, columns); }
  Matrix<float> out(Index rows, Index columns, Index stride) { return {out(rows * stride), rows, columns, stride}; }
  Matrix<float> out(Index rows, Index columns) { return out(rows, columns, columns); }
  Matrix<float> in_out(Index rows, Index columns, Index stride) {
    return {in_out(rows * stride), rows, columns, stride};
  }

  /// Bytes read, if each operand is once; read and written; and of memory that they take.
  double read() const { return read_; }
  double moved() const { return read_ + written_; }
  double held() const { return held_; }

 private:
  float* take(Index n, bool read, bool written);

  std::deque<Tensor<float>> memory_;
  double read_ = 0, written_ = 0, held_ = 0;
};

/// An amount of work of one resource, in floating-point operations or elements.
struct Work {
  Resource of;
  Index amount;
};

/// A kernel at one size.
struct KernelCase {
  std::string kernel;      ///< "gemm forward"
  std::string where;       ///< "vit-micro qkv"
  std::string size;        ///< "400 x 192 x 64"
  std::vector<Work> work;  ///< its rate counts the first, or where there is none, bytes
  std::function<std::function<void()>(Operands&)> prepare;  ///< takes operands and returns the call

  std::string name() const { return kernel + ", " + where; }
};

/// Returns a case for a model or a layer, `where`.
template <class Prepare>
KernelCase kernel_case(std::string kernel, std::string where, std::string size, std::vector<Work> work,
                       const Prepare& prepare) {
  return {std::move(kernel), std::move(where), std::move(size), std::move(work), prepare};
}

/// The measured rate of a kernel.
struct KernelResult {
  std::string kernel, size;
  double microseconds = 0;
  Measurement measured;
  Resource limit{};     ///< the resource that would take longest at its limit
  double fraction = 0;  ///< that time by the measured time
};

/// The two standard models, as the kernels see them: a microbatch, images that one thread takes at a time.
struct ModelSizes {
  const char* name;
  Index tokens, dim, hidden, heads, grid, parameters;

  static constexpr Index images = 8;
  Index rows() const { return images * tokens; }
  Index head() const { return dim / heads; }
  /// Rows of an attention map made at once.
  Index map_rows() const { return map_block(tokens); }
  /// From one of them to the next, which begins on a cache line.
  Index map_stride() const { return padded_row(tokens); }

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

/// The cases of a model, by the limit that most of them meet.
std::vector<KernelCase> product_cases(const ModelSizes& model);
std::vector<KernelCase> distance_cases(const ModelSizes& model);
std::vector<KernelCase> exponential_cases(const ModelSizes& model);
std::vector<KernelCase> row_cases(const ModelSizes& model);
std::vector<KernelCase> mechanism_cases(const ModelSizes& model);

/// Returns the cases of convolutions, which these models lack.
std::vector<KernelCase> convolution_cases();

/// Returns the parts of softmax attention over a block of long rows.
std::vector<KernelCase> long_row_cases();

/// All of them, kernel by kernel.
std::vector<KernelCase> kernel_cases();

/// Measures a kernel on one thread for about `seconds`.
KernelResult measure(const KernelCase& kernel, const Limits& limits, double seconds);

/// A line for each kernel that falls short of what is expected of it, even in its fastest tenth of calls, and why: 80 %
/// of the limit for l1 distances, 75 % for clamped gradients, 60 % where there are exponentials.
std::vector<std::string> shortfalls(const std::vector<KernelResult>& results);

/// Returns the share of each part in a pass over a block of long rows, a line a pass; none if a part is missing.
std::vector<std::string> long_row_shares(const std::vector<KernelResult>& results);

}  // namespace heed::bench
