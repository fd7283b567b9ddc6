// Layouts of memory: the same code divides a block of memory into matrices and measures their total size.
#pragma once

#include "heed/base/matrix.h"

#include <vector>

namespace heed {

/// Divides a block of memory into consecutive parts. Without a block, parts are null, and taken() is the size needed.
/// `guard` elements are skipped after each part; if they change, a write has overrun the part.
template <class T>
class MemoryLayout {
 public:
  explicit MemoryLayout(T* memory = nullptr, Index guard = 0) : memory_(memory), guard_(guard) {}

  /// Returns the next `count` elements. Not inlined: a layout has about 20 such calls, a kilobyte of code in all.
  [[gnu::noinline]] T* numbers(Index count) {
    T* const part = memory_ && count > 0 ? memory_ + taken_ : nullptr;
    taken_ += count;
    if (guard_ > 0) guards_.push_back(taken_);
    taken_ += guard_;
    return part;
  }
  Matrix<T> matrix(Index rows, Index columns) { return {numbers(rows * columns), rows, columns}; }

  /// Returns a matrix whose rows begin `stride` elements apart.
  Matrix<T> matrix(Index rows, Index columns, Index stride) { return {numbers(rows * stride), rows, columns, stride}; }

  /// Returns the number of elements taken so far, guard regions included.
  Index taken() const { return taken_; }

  /// Returns the offsets of the guard regions.
  const std::vector<Index>& guards() const { return guards_; }

 private:
  T* memory_;
  Index guard_, taken_ = 0;
  std::vector<Index> guards_;
};

/// A Parts<T>, constructed as Parts<T>(arguments..., layout), and the memory that it needs.
template <template <class> class Parts, class T>
class LaidOut {
 public:
  template <class... Arguments>
  explicit LaidOut(const Arguments&... arguments)
      : memory_(measured(arguments...)), layout_(memory_.data()), parts_(arguments..., layout_) {}

  const Parts<T>& operator*() const { return parts_; }

 private:
  template <class... Arguments>
  static Index measured(const Arguments&... arguments) {
    MemoryLayout<T> layout;
    static_cast<void>(Parts<T>(arguments..., layout));
    return layout.taken();
  }

  Buffer<T> memory_;
  MemoryLayout<T> layout_;
  Parts<T> parts_;
};

}  // namespace heed
