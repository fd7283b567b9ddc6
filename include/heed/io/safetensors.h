// Safetensors, the file format of weights and checkpoints (https://github.com/huggingface/safetensors):
//
//   8 bytes   length of the header, little-endian
//   header    JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//             "__metadata__": {"key": "text", ...}}, padded with spaces
//   data      the tensors, row-major, little-endian, consecutive without gaps
//
// Every length, offset, dtype and shape of a file is checked before use.
#pragma once

#include "heed/io/file.h"
#include "heed/base/tensor.h"

#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace heed {

/// Metadata key of the CRC-32 of all bytes after the first eight, in eight hexadecimal digits. The CRC is computed with
/// "00000000" in place of these digits.
inline constexpr const char* checksum_key = "heed.checksum";

/// Supported element types of a tensor in a file.
enum class DType { BOOL, U8, I8, I16, U16, I32, U32, I64, F16, BF16, F32, F64 };

/// Returns the format's name of a type, for example "F32".
const char* to_string(DType dtype);

/// Returns the size of an element in bytes.
std::size_t size_of(DType dtype);

/// Header entry of a tensor.
struct TensorInfo {
  DType dtype;
  Shape shape;
  std::uint64_t offset;  ///< offset of its first byte in the file
};

/// A safetensors file open for reading. The constructor reads and checks the header; tensors are read on demand, by any
/// thread. Floating-point tensors (F16, BF16, F32, F64) are read as float or double, exactly if that is at least as
/// wide as the file's type; integer and boolean tensors as std::int64_t.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }

  /// Returns the names of the tensors, in the order of their data.
  const std::vector<std::string>& names() const { return names_; }

  bool contains(const std::string& name) const { return tensors_.contains(name); }

  /// Returns a tensor's entry. Throws Error if the file lacks it.
  const TensorInfo& info(const std::string& name) const;

  template <class T>
  Tensor<T> read(const std::string& name) const {
    Tensor<T> tensor(info(name).shape);
    read(name, tensor.view());
    return tensor;
  }

  /// Reads a tensor. Throws Error unless `out` has its shape.
  void read(const std::string& name, View<float> out) const;
  void read(const std::string& name, View<double> out) const;
  void read(const std::string& name, View<std::int64_t> out) const;

  /// Keeps only the tensors whose names begin with `prefix`, which is removed, and those named in `others`.
  void take_prefix(const std::string& prefix, const std::vector<std::string>& others = {});

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Reads the whole file. Throws Error if its checksum does not match, or if another program has rewritten the header.
  /// Files without metadata or from other programs have no checksum and are not checked.
  void check() const;

  /// Returns the CRC-32 of all bytes of the file, in eight hexadecimal digits, as other programs compute it.
  std::string checksum() const;

 private:
  template <class T>
  void read_as(const std::string& name, View<T> out) const;

  InputFile file_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writer of tensors to an atomically replaced file. The bytes depend only on the tensors, their order and the
/// metadata. Data start at a multiple of 64 bytes and wider types come first, so that every tensor is aligned to its
/// element type when the file is mapped. A file with metadata also gets a checksum.
class SafetensorsWriter {
 public:
  /// Adds a tensor, whose memory must stay valid until write().
  void add(const std::string& name, View<const float> tensor) { add(name, DType::F32, tensor.shape(), tensor.data()); }
  void add(const std::string& name, View<const double> tensor) { add(name, DType::F64, tensor.shape(), tensor.data()); }
  void add(const std::string& name, View<const std::int64_t> tensor) {
    add(name, DType::I64, tensor.shape(), tensor.data());
  }

  /// Sets the metadata text of a key, replacing an earlier one.
  void metadata(const std::string& key, const std::string& text) { metadata_[key] = text; }

  /// Writes or replaces the file `path`; if it throws, the file is unchanged.
  void write(const std::string& path) const;

 private:
  /// A tensor to write; `data` belongs to the caller.
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    const void* data;
  };
  void add(const std::string& name, DType dtype, const Shape& shape, const void* data);

  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
  std::map<std::string, std::string> metadata_;
};

/// Throws Error if the tensor has an infinity or NaN, naming the file, the tensor, the value and its position.
template <class T>
void require_finite(const std::string& path, const std::string& name, View<const T> tensor) {
  for (Index i = 0; i < tensor.size(); ++i)
    require(std::isfinite(tensor[i]), "{}: tensor '{}' has value {} at element {} of shape {}; expected finite numbers",
            path, name, tensor[i], i, to_string(tensor.shape()));
}

}  // namespace heed
