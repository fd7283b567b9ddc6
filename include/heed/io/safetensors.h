// Safetensors, the file format of weights and checkpoints (https://github.com/huggingface/safetensors):
//
//   8 bytes   length of the header, little-endian
//   header    JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//             "__metadata__": {"key": "text", ...}}, padded with spaces
//   data      the tensors, row-major, little-endian, one after the other without gaps
//
// A file is believed only after every length, offset, dtype and shape in it has been checked.
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

/// Metadata under this key hold the CRC-32 of all bytes after the first eight, in eight hexadecimal digits that count
/// as zeros.
inline constexpr const char* checksum_key = "heed.checksum";

/// The number types a tensor may have in a file. (Others that the format knows are refused.)
enum class DType { BOOL, U8, I8, I16, U16, I32, U32, I64, F16, BF16, F32, F64 };

/// As the format spells it: "F32".
const char* to_string(DType dtype);

/// Bytes per number.
std::size_t size_of(DType dtype);

/// The header's entry for one tensor.
struct TensorInfo {
  DType dtype;
  Shape shape;
  std::uint64_t offset;  ///< offset of its first byte in the file
};

/// A safetensors file open for reading. The constructor reads and checks the header; tensors are read when asked
/// for, by any thread. Tensors of floats (F16, BF16, F32, F64) are read as float or double, which is exact wherever
/// the type read is no narrower than the file's; tensors of integers and booleans as std::int64_t.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }

  /// Names of the tensors, in the order of their data.
  const std::vector<std::string>& names() const { return names_; }

  bool contains(const std::string& name) const { return tensors_.contains(name); }

  /// A tensor that the file lacks is an error.
  const TensorInfo& info(const std::string& name) const;

  template <class T>
  Tensor<T> read(const std::string& name) const {
    Tensor<T> tensor(info(name).shape);
    read(name, tensor.view());
    return tensor;
  }

  /// Reads into memory that has exactly the tensor's shape; another shape is an error.
  void read(const std::string& name, View<float> out) const;
  void read(const std::string& name, View<double> out) const;
  void read(const std::string& name, View<std::int64_t> out) const;

  /// Keeps the tensors whose names begin with `prefix`, under the rest of their names, and those of `others`.
  void take_prefix(const std::string& prefix, const std::vector<std::string>& others = {});

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Reads the whole file. Throws Error if it has a checksum and another one is found, or if another program has
  /// spelled the header anew. Files without metadata, and those that other programs have made, have none.
  void check() const;

  /// CRC-32 of all bytes of the file, in eight hexadecimal digits, as other programs compute it.
  std::string checksum() const;

 private:
  template <class T>
  void read_as(const std::string& name, View<T> out) const;

  InputFile file_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Gathers tensors, then writes them in one step. The bytes depend on the tensors, their order and the metadata
/// alone. Data starts at a multiple of 64 bytes and wider numbers come first, so that every tensor is aligned to its
/// number type when the file is read in place. A file with metadata also gets a checksum.
class SafetensorsWriter {
 public:
  /// The tensor's memory is read by write() and has to last until then.
  void add(const std::string& name, View<const float> tensor) { add(name, DType::F32, tensor.shape(), tensor.data()); }
  void add(const std::string& name, View<const double> tensor) { add(name, DType::F64, tensor.shape(), tensor.data()); }
  void add(const std::string& name, View<const std::int64_t> tensor) {
    add(name, DType::I64, tensor.shape(), tensor.data());
  }

  /// Text kept beside the tensors; a key set twice keeps the last text.
  void metadata(const std::string& key, const std::string& text) { metadata_[key] = text; }

  /// Replaces the file `path`, or leaves it alone and throws.
  void write(const std::string& path) const;

 private:
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

/// Refuses a tensor that holds an infinity or a NaN; the error names the file, the tensor, the value and its place.
template <class T>
void require_finite(const std::string& path, const std::string& name, View<const T> tensor) {
  for (Index i = 0; i < tensor.size(); ++i)
    require(std::isfinite(tensor[i]), "{}: tensor '{}': holds {} at element {} of shape {}; expected finite numbers",
            path, name, tensor[i], i, to_string(tensor.shape()));
}

}  // namespace heed
