#include "taken_weights.h"

#include "src/apps/cli/shared/number_text.h"

#include "heed/base/suggest.h"

namespace heed::cli {

std::string taken_text(const TakenWeights& taken) {
  using Status = TakenTensor::Status;
  const auto of = [&](Status status) {
    std::vector<std::string> names;
    for (const TakenTensor& tensor : taken.tensors)
      if (tensor.status == status) names.push_back(tensor.name);
    return names;
  };
  std::string text =
      fmt::format("loaded {} ({} values)", counted(std::ssize(of(Status::loaded)), "tensor"), grouped(taken.numbers));
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty()) text += fmt::format(", {} {} ({})", names.size(), what, quoted_list(names));
  };
  add(of(Status::part), "in part");
  add(of(Status::interpolated), "interpolated");
  add(of(Status::fresh), "new");
  if (!taken.prefix.empty()) text += fmt::format(", prefix {} removed", in_quotes(taken.prefix));
  if (!taken.unused.empty())
    text += fmt::format(", {} unused in the file: {}", taken.unused.size(), quoted_list(taken.unused));
  return text;
}

}  // namespace heed::cli
