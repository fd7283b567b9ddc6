// Options of a mechanism: declared once, as a visit of its fields, and parsed, listed and checked from that.
//
//   template <class Visitor>
//   void options(Visitor& visit) {
//     visit("causal", causal, "a query sees the keys up to its own position only");
//   }
#pragma once

#include "heed/attention.h"

namespace heed {

/// Reads options from text; throws Error at bad values and names the nearest option at unknown names.
class OptionReader {
 public:
  OptionReader(std::string owner, const OptionValues& values) : owner_(std::move(owner)), values_(values) {}

  void operator()(const char* name, bool& value, const char* meaning);
  void operator()(const char* name, Index& value, const char* meaning);
  void operator()(const char* name, double& value, const char* meaning);

  /// Throws Error if an option was given that nothing asked for.
  void finish() const;

 private:
  const std::string* take(const char* name);
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

  std::vector<OptionInfo> found;
};

/// The line of the list for mechanism M.
template <class M>
constexpr MechanismEntry mechanism_entry() {
  return {M::mechanism_name, M::summary, M::complexity,
          [](const OptionValues& values) -> std::unique_ptr<Mechanism> {
            auto mechanism = std::make_unique<M>();
            OptionReader reader(M::mechanism_name, values);
            mechanism->options(reader);
            reader.finish();
            return mechanism;
          },
          [] {
            M mechanism;
            OptionLister lister;
            mechanism.options(lister);
            return lister.found;
          },
          [] { return M::variants(); }};
}

}  // namespace heed
