// Options of a mechanism: declared once, by visiting its fields; parsing, listing and checks use this declaration.
//
//   template <class Visitor>
//   void options(Visitor& visit) {
//     visit("causal", causal, "a query sees the keys up to its own position only");
//     visit("norm", norm, {"l1", "l2"}, "the norm by which channels are divided");  // enum class Norm { l1, l2 } norm;
//   }
#pragma once

#include "heed/attention/mechanism.h"

#include <initializer_list>
#include <optional>
#include <type_traits>

namespace heed {

/// Default of a non-negative option whose value is set by a model's file or by a tensor's shape (read_sizes).
inline constexpr Index not_set = -1;

/// Return an option's value as text, "not set" if it has none.
std::string option_text(bool value);
std::string option_text(Index value);
std::string option_text(double value);
std::string option_text(std::optional<double> value);

/// True for the types of options that need no list of named values.
template <class X>
inline constexpr bool is_option = std::is_same_v<X, bool> || std::is_same_v<X, Index> || std::is_same_v<X, double> ||
                                  std::is_same_v<X, std::optional<double>>;

/// Parses options from text. Throws Error for bad values, and for unknown names, with the nearest name.
class OptionReader {
 public:
  OptionReader(std::string owner, const OptionValues& values) : owner_(std::move(owner)), values_(values) {}

  void operator()(const char* name, bool& value, const char* meaning);
  void operator()(const char* name, Index& value, const char* meaning);
  void operator()(const char* name, double& value, const char* meaning);
  void operator()(const char* name, std::optional<double>& value, const char* meaning);
  template <class X>
  void operator()(const char*, X&, const char*) {
    static_assert(is_option<X>,
                  "an option is a bool, an Index, a double, a std::optional<double>, which may be left "
                  "unset, or an enum class with the names of its values");
  }
  /// Parses an option with named values: an enum whose values count from 0, in the order of the names.
  template <class E>
  void operator()(const char* name, E& value, std::initializer_list<const char*> names, const char*) {
    static_assert(std::is_enum_v<E>, "an option with names for its values is an enum class, not a text or a number");
    value = static_cast<E>(choose(name, static_cast<std::size_t>(value), {names.begin(), names.end()}));
  }

  /// Throws Error for an unknown option: one that was given but not visited.
  void finish() const;

 private:
  const std::string* take(const char* name);
  std::size_t choose(const char* name, std::size_t fallback, const std::vector<std::string>& names);
  std::string owner_;
  const OptionValues& values_;
  std::vector<std::string> known_;
};

/// Lists options with their defaults.
class OptionLister {
 public:
  template <class X>
  void operator()(const char* name, X& value, const char* meaning) {
    if constexpr (is_option<X>) found.push_back({name, option_text(value), meaning});
  }
  template <class E>
  void operator()(const char* name, E& value, std::initializer_list<const char*> names, const char* meaning) {
    if constexpr (std::is_enum_v<E>)
      found.push_back({name, names.begin()[static_cast<std::size_t>(value)], meaning, {names.begin(), names.end()}});
  }

  std::vector<OptionInfo> found;
};

}  // namespace heed
