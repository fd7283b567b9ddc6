// Mechanisms that are compiled apart from heed, as plugins, and join the list when the program starts.
#pragma once

#include "heed/attention/mechanism.h"

#include <cstdint>
#include <type_traits>

namespace heed {

/// Where a mechanism came from that is not heed's own.
struct PluginOrigin {
  std::string file;      ///< the shared object, as an absolute path
  std::string source;    ///< the header that it was compiled from
  std::string checksum;  ///< of the shared object: compiled again from another header, it has another
};

/// Adds an entry to the list of mechanisms, behind all others, for as long as the program runs. Ends every span and
/// reference to the list: to be called before anything else asks for it. Throws Error if the name is taken.
void add_mechanism(const MechanismEntry& entry, const PluginOrigin& origin);

/// Where the mechanism of this name came from; null if it is heed's own, or unknown.
const PluginOrigin* plugin_of(const std::string& name);

/// What makes the entry of a mechanism.
using EntryMaker = MechanismEntry (*)();

/// What a plugin says about itself, under the name `heed_plugin`: what it was made with, which must be what the program
/// was made with, and its mechanisms. Its layout stays what it is from version to version, so that each can tell that a
/// plugin is another's. Texts end with a zero; longer ones are cut.
struct PluginRecord {
  char mark[16];        ///< plugin_mark
  char version[16];     ///< of heed
  char compiler[64];    ///< __VERSION__
  char headers[16];     ///< checksum of heed's public headers
  char flags[512];      ///< the compiler's
  char source[512];     ///< absolute path of the header that it was compiled from
  std::uint64_t count;  ///< of mechanisms
  const EntryMaker* makers;
};
inline constexpr char plugin_mark[16] = "heed plugin 1";

/// mechanism_entry<M>, once M is seen to have what the compiler's own words say least about.
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
  static_assert(!std::is_abstract_v<M>, "the mechanism has no cost(shape), const and with override");
  return mechanism_entry<M>;
}

}  // namespace heed
