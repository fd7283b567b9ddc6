#include "heed/checks/backward_steps.h"

#include "heed/config/installed.h"
#include "heed/io/file.h"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

namespace heed {

namespace {

void add_source(const std::filesystem::path& path, std::set<std::filesystem::path>& seen, std::string& text) {
  std::error_code error;
  if (!seen.insert(path).second || !std::filesystem::is_regular_file(path, error)) return;
  const std::string source = read_file(path);
  text += source;
  static const std::regex include("(^|\n)#include \"(src/attention/[^\"]+|[^\"/]+)\"");
  for (std::sregex_iterator at(source.begin(), source.end(), include), end; at != end; ++at) {
    const std::string name = (*at)[2];
    std::filesystem::path header =
        name.starts_with("src/") ? std::filesystem::path(find_installed(name)) : path.parent_path() / name;
    add_source(header, seen, text);
    add_source(header.replace_extension(".cpp"), seen, text);
  }
}

/// Returns the comments of a source that begin with `//` or `///`, one per group of adjacent lines. A line end is kept
/// only if the line ends a sentence and the next line is not indented.
std::vector<std::string> comments(const std::string& source) {
  std::vector<std::string> all;
  std::istringstream in(source);
  bool within = false;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    const bool comment = first != std::string::npos && line.compare(first, 2, "//") == 0;
    if (comment) {
      const std::size_t slashes_end = line.find_first_not_of('/', first), text = line.find_first_not_of("/ ", first);
      if (!within) all.emplace_back();
      const bool ends = all.back().ends_with('.') && text <= slashes_end + 1;
      if (text != std::string::npos) all.back() += (all.back().empty() ? "" : ends ? "\n" : " ") + line.substr(text);
    }
    within = comment;
  }
  return all;
}

/// Adds the steps of a comment. A step extends from "Undoing N" to the next "Undoing N" or the end of its line. Steps
/// in backquotes are examples and are skipped.
void add_steps(const std::string& text, std::vector<BackwardStep>& steps) {
  static const std::regex quoted("`[^`]*ndoing[^`]*`");
  const std::string comment = std::regex_replace(text, quoted, "");
  static const std::regex begin("[Uu]ndoing\\s+(\\d+(?:(?:\\s*(?:,|-|and)\\s*)\\d+)*)(?:,[^:.=]*)?[:,]\\s*");
  std::sregex_iterator match(comment.begin(), comment.end(), begin), end;
  while (match != end) {
    const auto from = static_cast<std::size_t>(match->position() + match->length());
    const std::string number = (*match)[1];
    const std::size_t next = ++match != end ? static_cast<std::size_t>(match->position()) : comment.size();
    const std::size_t to = std::min(next, comment.find('\n', from));
    std::string step = comment.substr(from, to - from);
    step.erase(step.find_last_not_of(" ;.") + 1);
    steps.push_back({number, step});
  }
}

std::vector<BackwardStep> steps_with(const std::vector<BackwardStep>& all, const std::string& gradient) {
  std::vector<BackwardStep> found;
  const std::regex assigned("\\b" + gradient + "(?:_\\w+|\\[[^\\]]*\\])?\\s*\\+?= ");
  for (const BackwardStep& step : all)
    if (std::regex_search(step.text, assigned) && std::find(found.begin(), found.end(), step) == found.end())
      found.push_back(step);
  return found;
}

std::vector<BackwardStep> all_steps(const std::string& source) {
  std::vector<BackwardStep> all;
  for (const std::string& comment : comments(source)) add_steps(comment, all);
  return all;
}

}  // namespace

std::string mechanism_page(const std::string& mechanism) {
  const std::string file = "src/attention/" + mechanism + ".cpp",
                    folder = "src/attention/" + mechanism + "/" + mechanism + ".cpp";
  std::error_code error;
  return std::filesystem::exists(find_installed(folder), error) ? folder : file;
}

std::string source_with_includes(const std::filesystem::path& path) {
  std::set<std::filesystem::path> seen;
  std::string text;
  add_source(path, seen, text);
  // Other sources of a mechanism with a folder, in a fixed order.
  std::set<std::filesystem::path> folder;
  std::error_code error;
  if (path.parent_path().filename() == path.stem())
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) folder.insert(entry);
  for (const std::filesystem::path& file : folder)
    if (file.extension() == ".cpp") add_source(file, seen, text);
  return text;
}

std::vector<BackwardStep> backward_steps(const std::string& source, const std::string& tensor) {
  const std::vector<BackwardStep> all = all_steps(source);
  std::string plain;  // special characters of patterns are replaced by ".", which matches any character
  for (const char c : tensor)
    plain += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? std::string(1, c) : ".";
  std::vector<BackwardStep> found = steps_with(all, "d" + plain);
  if (found.empty() && (tensor == "q" || tensor == "k")) found = steps_with(all, "dx");
  return found;
}

std::vector<BackwardStep> steps_before(const std::string& source, const std::vector<BackwardStep>& steps) {
  static const std::regex gradient("\\bd[A-Za-z]+");
  const std::vector<BackwardStep> all = all_steps(source);
  std::vector<BackwardStep> before;
  for (const BackwardStep& step : steps)
    for (std::sregex_iterator at(step.text.begin(), step.text.end(), gradient), end; at != end; ++at)
      for (const BackwardStep& other : steps_with(all, at->str()))
        if (std::find(steps.begin(), steps.end(), other) == steps.end() &&
            std::find(before.begin(), before.end(), other) == before.end())
          before.push_back(other);
  return before;
}

}  // namespace heed
