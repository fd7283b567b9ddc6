// Divides memory into matrices, or measures how much they take: the same code does both.
#pragma once

#include "heed/base/matrix.h"

#include <vector>

namespace heed {

/// Hands out one piece of memory after the other. Without memory the pieces are empty and taken() is their joint size.
/// With a fence, so many numbers are left out after each piece: if they change, somebody wrote past it.
template <class T>
class Carver {
 public:
  explicit Carver(T* memory = nullptr, Index fence = 0) : memory_(memory), fence_(fence) {}

  /// Not inline: some twenty such calls in a row are a kilobyte of code each time that memory is divided.
  [[gnu::noinline]] T* numbers(Index count) {
    T* const piece = memory_ && count > 0 ? memory_ + taken_ : nullptr;
    taken_ += count;
    if (fence_ > 0) fences_.push_back(taken_);
    taken_ += fence_;
    return piece;
  }
  Matrix<T> matrix(Index rows, Index columns) { return {numbers(rows * columns), rows, columns}; }

  /// Rows begin `stride` numbers apart.
  Matrix<T> matrix(Index rows, Index columns, Index stride) { return {numbers(rows * stride), rows, columns, stride}; }

  /// Numbers handed out, fences included.
  Index taken() const { return taken_; }

  /// Where the fences begin.
  const std::vector<Index>& fences() const { return fences_; }

 private:
  T* memory_;
  Index fence_, taken_ = 0;
  std::vector<Index> fences_;
};

/// Parts with memory of their own. Parts<T>(arguments..., carver) carves them.
template <template <class> class Parts, class T>
class Carved {
 public:
  template <class... Arguments>
  explicit Carved(const Arguments&... arguments)
      : memory_(measured(arguments...)), carver_(memory_.data()), parts_(arguments..., carver_) {}

  const Parts<T>& operator*() const { return parts_; }

 private:
  template <class... Arguments>
  static Index measured(const Arguments&... arguments) {
    Carver<T> carver;
    static_cast<void>(Parts<T>(arguments..., carver));
    return carver.taken();
  }

  Buffer<T> memory_;
  Carver<T> carver_;
  Parts<T> parts_;
};

}  // namespace heed
