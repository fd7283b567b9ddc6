#include "heed/attention/adder.h"
#include "heed/attention/aft.h"
#include "heed/attention/pointwise.h"
#include "heed/attention/sima.h"
#include "heed/attention/soft.h"
#include "heed/attention/softmax.h"
#include "heed/attention/options.h"
#include "heed/base/suggest.h"

namespace heed {

namespace {

constexpr MechanismEntry list[] = {
    mechanism_entry<Softmax>(), mechanism_entry<Sima>(),  mechanism_entry<Aft>(), mechanism_entry<PointwiseAttention>(),
    mechanism_entry<Soft>(),    mechanism_entry<Adder>(),
};

}  // namespace

std::span<const MechanismEntry> mechanisms() { return list; }

const MechanismEntry& find_mechanism(const std::string& name) {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : list) {
    if (name == entry.name) return entry;
    names.emplace_back(entry.name);
  }
  fail("unknown mechanism '{}'{}; `heed list` shows them all", name, suggestion(name, names));
}

std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options) {
  return find_mechanism(name).make(options);
}

}  // namespace heed
