#include "heed/attention/plugin.h"
#include "heed/base/suggest.h"

namespace heed {

/// The built-in mechanisms. The class of each is in a separate file.
static constexpr MechanismEntry (*list[])() = {
    mechanism_entry<class Softmax>,   mechanism_entry<class Sima>,
    mechanism_entry<class Aft>,       mechanism_entry<class PointwiseAttention>,
    mechanism_entry<class Soft>,      mechanism_entry<class Adder>,
    mechanism_entry<class Efficient>, mechanism_entry<class Linear>,
    mechanism_entry<class Linformer>, mechanism_entry<class Nystrom>,
    mechanism_entry<class Cosformer>, mechanism_entry<class Synthesizer>,
    mechanism_entry<class Window>,    mechanism_entry<class Xca>,
    mechanism_entry<class Lambda>,    mechanism_entry<class Performer>,
    mechanism_entry<class Reformer>,
};

namespace {

/// Returns the entries of the list, followed by those of plugins.
std::vector<MechanismEntry>& entries() {
  static std::vector<MechanismEntry> all = [] {
    std::vector<MechanismEntry> made;
    for (const auto entry : list) made.push_back(entry());
    return made;
  }();
  return all;
}

/// Returns the origins of the mechanisms from plugins, by name.
std::map<std::string, PluginOrigin>& origins() {
  static std::map<std::string, PluginOrigin> all;
  return all;
}

}  // namespace

std::span<const MechanismEntry> mechanisms() { return entries(); }

void add_mechanism(const MechanismEntry& entry, const PluginOrigin& origin) {
  for (const MechanismEntry& other : entries()) {
    const PluginOrigin* const before = plugin_of(other.name);
    require(std::string_view(other.name) != entry.name, "{}: mechanism '{}' already exists, {}; choose another name",
            origin.file, entry.name, before ? "from " + before->file : "built into heed");
  }
  entries().push_back(entry);
  origins()[entry.name] = origin;
}

const PluginOrigin* plugin_of(const std::string& name) {
  const auto found = origins().find(name);
  return found != origins().end() ? &found->second : nullptr;
}

const MechanismEntry& find_mechanism(const std::string& name) {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : mechanisms()) {
    if (name == entry.name) return entry;
    names.emplace_back(entry.name);
  }
  fail("unknown mechanism '{}'{} (`heed list` shows them all; --plugin FILE or HEED_PLUGINS adds one)", name,
       suggestion(name, names));
}

std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options) {
  return find_mechanism(name).make(options);
}

}  // namespace heed
