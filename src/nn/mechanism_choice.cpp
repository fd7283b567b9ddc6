#include "mechanism_choice.h"

#include "heed/base/suggest.h"

namespace heed {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the text of an option for a block or stage.
const std::string& text_of(const OptionValue& value, Index place) {
  return value.list.empty() ? value.text : value.list[static_cast<std::size_t>(place)];
}

/// Returns the mechanism of item i. In a staged model, an error names the stage.
const MechanismEntry& entry_of(const AttentionConfig& attention, std::size_t i, Index stages, Index first_stage) {
  try {
    return find_mechanism(attention.mechanism[i]);
  } catch (const Error& error) {
    if (stages == 0 || attention.mechanism.size() == 1) throw;
    fail("[model] stage {}: {}", first_stage + static_cast<Index>(i), error.what());
  }
}

}  // namespace

void check_options(const AttentionConfig& attention, Index stages, Index first_stage) {
  const auto check_length = [=](const std::string& name, const OptionValue& value) {
    const auto count = static_cast<Index>(value.list.size());
    require(count == 0 || count == stages, "{}: '{}' has {} values; expected one, or one for each of the {} stages",
            value.where, name, count, stages);
  };
  std::vector<std::string> known;
  for (std::size_t i = 0; i < attention.mechanism.size(); ++i)
    for (std::string& name : option_names(entry_of(attention, i, stages, first_stage)))
      if (!contains(known, name)) known.push_back(std::move(name));
  std::vector<std::string> candidates = known;
  fields(attention, [&](const char* key, const auto&, const Rule&, const char*) { candidates.emplace_back(key); });
  for (const auto& [name, value] : attention.options) {
    check_length(name, value);
    require(contains(known, name), "{}: no mechanism of this model has an option {}{}", value.where, in_quotes(name),
            suggestion(name, candidates));
  }
  for (const auto& [mechanism, options] : attention.per_mechanism) {
    const std::vector<std::string> own = option_names(find_mechanism(mechanism));
    for (const auto& [name, value] : options) {
      check_length(name, value);
      require(contains(own, name), "{}: {} has no option {}{}", value.where, mechanism, in_quotes(name),
              own.empty() ? std::string() : suggestion(name, own));
    }
  }
}

std::unique_ptr<Mechanism> mechanism_of(const AttentionConfig& attention, Index place) {
  const std::string& name = item_of(attention.mechanism, place);
  const std::vector<std::string> known = option_names(find_mechanism(name));
  OptionValues values;
  for (const auto& [option, value] : attention.options)
    if (contains(known, option)) values[option] = text_of(value, place);
  if (const auto own = attention.per_mechanism.find(name); own != attention.per_mechanism.end())
    for (const auto& [option, value] : own->second) values[option] = text_of(value, place);
  return make_mechanism(name, values);
}

std::string place_of_option(const AttentionConfig& attention, std::string_view error) {
  for (const std::string& mechanism : attention.mechanism) {
    const auto place_among = [&](const Options& options) -> std::string {
      for (const auto& [name, value] : options)
        if (error.find(fmt::format("[{}] {} is ", mechanism, name)) != error.npos) return value.where + ": ";
      return "";
    };
    const auto own = attention.per_mechanism.find(mechanism);
    std::string place = own == attention.per_mechanism.end() ? "" : place_among(own->second);
    if (place.empty()) place = place_among(attention.options);
    if (!place.empty()) return place;
  }
  return "";
}

}  // namespace heed
