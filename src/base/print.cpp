#include "heed/base/print.h"

#include <algorithm>
#include <ostream>
#include <vector>

namespace heed::detail {

namespace {

constexpr Index longest_axis = 8, shown_at_each_end = 3;

/// Writer of a tensor as nested brackets, with elements rounded and padded to equal width.
class Printer {
 public:
  Printer(const Shape& shape, const std::function<double(Index)>& value) : shape_(shape), value_(value) {
    collect(0, 0);
    for (const std::string& text : texts_) width_ = std::max(width_, text.size());
  }

  void write(std::ostream& out, int axis) {
    if (axis == shape_.rank()) {
      out << fmt::format("{:>{}}", texts_[next_++], width_);
      return;
    }
    const bool innermost = axis == shape_.rank() - 1;
    const std::string separator = innermost
                                      ? ", "
                                      : "," + std::string(static_cast<std::size_t>(shape_.rank() - 1 - axis), '\n') +
                                            std::string(static_cast<std::size_t>(axis + 1), ' ');
    out << "[";
    for_shown(axis, [&](Index i, bool after_gap) {
      if (i > 0) out << separator;
      if (after_gap) out << "..." << separator;
      write(out, axis + 1);
    });
    out << "]";
  }

 private:
  /// Calls f(i, after_gap) for each printed index of an axis; after_gap means that elements before i are omitted.
  template <class F>
  void for_shown(int axis, const F& f) const {
    const Index n = shape_[axis];
    const bool cut = n > longest_axis;
    for (Index i = 0; i < (cut ? shown_at_each_end : n); ++i) f(i, false);
    for (Index i = n - shown_at_each_end; cut && i < n; ++i) f(i, i == n - shown_at_each_end);
  }

  void collect(int axis, Index flat) {
    if (axis == shape_.rank()) {
      texts_.push_back(fmt::format("{:.4g}", value_(flat)));
      return;
    }
    for_shown(axis, [&](Index i, bool) { collect(axis + 1, flat * shape_[axis] + i); });
  }

  const Shape& shape_;
  const std::function<double(Index)>& value_;
  std::vector<std::string> texts_;
  std::size_t width_ = 0, next_ = 0;
};

}  // namespace

void print_values(std::ostream& out, const Shape& shape, const std::function<double(Index)>& value) {
  Printer(shape, value).write(out, 0);
  out << fmt::format("  shape {}", shape);
}

}  // namespace heed::detail
