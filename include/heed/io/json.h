// JSON values, printing and parsing.
#pragma once

#include "heed/base/error.h"
#include "heed/base/tensor.h"
#include "heed/io/file.h"

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heed {

/// A JSON value: null, boolean, number, text, list, or an object, which keeps the order of its keys.
///
///   Json result = Json::object({{"name", "softmax"}, {"images", 128}});
///   result["rates"].push_back(0.5);
///   result.dump()    // {"name":"softmax","images":128,"rates":[0.5]}
///
/// An empty optional is null. Accessing a value as another kind, or a missing key, throws Error.
class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}
  template <class T>
  Json(const std::optional<T>& value) {
    if (value) *this = Json(*value);
  }
  template <std::integral I>
  Json(I value) : value_(static_cast<Index>(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(const std::vector<std::string>& texts) : value_(List(texts.begin(), texts.end())) {}

  static Json list(List values = {});
  static Json object(Object entries = {});

  /// Parses a text. Throws Error, without the name of the source, for invalid JSON, repeated keys of an object, and
  /// too many values or levels.
  static Json parse(const std::string& text);

  /// Returns the value on one line or, if `indent` is not negative, with a line for each entry, indented by `indent`
  /// spaces per level. Throws Error naming the key for non-finite numbers, which JSON lacks. Bytes that are not UTF-8
  /// become U+FFFD.
  std::string dump(int indent = -1) const;

  double number() const;
  Index integer() const;
  const std::string& text() const;
  const List& items() const;
  const Object& entries() const;

  /// Returns f(value) for the value's type: std::monostate for null, bool, Index, double, std::string, List, Object.
  template <class F>
  auto visit(const F& f) const {
    return std::visit(f, value_);
  }

  /// Returns an object's entry.
  const Json& at(std::string_view key) const;
  bool contains(std::string_view key) const;

  /// Returns an object's entry, added as null if missing (which invalidates references to other entries). Null becomes
  /// an empty object first.
  Json& operator[](std::string_view key);

  /// Appends to a list; null becomes an empty list first.
  Json& push_back(Json value);

 private:
  struct Text;  ///< conversion to and from text

  std::variant<std::monostate, bool, Index, double, std::string, List, Object> value_;
};

/// Returns take(json) for the JSON of a file. Errors, including those of `take`, name the file.
template <class Take>
auto take_json(const std::string& path, const Take& take) {
  const std::string text = read_file(path, std::uint64_t{1} << 28);
  try {
    return take(Json::parse(text));
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
}

}  // namespace heed
