// Dense row-major tensors. A Tensor owns its memory; a View does not. Neither has a gradient: gradients are on the tape
// (tape/tape.h).
#pragma once

#include "heed/base/error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>

namespace heed {

/// Type of sizes, strides and indices. Signed, so that differences and reversed loops are plain arithmetic.
using Index = std::int64_t;

/// Alignment of every tensor in bytes: a cache line, and the widest vector register.
inline constexpr std::size_t alignment = 64;

/// The sizes of a tensor's axes, outermost first; at most six axes. A scalar has none.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<Index> sizes) : Shape(sizes.begin(), static_cast<int>(sizes.size())) {}
  Shape(const Index* sizes, int rank) : rank_(rank) {
    require(rank <= max_rank, "[tensor] a shape has {} axes; at most {} are supported", rank, max_rank);
    for (int axis = 0; axis < rank; ++axis) {
      require(sizes[axis] >= 0, "[tensor] axis {} has size {}; sizes must not be negative", axis, sizes[axis]);
      sizes_[static_cast<std::size_t>(axis)] = sizes[axis];
    }
  }

  int rank() const { return rank_; }

  /// Returns the size of an axis; negative axes count from the last (-1).
  Index operator[](int axis) const {
    HEED_ASSERT(axis >= -rank_ && axis < rank_);
    return sizes_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)];
  }

  /// Returns the number of elements, the product of all sizes (1 for a scalar).
  Index elements() const {
    Index product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= sizes_[static_cast<std::size_t>(axis)];
    return product;
  }

  /// Return the size of a row, which is that of the last axis, and the number of rows.
  Index row_size() const { return rank_ == 0 ? 1 : (*this)[-1]; }
  Index rows() const { return row_size() == 0 ? 0 : elements() / row_size(); }

  const Index* begin() const { return sizes_.data(); }
  const Index* end() const { return sizes_.data() + rank_; }

  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<Index, max_rank> sizes_{};
  int rank_ = 0;
};

/// Returns the sizes as text: "[2, 3, 5]".
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Index size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace heed

/// Formats shapes in messages. A shape is converted to text only when its message is formatted.
template <>
struct fmt::formatter<heed::Shape> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const heed::Shape& shape, Context& context) const {
    const std::string text = heed::to_string(shape);
    return std::copy(text.begin(), text.end(), context.out());
  }
};

namespace heed {

/// A non-owning row-major tensor.
template <class T>
class View {
 public:
  View() = default;
  View(T* data, Shape shape) : data_(data), shape_(shape) {}

  /// Converts a View<T> to a View<const T>.
  template <class U>
  requires(std::is_same_v<const U, T>) View(const View<U>& other) : data_(other.data()), shape_(other.shape()) {}

  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.elements(); }
  T* begin() const { return data_; }
  T* end() const { return data_ + size(); }
  T& operator[](Index flat) const { return data_[flat]; }

  /// Returns the part with indices [first, first + count) of the first axis.
  View part(Index first, Index count) const {
    HEED_ASSERT(first >= 0 && first + count <= shape_[0]);
    std::array<Index, Shape::max_rank> sizes{};
    std::copy(shape_.begin(), shape_.end(), sizes.begin());
    sizes[0] = count;
    const Shape part(sizes.data(), shape_.rank());
    return {data_ ? data_ + first * (size() / shape_[0]) : nullptr, part};
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
};

/// Parameter type View<const T> from which T is not deduced, so that tensors and views, const or not, convert to it.
template <class T>
using ViewFor = std::type_identity_t<View<const T>>;

/// Returns the size of `count` elements in bytes. Throws std::bad_alloc if it exceeds the address space.
template <class T>
std::size_t bytes_of(Index count) {
  if (static_cast<std::uint64_t>(count) > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
  return static_cast<std::size_t>(count) * sizeof(T);
}

namespace detail {
/// Allocates uninitialised memory, aligned for vector loads. Throws std::bad_alloc on failure.
void* take_memory(std::size_t bytes);
/// Releases memory of take_memory().
void give_back_memory(void* memory, std::size_t bytes);
}  // namespace detail

/// Uninitialised memory for `count` elements, aligned for vector loads; freed on destruction.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(Index count) : size_(count) {
    if (count > 0) data_ = static_cast<T*>(detail::take_memory(bytes_of<T>(count)));
  }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_) detail::give_back_memory(data_, bytes_of<T>(size_));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  Index size() const { return size_; }

 private:
  T* data_ = nullptr;
  Index size_ = 0;
};

/// A row-major tensor that owns its memory, zero-initialised.
template <class T>
class Tensor {
 public:
  Tensor() : Tensor(Shape{0}) {}
  explicit Tensor(Shape shape) : buffer_(shape.elements()), shape_(shape) { std::fill(begin(), end(), T(0)); }
  Tensor(Shape shape, std::initializer_list<T> values) : Tensor(shape) {
    require(static_cast<Index>(values.size()) == size(), "[tensor] shape {} has {} elements, found {} values",
            to_string(shape), size(), values.size());
    std::copy(values.begin(), values.end(), begin());
  }
  Tensor(const Tensor& other) : buffer_(other.size()), shape_(other.shape_) {
    std::copy(other.begin(), other.end(), begin());
  }
  Tensor& operator=(const Tensor& other) {
    if (this != &other) *this = Tensor(other);
    return *this;
  }
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.elements(); }
  T* data() { return buffer_.data(); }
  const T* data() const { return buffer_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T& operator[](Index flat) { return data()[flat]; }
  const T& operator[](Index flat) const { return data()[flat]; }

  View<T> view() { return {data(), shape_}; }
  View<const T> view() const { return {data(), shape_}; }

 private:
  Buffer<T> buffer_;
  Shape shape_;
};

}  // namespace heed
