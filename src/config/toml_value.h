// Conversion of TOML values to members of configuration structs.
#pragma once

#include "heed/config/experiment.h"

#include <stdexcept>

// The parser of toml++ 3.3 asserts properties of its input, for example that "[[" and its key are on the same line.
// Input without these properties is rejected as invalid TOML.
namespace heed {
constexpr void assert_toml(bool condition) {
  if (!condition) throw std::logic_error("toml++");
}
}  // namespace heed
#define TOML_ASSERT(condition) ::heed::assert_toml(static_cast<bool>(condition))
#include <toml++/toml.h>

namespace heed {

/// Describes a node, for error messages.
inline const char* found(const toml::node& node) {
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "an integer";
  if (node.is_floating_point()) return "a float";
  if (node.is_boolean()) return "a boolean";
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

/// Assigns the node's value to the member and returns true if the types match. An integer also matches a floating-point
/// member; if the rule allows it, a boolean matches a string, and a single value matches a list.
inline bool assign(const toml::node& node, std::string& member) {
  if (const auto* value = node.as_string()) member = value->get();
  return node.is_string();
}

inline bool assign(const toml::node& node, bool& member) {
  if (const auto* value = node.as_boolean()) member = value->get();
  return node.is_boolean();
}

inline bool assign(const toml::node& node, Index& member) {
  if (const auto* value = node.as_integer()) member = value->get();
  return node.is_integer();
}

inline bool assign(const toml::node& node, double& member) {
  if (const auto* value = node.as_floating_point()) member = value->get();
  if (const auto* value = node.as_integer()) member = static_cast<double>(value->get());
  return node.is_number();
}

inline bool assign(const toml::node& node, std::optional<bool>& member) {
  return node.is_boolean() && assign(node, member.emplace());
}

template <class T>
bool assign(const toml::node& node, std::vector<T>& member) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return false;
  std::vector<T> values(list->size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!assign((*list)[i], values[i])) return false;
  member = values;
  return true;
}

/// Assigns one side length, or a list of height and width.
inline bool assign(const toml::node& node, Sides& member) {
  std::vector<Index> sides(1);
  if (!(node.is_array() ? assign(node, sides) && sides.size() == 2 : assign(node, sides[0]))) return false;
  member = {sides.front(), sides.back()};
  return true;
}

inline bool assign(const toml::node& node, std::string& member, const Rule& rule) {
  const auto* const flag = node.as_boolean();
  if (!flag || rule.if_true.empty()) return assign(node, member);
  member = flag->get() ? rule.if_true : rule.choices.front();
  return true;
}

template <class T>
bool assign(const toml::node& node, T& member, const Rule&) {
  return assign(node, member);
}

template <class T>
bool assign(const toml::node& node, std::vector<T>& member, const Rule& rule) {
  if (!rule.per_block || node.is_array()) return assign(node, member);
  T value{};
  if (!assign(node, value)) return false;
  member = {value};
  return true;
}

/// Describes a member's valid types, for error messages.
inline const char* expected(const std::string&, const Rule&) { return "a string"; }
inline const char* expected(bool, const Rule&) { return "true or false"; }
inline const char* expected(const std::optional<bool>&, const Rule&) { return "true or false"; }
inline const char* expected(Index, const Rule&) { return "an integer"; }
inline const char* expected(const Sides&, const Rule&) { return "an integer, or a list of height and width"; }
inline const char* expected(double, const Rule&) { return "a number"; }
inline const char* expected(const std::vector<double>&, const Rule&) { return "a list of numbers"; }
inline const char* expected(const std::vector<Index>&, const Rule& rule) {
  return rule.per_block ? "an integer or a list of integers" : "a list of integers, one for each stage";
}
inline const char* expected(const std::vector<std::string>&, const Rule& rule) {
  return rule.per_block ? "a string or a list of strings" : "a list of strings";
}

}  // namespace heed
