// Mechanisms compiled separately as plugins, added to the list when the program starts.
#pragma once

#include "heed/attention/capabilities/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/preparation.h"

#include <cstdint>
#include <type_traits>

namespace heed {

/// Origin of a mechanism that comes from a plugin.
struct PluginOrigin {
  std::string file;      ///< the shared object, as an absolute path
  std::string source;    ///< the header from which it was compiled
  std::string checksum;  ///< checksum of the shared object
};

/// Appends an entry to the list of mechanisms for the rest of the program. Invalidates all spans of the list and
/// references into it, so call it before any other use of the list. Throws Error if the name is taken.
void add_mechanism(const MechanismEntry& entry, const PluginOrigin& origin);

/// Returns the origin of the mechanism `name`; null if it is built in or unknown.
const PluginOrigin* plugin_of(const std::string& name);

/// Function that returns a mechanism's entry.
using EntryMaker = MechanismEntry (*)();

/// A plugin's description, the symbol `heed_plugin`: its build, which must match the program's, and its mechanisms. The
/// layout is the same in all versions, so that an error about another version's plugin can name that version. Strings
/// are null-terminated, and truncated if too long.
struct PluginRecord {
  char mark[16];        ///< plugin_mark, which ends with the version of the contract
  char version[16];     ///< heed's version
  char compiler[64];    ///< its __VERSION__
  char headers[16];     ///< checksum of heed's public headers
  char flags[512];      ///< compiler flags
  char source[512];     ///< absolute path of the header from which it was compiled
  std::uint64_t count;  ///< number of mechanisms
  const EntryMaker* makers;
};
inline constexpr char plugin_mark[16] = "heed plugin 2";  // version 1, of heed 0.2.0, has no capabilities
inline constexpr std::size_t plugin_mark_text = 12;       // number of characters of plugin_mark before the version

/// Returns mechanism_entry<M>, after checks for mistakes whose compiler messages would be unclear.
template <class M>
constexpr EntryMaker plugin_entry() {
  static_assert(std::is_base_of_v<Mechanism, M>, "the mechanism X must be derived from MechanismBase<X>");
  static_assert(
      requires { M::mechanism_name; }, "the mechanism has no mechanism_name");
  static_assert(
      requires { M::summary; }, "the mechanism has no summary");
  static_assert(
      requires { M::complexity; }, "the mechanism has no complexity");
  static_assert(
      requires { M::variants(); }, "the mechanism has no variants()");
  // An optional function is never called unless M has the capability's base class.
  constexpr bool maps = requires { &M::run_map; }
  || requires { &M::template run_map<double>; };
  static_assert(!maps || std::is_base_of_v<MapCapability, M>,
                "a mechanism X with run_map must be derived from WithMap<X> too (attention/capabilities/map.h)");
  constexpr bool decodes = requires { &M::run_decode; }
  || requires { &M::template run_decode<double>; };
  static_assert(
      !decodes || std::is_base_of_v<DecodingCapability, M>,
      "a mechanism X with run_decode must be derived from WithDecoding<X> too (attention/capabilities/decoding.h)");
  constexpr bool penalises = requires { &M::run_penalty; }
  || requires { &M::template run_penalty<double>; };
  static_assert(
      !penalises || std::is_base_of_v<PenaltyCapability, M>,
      "a mechanism X with run_penalty must be derived from WithPenalty<X> too (attention/capabilities/penalty.h)");
  constexpr bool prepares = requires { &M::run_prepare; }
  || requires { &M::template run_prepare<double>; };
  static_assert(!prepares || std::is_base_of_v<PreparationCapability, M>,
                "a mechanism X with run_prepare must be derived from WithPreparation<X> too "
                "(attention/capabilities/preparation.h)");
  constexpr bool composes = requires { &M::template compose<double>; };
  static_assert(
      !composes || requires { &M::composed; },
      "a mechanism X with compose must be derived from ComposedMechanism<X>, or from WithComposition<X> too "
      "(ops/composed_attention.h)");
  static_assert(!std::is_abstract_v<M>,
                "the mechanism has no cost(shape) const override, or lacks a function of one of its capabilities");
  return mechanism_entry<M>;
}

}  // namespace heed
