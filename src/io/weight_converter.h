// Conversion of other programs' tensors to heed's: renaming, joining and splitting.
#pragma once

#include "heed/io/safetensors.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace heed {

using BeforeWriting = std::function<void(const std::map<std::string, Shape>&)>;

/// The same part of a tensor's name in another program (`theirs`) and in heed (`ours`). If several tensors are joined,
/// this one is slice `place` among `of` slices.
struct Renaming {
  const char *theirs, *ours;
  int place = 0, of = 1;
};

/// Rows of a joined tensor: slice `place` among `of` slices.
template <class T>
struct Rows {
  std::string name, theirs;
  int place, of;
  Tensor<T> values;
};

template <class T>
class WeightConverter {
 public:
  explicit WeightConverter(const SafetensorsFile& file) : file_(file) {}

  /// Adds the tensor `theirs` as rows of the tensor `ours`: slice `place` among `of` slices.
  void add_rows(const std::string& ours, int place, int of, const std::string& theirs) {
    push({ours, theirs, place, of, read(theirs)});
  }

  /// Splits the rows of `theirs` into three tensors of equal size.
  void cut(const std::string& theirs, const std::array<std::string, 3>& ours) {
    const Tensor<T> all = read(theirs);
    const Index rows = all.shape().rank() > 0 ? all.shape()[0] : 0;
    require(rows > 0 && rows % 3 == 0, "{}: tensor '{}' has shape {}; expected the rows of q, k and v", file_.path(),
            theirs, all.shape());
    for (Index i = 0; i < 3; ++i) {
      const View<const T> third = all.view().part(i * rows / 3, rows / 3);
      Tensor<T> values(third.shape());
      std::copy(third.begin(), third.end(), values.begin());
      push({ours[i], theirs, 0, 1, std::move(values)});
    }
  }

  /// If there are registers, which have no position, as in DINOv2: adds the class token's position to the class token,
  /// and removes that position from the position embedding.
  void fold_class_position() {
    if (!find("reg_token", 0) || !find("cls_token", 0) || !find("pos_embed", 0)) return;
    Tensor<T>&cls = find("cls_token", 0)->values, &positions = find("pos_embed", 0)->values;
    const Shape& shape = positions.shape();
    require(shape.rank() == 3 && shape[1] > 1 && shape[2] == cls.size(),
            "{}: the position embedding has shape {}; expected rows of {} values, for the class token and the patches",
            file_.path(), shape, cls.size());
    const Index rows = shape[1], width = cls.size();
    for (Index d = 0; d < width; ++d) cls[d] += positions[d];
    Tensor<T> patches(Shape{1, rows - 1, width});
    std::copy(positions.begin() + width, positions.end(), patches.begin());
    positions = std::move(patches);
  }

  /// Calls `before` with the shapes of the tensors, then writes the tensors.
  void write(
      const std::string& path, const BeforeWriting& before = [](const auto&) {}) {
    require(!parts_.empty(), "{}: has no tensors", file_.path());
    SafetensorsWriter writer;
    std::map<std::string, Shape> shapes;
    for (const Rows<T>& rows : parts_) {
      if (rows.place > 0) continue;
      const View<const T> tensor = joined(rows).view();
      shapes[rows.name] = tensor.shape();
      writer.add(rows.name, tensor);
    }
    for (const Rows<T>& rows : parts_)
      require(rows.place == 0 || find(rows.name, 0),
              "{}: '{}' has the last rows of '{}'; the tensor with the first rows is missing", file_.path(),
              rows.theirs, rows.name);
    before(shapes);
    writer.write(path);
  }

 private:
  Tensor<T> read(const std::string& theirs) const {
    Tensor<T> values = file_.read<T>(theirs);
    require_finite<T>(file_.path(), theirs, values.view());
    return values;
  }

  void push(Rows<T> rows) {
    if (const Rows<T>* const same = find(rows.name, rows.place))
      fail("{}: '{}' and '{}' are both renamed to '{}'; expected one of them", file_.path(), same->theirs, rows.theirs,
           rows.name);
    Rows<T>& kept = parts_.emplace_back(std::move(rows));
    known_[{kept.name, kept.place}] = &kept;
  }

  /// Returns slice `place` of a tensor; null if it has not been added.
  Rows<T>* find(const std::string& name, int place) const {
    const auto found = known_.find({name, place});
    return found != known_.end() ? found->second : nullptr;
  }

  /// Returns the tensor whose first slice is `first`, joined with its other slices.
  const Tensor<T>& joined(const Rows<T>& first) {
    if (first.of == 1) return first.values;
    const Shape& a = first.values.shape();
    Index rows = a.rank() > 0 ? a[0] : 0;
    std::vector<const Tensor<T>*> parts{&first.values};
    for (int place = 1; place < first.of; ++place) {
      const Rows<T>* const next = find(first.name, place);
      require(next != nullptr, "{}: '{}' has the first rows of '{}'; the tensor with the last rows is missing",
              file_.path(), first.theirs, first.name);
      const Shape& b = next->values.shape();
      require(a.rank() == b.rank() && a.rank() <= 2 && a.rank() >= 1 && (a.rank() == 1 || a[1] == b[1]),
              "{}: '{}' cannot be joined from shapes {} and {}", file_.path(), first.name, a, b);
      rows += b[0];
      parts.push_back(&next->values);
    }
    Tensor<T>& all = joined_.emplace_back(a.rank() == 1 ? Shape{rows} : Shape{rows, a[1]});
    T* to = all.data();
    for (const Tensor<T>* part : parts) to = std::copy(part->begin(), part->end(), to);
    return all;
  }

  const SafetensorsFile& file_;
  std::deque<Rows<T>> parts_;
  std::map<std::pair<std::string, int>, Rows<T>*> known_;
  std::deque<Tensor<T>> joined_;
};

}  // namespace heed
