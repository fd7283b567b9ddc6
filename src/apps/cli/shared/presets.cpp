#include "presets.h"

#include "heed/base/warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heed::cli {

namespace {

/// timm's values for a family of checkpoints.
struct Preset {
  const char *name, *mean, *deviation, *crop_fraction;
};

constexpr Preset presets[] = {
    {"imagenet", "[0.485,0.456,0.406]", "[0.229,0.224,0.225]", "0.875"},
    {"inception", "[0.5,0.5,0.5]", "[0.5,0.5,0.5]", "0.9"},
    {"clip", "[0.48145466,0.4578275,0.40821073]", "[0.26862954,0.26130258,0.27577711]", "1.0"},
};

}  // namespace

void add_preset(Command command, std::string& preset) {
  command.option("--preset", &preset, "preprocessing of published models: mean, standard deviation, bicubic crop",
                 {.one_of = {"imagenet", "inception", "clip"}});
}

std::vector<std::string> preset_sets(const std::string& preset) {
  for (const Preset& p : presets)
    if (preset == p.name) {
      std::vector<std::string> sets{fmt::format("data.mean={}", p.mean), fmt::format("data.std={}", p.deviation),
                                    "data.resize=crop", "data.interpolation=bicubic",
                                    fmt::format("data.crop_fraction={}", p.crop_fraction)};
      warn(fmt::format("--preset {}: {}", p.name, fmt::join(sets, " ")));
      return sets;
    }
  return {};
}

}  // namespace heed::cli
