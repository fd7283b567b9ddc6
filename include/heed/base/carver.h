// Divides memory into matrices, or measures how much they take: the same code does both.
#pragma once

#include "heed/base/matrix.h"

#include <vector>

namespace heed {

/// Returns one piece of memory after the other. Without memory the pieces are empty and taken() is their total size.
/// `guard` elements are left out after each piece: if they change, a write overran it.
template <class T>
class Carver {
 public:
  explicit Carver(T* memory = nullptr, Index guard = 0) : memory_(memory), guard_(guard) {}

  /// Not inline: some twenty such calls in a row are a kilobyte of code each time that memory is divided.
  [[gnu::noinline]] T* numbers(Index count) {
    T* const piece = memory_ && count > 0 ? memory_ + taken_ : nullptr;
    taken_ += count;
    if (guard_ > 0) guards_.push_back(taken_);
    taken_ += guard_;
    return piece;
  }
  Matrix<T> matrix(Index rows, Index columns) { return {numbers(rows * columns), rows, columns}; }

  /// Rows begin `stride` numbers apart.
  Matrix<T> matrix(Index rows, Index columns, Index stride) { return {numbers(rows * stride), rows, columns, stride}; }

  /// Elements taken so far, guard regions included.
  Index taken() const { return taken_; }

  /// Offsets of the guard regions.
  const std::vector<Index>& guards() const { return guards_; }

 private:
  T* memory_;
  Index guard_, taken_ = 0;
  std::vector<Index> guards_;
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
