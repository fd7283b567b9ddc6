#include "plugin_compile.h"

#include "heed/attention/plugin.h"
#include "heed/base/suggest.h"
#include "heed/config/installed.h"
#include "heed/io/file.h"
#include "heed/io/plugin_files.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

std::string headers_of_program() {
  const fs::path include = program_file().parent_path().parent_path() / "include";
  require(fs::exists(include / "heed/attention/plugin.h"),
          "plugin: heed's headers are missing from {}, beside this program", include.string());
  const std::string found = checksum_of_headers(include), expected = program_build().headers;
  require(found == expected, "plugin: the headers in {} differ from those that built this program; rebuild it",
          include.string());
  return include;
}

std::string plugin_unit(const std::string& header, const std::vector<std::string>& classes) {
  const PluginBuild& build = program_build();
  const auto text = [](const std::string& t, std::size_t size) {
    return fmt::format("R\"heed({})heed\"", t.substr(0, size - 1));
  };
  std::string makers;
  for (const std::string& name : classes) makers += fmt::format("plugin_entry<{}>(), ", name);
  return fmt::format(
      "#include \"{0}\"\n#include \"heed/attention/plugin.h\"\nnamespace heed {{\n"
      "static constexpr EntryMaker makers[] = {{{1}}};\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) const PluginRecord heed_plugin;\n"
      "extern \"C\" const PluginRecord heed_plugin = {{{2}, {3}, {4}, {5}, {6}, {7}, {8}, makers}};\n}}\n",
      header, makers, text(plugin_mark, sizeof plugin_mark), text(build.version, sizeof PluginRecord::version),
      text(build.compiler_version, sizeof PluginRecord::compiler), text(build.headers, sizeof PluginRecord::headers),
      text(build.flags, sizeof PluginRecord::flags), text(header, sizeof PluginRecord::source), classes.size());
}

std::vector<std::string> plugin_words(const std::string& include) {
  const char* const other = std::getenv("CXX");
  const std::string compiler = other && *other ? other : program_build().compiler;
  std::vector<std::string> words = words_of(compiler + " " + program_build().flags);
  // Symbols are hidden, so that a plugin's class calls its own functions even if one of heed's classes has the same
  // name.
  words.insert(words.end(), {"-fPIC", "-fvisibility=hidden", "-fmax-errors=1", "-fno-diagnostics-show-caret",
                             "-fno-diagnostics-show-option", "-fdiagnostics-color=never", "-I" + include});
  return words;
}

int run_to_files(std::vector<std::string> words, const std::string& output, const std::string& errors,
                 const std::string& cure) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require(failed == 0, "{} cannot be started: {}; {}", in_quotes(words[0]), std::strerror(failed), cure);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string first_error(const std::string& log, const std::string& header, const std::string& shown) {
  static const std::regex error("(.+?):(\\d+):(?:\\d+:)? (?:fatal )?error: (?:static assertion failed: )?(.*)");
  static const std::regex place("(.+?):(\\d+)(?::\\d+)?:.*");
  const std::vector<std::string> lines = lines_of(log);
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::smatch match, other;
    if (!std::regex_match(lines[at], match, error)) continue;
    if (match[1] == header) return fmt::format("{}:{}: {}", shown, match[2].str(), match[3].str());
    const std::string there = fmt::format("{}:{}", match[1].str(), match[2].str());
    for (const std::string& line : lines)
      if (std::regex_match(line, other, place) && other[1] == header)
        return fmt::format("{}:{}: {} (found at {})", shown, other[2].str(), match[3].str(), there);
    // The compiler reports no line of `header`. The file that it reports instead is named only if it is in the same
    // directory.
    return there.starts_with(header.substr(0, header.rfind('/') + 1)) ? fmt::format("{}: {}", there, match[3].str())
                                                                      : fmt::format("{}: {}", shown, match[3].str());
  }
  return fmt::format("{}: the compiler fails: {}", shown, lines.empty() ? "no message" : lines.front());
}

std::vector<std::string> warnings_of(const std::string& log, const std::string& header, const std::string& shown) {
  static const std::regex warning("(.+?):(\\d+):(?:\\d+:)? warning: (.*)");
  std::vector<std::string> found;
  for (const std::string& line : lines_of(log)) {
    std::smatch match;
    if (!std::regex_match(line, match, warning) || match[1] != header) continue;
    const std::string said = fmt::format("{}:{}: {}", shown, match[2].str(), match[3].str());
    if (std::ranges::find(found, said) == found.end()) found.push_back(said);
  }
  return found;
}

}  // namespace heed::cli
