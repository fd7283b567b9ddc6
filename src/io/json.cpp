#include "heed/io/json.h"

#include "heed/base/suggest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

using Library = nlohmann::ordered_json;

namespace {

// Limits of parsed JSON. Printing recurses once per level. most_values exceeds the number of values in the deepest
// model's cost.json, and that many are read in a few seconds.
constexpr std::size_t deepest = 100, most_values = 10'000'000;

}  // namespace

struct Json::Text {
  /// Returns `json` as the library's type. `key` is the nearest enclosing key, for errors.
  static Library to_library(const Json& json, std::string_view key) {
    return std::visit([=](const auto& value) { return converted(value, key); }, json.value_);
  }

  class Reader;

 private:
  static Library converted(std::monostate, std::string_view) { return {}; }
  static Library converted(const auto& value, std::string_view) { return value; }

  static Library converted(double number, std::string_view key) {
    require(std::isfinite(number), "{} is {}; expected a finite number", in_quotes(key), number);
    return number;
  }

  static Library converted(const List& list, std::string_view key) {
    Library result = Library::array();
    for (const Json& item : list) result.push_back(to_library(item, key));
    return result;
  }

  static Library converted(const Object& object, std::string_view) {
    Library result = Library::object();
    for (const auto& [name, value] : object) result.emplace(name, to_library(value, name));
    return result;
  }
};

// Builds a value while parsing, without the library's own tree.
class Json::Text::Reader final : public nlohmann::json_sax<Library> {
 public:
  Json read(const std::string& text) {
    require(Library::sax_parse(text, this), "not valid JSON");
    return std::move(root_);
  }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override {
    return value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()) ? add(static_cast<double>(value))
                                                                                 : add(value);
  }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON has no binary values

  bool start_object(std::size_t) override { return open(object()); }
  bool start_array(std::size_t) override { return open(list()); }
  bool key(std::string& key) override {
    key_ = key;
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : open_.back()->entries()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail("an object has the key {} twice", in_quotes(*twice));
    return end_array();
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Library::exception&) override { return false; }

 private:
  bool add(Json value) {
    put(std::move(value));
    return true;
  }

  bool open(Json container) {
    require(open_.size() < deepest, "values are nested more than {} levels deep", deepest);
    open_.push_back(&put(std::move(container)));
    return true;
  }

  /// Adds to the innermost list or object. Only that one grows, so references to the outer ones stay valid.
  Json& put(Json value) {
    require(++count_ <= most_values, "more than {} values", most_values);
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (auto* const entries = std::get_if<Object>(&parent.value_))
      return entries->emplace_back(std::move(key_), std::move(value)).second;
    return parent.push_back(std::move(value));
  }

  Json root_;
  std::vector<Json*> open_;  // innermost last
  std::string key_;
  std::size_t count_ = 0;
};

namespace {

/// Returns the entry of this key in an object, const or not; null if there is none.
auto* find(auto& entries, std::string_view key) {
  for (auto& [name, value] : entries)
    if (name == key) return &value;
  return static_cast<decltype(&entries.begin()->second)>(nullptr);
}

template <class Kind, class Value>
const Kind& as(const Value& value, const char* expected) {
  const Kind* const found = std::get_if<Kind>(&value);
  require(found != nullptr, "JSON: expected {}, found something else", expected);
  return *found;
}

}  // namespace

Json Json::list(List values) {
  Json json;
  json.value_ = std::move(values);
  return json;
}

Json Json::object(Object entries) {
  Json json;
  json.value_ = std::move(entries);
  return json;
}

Json Json::parse(const std::string& text) { return Text::Reader().read(text); }

std::string Json::dump(int indent) const {
  return Text::to_library(*this, "").dump(indent, ' ', false, Library::error_handler_t::replace);
}

double Json::number() const {
  const Index* const integer = std::get_if<Index>(&value_);
  return integer ? static_cast<double>(*integer) : as<double>(value_, "a number");
}

Index Json::integer() const { return as<Index>(value_, "an integer"); }
const std::string& Json::text() const { return as<std::string>(value_, "a text"); }
const Json::List& Json::items() const { return as<List>(value_, "a list"); }
const Json::Object& Json::entries() const { return as<Object>(value_, "an object"); }

const Json& Json::at(std::string_view key) const {
  const Json* const found = find(entries(), key);
  require(found != nullptr, "JSON: an object lacks '{}'", key);
  return *found;
}

bool Json::contains(std::string_view key) const {
  return std::holds_alternative<Object>(value_) && find(entries(), key);
}

Json& Json::operator[](std::string_view key) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Object{};
  static_cast<void>(entries());
  Object& object = std::get<Object>(value_);
  if (Json* const found = find(object, key)) return *found;
  return object.emplace_back(key, Json()).second;
}

Json& Json::push_back(Json value) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = List{};
  static_cast<void>(items());
  return std::get<List>(value_).emplace_back(std::move(value));
}

}  // namespace heed
