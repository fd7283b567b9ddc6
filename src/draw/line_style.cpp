#include "heed/draw/line_style.h"

#include "heed/attention/mechanism.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace heed {

namespace {

constexpr std::size_t colours = line_colours.size(), patterns = line_dashes.size();

/// Returns the position, in the list of mechanisms, of the first word that names a mechanism or one of its
/// settings.
std::optional<std::size_t> mechanism_in(const std::string& name) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  for (auto begin = name.begin(); begin != name.end();) {
    const auto end = std::find_if_not(begin, name.end(), in_word);
    const std::string word(begin, end);
    for (std::size_t i = 0; i < mechanisms().size(); ++i) {
      const std::vector<MechanismSetting> settings = mechanisms()[i].settings();
      if (word == mechanisms()[i].name || std::ranges::count(settings, word, &MechanismSetting::label) > 0) return i;
    }
    begin = std::find_if(end, name.end(), in_word);
  }
  return std::nullopt;
}

}  // namespace

std::vector<LineStyle> line_styles(const std::vector<std::string>& names) {
  std::vector<LineStyle> styles(names.size());
  bool used[colours][patterns]{};
  int lines[colours]{};  // number of lines of each colour
  // Assigns a name the style or, if that is used, the next free one: first of its colour, then of the following
  // colours.
  const auto take = [&](std::size_t name, LineStyle style) {
    for (std::size_t i = 1; i <= colours * patterns && used[style.colour][style.dashes]; ++i) {
      style.dashes = (style.dashes + 1) % patterns;
      if (i % patterns == 0) style.colour = (style.colour + 1) % colours;
    }
    used[style.colour][style.dashes] = true;
    ++lines[style.colour];
    styles[name] = style;
  };
  const auto style_of = [](std::size_t mechanism) {
    return LineStyle{mechanism % colours, mechanism / colours % patterns};
  };
  std::vector<std::pair<std::size_t, std::size_t>> variants;  // a name and its mechanism
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<std::size_t> mechanism = mechanism_in(names[i]);
    if (!mechanism)
      others.push_back(i);
    else if (names[i] == mechanisms()[*mechanism].name)
      take(i, style_of(*mechanism));
    else
      variants.emplace_back(i, *mechanism);
  }
  for (const auto& [i, mechanism] : variants) take(i, style_of(mechanism));
  for (const std::size_t i : others)
    take(i, {static_cast<std::size_t>(std::min_element(lines, lines + colours) - lines), 0});
  return styles;
}

}  // namespace heed
