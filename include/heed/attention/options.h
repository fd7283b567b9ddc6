// Options of a mechanism: declared once, as a visit of its fields, and parsed, listed and checked from that.
//
//   template <class Visitor>
//   void options(Visitor& visit) {
//     visit("causal", causal, "a query sees the keys up to its own position only");
//     visit("norm", norm, {"l1", "l2"}, "what a channel is divided by");  // enum class Norm { l1, l2 } norm;
//   }
#pragma once

#include "heed/attention/mechanism.h"

#include <initializer_list>
#include <type_traits>

namespace heed {

/// Default of an option that is never negative and has no value yet: a model's file gives it, or the shape of a tensor
/// (read_sizes).
inline constexpr Index not_set = -1;

/// Returns "not set", or the number.
std::string option_text(Index value);

/// An option with a few named values: an enum that counts from 0, in the order of the names.
template <class E>
concept NamedChoice = std::is_enum_v<E>;

/// Parses options from text. Throws Error for bad values, and for unknown names, with the nearest name.
class OptionReader {
 public:
  OptionReader(std::string owner, const OptionValues& values) : owner_(std::move(owner)), values_(values) {}

  void operator()(const char* name, bool& value, const char* meaning);
  void operator()(const char* name, Index& value, const char* meaning);
  void operator()(const char* name, double& value, const char* meaning);
  template <NamedChoice E>
  void operator()(const char* name, E& value, std::initializer_list<const char*> names, const char*) {
    value = static_cast<E>(choose(name, static_cast<std::size_t>(value), {names.begin(), names.end()}));
  }

  /// Throws Error if an option was given that was not visited.
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
  void operator()(const char* name, bool& value, const char* meaning);
  void operator()(const char* name, Index& value, const char* meaning);
  void operator()(const char* name, double& value, const char* meaning);
  template <NamedChoice E>
  void operator()(const char* name, E& value, std::initializer_list<const char*> names, const char* meaning) {
    found.push_back({name, names.begin()[static_cast<std::size_t>(value)], meaning, {names.begin(), names.end()}});
  }

  std::vector<OptionInfo> found;
};

}  // namespace heed
