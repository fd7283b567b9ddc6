#include "heed/io/json.h"

#include "heed/base/suggest.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace heed {

using Library = nlohmann::ordered_json;

namespace {

// Of what is read: reading and writing call themselves for each level.
constexpr int deepest = 100;

}  // namespace

struct Json::Text {
  /// `key` is that of the nearest object, for errors.
  static Library to_library(const Json& json, std::string_view key) {
    return std::visit([=](const auto& value) { return converted(value, key); }, json.value_);
  }

  static Json from_library(const Library& value) {
    if (value.is_boolean()) return value.get<bool>();
    const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<Index>::max();
    if (value.is_number_integer() && !too_large) return value.get<Index>();
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
    Json result;
    if (value.is_array()) {
      result = list();
      for (const Library& item : value) result.push_back(from_library(item));
    } else if (value.is_object()) {
      result = object();
      for (const auto& [name, entry] : value.items()) result[name] = from_library(entry);
    }
    return result;
  }

 private:
  static Library converted(std::monostate, std::string_view) { return {}; }
  static Library converted(const auto& value, std::string_view) { return value; }

  static Library converted(double number, std::string_view key) {
    require(std::isfinite(number), "{} is {}, which is no result", in_quotes(std::string(key)), number);
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

namespace {

/// The entry of this key in an object, const or not; null if there is none.
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

Json Json::parse(const std::string& text) try {
  return Text::from_library(Library::parse(text, [](int depth, Library::parse_event_t, Library&) {
    require(depth <= deepest, "this nests deeper than {} levels", deepest);
    return true;
  }));
} catch (const Library::exception&) {
  fail("this is not JSON");
}

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
  require(found != nullptr, "JSON: an object has no '{}'", key);
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
