#include "heed/io/safetensors.h"

#include "crc32.h"
#include "heed/base/suggest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read and written in memory order");

constexpr std::string_view no_checksum = "00000000";

// Returns the position of the checksum's digits in a header written by this program; npos if there are none. The key's
// quotes distinguish it from a value, in which they would be escaped.
std::size_t checksum_place(const std::string& header) {
  const std::string start = fmt::format("\"{}\":\"", checksum_key);
  const std::size_t found = header.find(start), place = found + start.size();
  const bool complete = found != std::string::npos && place + no_checksum.size() < header.size() &&
                        header[place + no_checksum.size()] == '"';
  return complete ? place : std::string::npos;
}

/// Continues the checksum over the rest of a file.
std::uint32_t crc_from(const InputFile& file, std::uint64_t at, std::uint32_t checksum) {
  constexpr std::uint64_t most = 1 << 20;
  std::string part;
  for (; at < file.size(); at += part.size()) {
    part.resize(std::min(most, file.size() - at));
    file.read(at, part.data(), part.size());
    checksum = crc32(checksum, part.data(), part.size());
  }
  return checksum;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and 10 fraction bits. Every value is exact in a float.
float from_f16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 1023;
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, std::bit_cast<float>(sign));
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// bfloat16: the upper half of a float.
float from_bf16(std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t(upper) << 16); }

// Reads out.size() elements of type Stored from `offset` on and converts them, through a small buffer.
template <class Stored, class T, class Convert>
void convert(const InputFile& file, std::uint64_t offset, View<T> out, Convert to_number) {
  constexpr Index most = 4096;
  Stored piece[most];
  for (Index done = 0; done < out.size(); done += most) {
    const Index count = std::min(most, out.size() - done);
    file.read(offset + std::uint64_t(done) * sizeof(Stored), piece, std::size_t(count) * sizeof(Stored));
    for (Index i = 0; i < count; ++i) out[done + i] = static_cast<T>(to_number(piece[i]));
  }
}

constexpr auto as_it_is = [](auto number) { return number; };

template <class T>
void read_floats(const InputFile& file, const TensorInfo& info, View<T> out) {
  if (info.dtype == DType::F16) return convert<std::uint16_t>(file, info.offset, out, from_f16);
  if (info.dtype == DType::BF16) return convert<std::uint16_t>(file, info.offset, out, from_bf16);
  if (info.dtype == DType::F32) return convert<float>(file, info.offset, out, as_it_is);
  convert<double>(file, info.offset, out, as_it_is);
}

void read_integers(const InputFile& file, const TensorInfo& info, View<std::int64_t> out) {
  if (info.dtype == DType::BOOL || info.dtype == DType::U8)
    return convert<std::uint8_t>(file, info.offset, out, as_it_is);
  if (info.dtype == DType::I8) return convert<std::int8_t>(file, info.offset, out, as_it_is);
  if (info.dtype == DType::I16) return convert<std::int16_t>(file, info.offset, out, as_it_is);
  if (info.dtype == DType::U16) return convert<std::uint16_t>(file, info.offset, out, as_it_is);
  if (info.dtype == DType::I32) return convert<std::int32_t>(file, info.offset, out, as_it_is);
  if (info.dtype == DType::U32) return convert<std::uint32_t>(file, info.offset, out, as_it_is);
  convert<std::int64_t>(file, info.offset, out, as_it_is);
}

bool is_float(DType dtype) { return dtype >= DType::F16; }

}  // namespace

const TensorInfo& SafetensorsFile::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  require(found != tensors_.end(), "{}: has no tensor {}", path(), in_quotes(name));
  return found->second;
}

void SafetensorsFile::take_prefix(const std::string& prefix, const std::vector<std::string>& others) {
  std::unordered_map<std::string, TensorInfo> kept;
  std::vector<std::string> names;
  for (const std::string& name : names_) {
    const bool begins = name.starts_with(prefix);
    if (!begins && std::find(others.begin(), others.end(), name) == others.end()) continue;
    const std::string& own = names.emplace_back(begins ? name.substr(prefix.size()) : name);
    require(kept.emplace(own, tensors_.at(name)).second, "{}: tensor {} exists with and without the prefix {}", path(),
            in_quotes(own), in_quotes(prefix));
  }
  names_ = std::move(names);
  tensors_ = std::move(kept);
}

template <class T>
void SafetensorsFile::read_as(const std::string& name, View<T> out) const {
  const TensorInfo& tensor = info(name);
  constexpr bool integers = std::is_integral_v<T>;
  require(is_float(tensor.dtype) != integers, "{}: tensor {}: dtype is {}; expected {}", path(), in_quotes(name),
          to_string(tensor.dtype), integers ? "an integer type" : "F16, BF16, F32 or F64");
  require(tensor.shape == out.shape(), "{}: tensor {}: shape is {}; expected {}", path(), in_quotes(name),
          to_string(tensor.shape), to_string(out.shape()));
  if constexpr (integers)
    read_integers(file_, tensor, out);
  else
    read_floats(file_, tensor, out);
}

void SafetensorsFile::read(const std::string& name, View<float> out) const { read_as(name, out); }
void SafetensorsFile::read(const std::string& name, View<double> out) const { read_as(name, out); }
void SafetensorsFile::read(const std::string& name, View<std::int64_t> out) const { read_as(name, out); }

void SafetensorsFile::check() const {
  const auto entry = metadata_.find(checksum_key);
  if (entry == metadata_.end()) return;
  std::uint64_t length = 0;
  file_.read(0, &length, sizeof length);
  std::string part(length, '\0');
  file_.read(sizeof length, part.data(), part.size());
  const std::size_t place = checksum_place(part);
  require(place != std::string::npos && part.compare(place, no_checksum.size(), entry->second) == 0,
          "{}: its checksum {} cannot be verified: the header was not written by heed", path(),
          in_quotes(entry->second));
  part.replace(place, no_checksum.size(), no_checksum);
  const std::uint32_t checksum = crc32(0, part.data(), part.size());
  const std::string found = fmt::format("{:08x}", crc_from(file_, sizeof length + length, checksum));
  require(found == entry->second, "{}: the file is damaged: its recorded checksum is {}, its content has {}", path(),
          in_quotes(entry->second), found);
}

std::string SafetensorsFile::checksum() const { return fmt::format("{:08x}", crc_from(file_, 0, 0)); }

void SafetensorsWriter::add(const std::string& name, DType dtype, const Shape& shape, const void* data) {
  require(name != "__metadata__", "[safetensors] '__metadata__' cannot name a tensor");
  if (!names_.insert(name).second) fail("[safetensors] tensor {} is added twice", in_quotes(name));
  entries_.push_back({name, dtype, shape, data});
}

void SafetensorsWriter::write(const std::string& path) const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return size_of(a->dtype) > size_of(b->dtype); });

  const auto bytes = [](const Entry* entry) { return std::uint64_t(entry->shape.elements()) * size_of(entry->dtype); };
  std::map<std::string, std::string> metadata = metadata_;
  if (!metadata.empty()) metadata[checksum_key] = no_checksum;
  std::string header = "{";
  std::uint64_t end = 0;
  try {
    if (!metadata.empty()) header += "\"__metadata__\":" + nlohmann::json(metadata).dump();
    for (const Entry* entry : order) {
      const std::uint64_t begin = std::exchange(end, end + bytes(entry));
      header +=
          fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", header.size() > 1 ? "," : "",
                      nlohmann::json(entry->name).dump(), to_string(entry->dtype), to_string(entry->shape), begin, end);
    }
  } catch (const nlohmann::json::exception&) {
    fail("{}: cannot write: a tensor's name or a metadata text is not valid UTF-8", path);
  }
  header += '}';
  std::uint64_t length = header.size();
  length += (alignment - (sizeof length + length) % alignment) % alignment;
  header.resize(length, ' ');

  if (const std::size_t place = checksum_place(header); place != std::string::npos) {
    std::uint32_t checksum = crc32(0, header.data(), header.size());
    for (const Entry* entry : order) checksum = crc32(checksum, entry->data, bytes(entry));
    header.replace(place, no_checksum.size(), fmt::format("{:08x}", checksum));
  }

  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const Entry* entry : order) file.write(entry->data, bytes(entry));
  file.commit();
}

}  // namespace heed
