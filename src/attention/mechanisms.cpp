#include "heed/attention/mechanism.h"
#include "heed/base/suggest.h"

namespace heed {

/// The list: a line for each mechanism, whose class stands in a file of its own.
static constexpr MechanismEntry (*list[])() = {
    mechanism_entry<class Softmax>,
    mechanism_entry<class Sima>,
    mechanism_entry<class Aft>,
    mechanism_entry<class PointwiseAttention>,
    mechanism_entry<class Soft>,
    mechanism_entry<class Adder>,
    mechanism_entry<class Efficient>,
    mechanism_entry<class Linear>,
    mechanism_entry<class Linformer>,
    mechanism_entry<class Nystrom>,
    mechanism_entry<class Cosformer>,
    mechanism_entry<class Synthesizer>,
    mechanism_entry<class Window>,
    mechanism_entry<class Xca>,
    mechanism_entry<class Lambda>,
    mechanism_entry<class Performer>,
    mechanism_entry<class Reformer>,
};

std::span<const MechanismEntry> mechanisms() {
  static const std::vector<MechanismEntry> entries = [] {
    std::vector<MechanismEntry> made;
    for (const auto entry : list) made.push_back(entry());
    return made;
  }();
  return entries;
}

const MechanismEntry& find_mechanism(const std::string& name) {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : mechanisms()) {
    if (name == entry.name) return entry;
    names.emplace_back(entry.name);
  }
  fail("unknown mechanism '{}'{} (`heed list` shows them all)", name, suggestion(name, names));
}

std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options) {
  return find_mechanism(name).make(options);
}

}  // namespace heed
