// heed plugin: compiles a mechanism that lies in a header of its own into a shared object.
#include "commands.h"
#include "plugin_build.h"
#include "plugins.h"

#include "heed/attention/plugin.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// A directory for what is made on the way.
class Workplace {
 public:
  Workplace() : path_((fs::temp_directory_path() / "heed-plugin-XXXXXX").string()) {
    require(mkdtemp(path_.data()) != nullptr, "{}: cannot make a directory", path_);
  }
  Workplace(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The classes of the mechanisms of a header: those of its lines `template MechanismEntry mechanism_entry<CLASS>();`.
std::vector<std::string> mechanisms_in(const std::string& header) {
  static const std::regex entry(
      "\\s*template\\s+(?:heed::)?MechanismEntry\\s+(?:heed::)?mechanism_entry<\\s*(?:class\\s+)?([\\w:]+)\\s*>.*");
  std::vector<std::string> classes;
  for (const std::string& line : lines_of(read_file(header)))
    if (std::smatch match; std::regex_match(line, match, entry)) classes.push_back(match[1]);
  require(!classes.empty(),
          "{}: does not say which class the mechanism is; expected a line `template MechanismEntry "
          "mechanism_entry<CLASS>();` behind the class, in namespace heed",
          header);
  return classes;
}

/// The directory of heed's headers: beside the checkout's build directory, or the prefix's bin.
std::string headers_of_program() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path include = program.parent_path().parent_path() / "include";
  require(fs::exists(include / "heed/attention/plugin.h"), "plugin: heed's headers are not in {}, beside this program",
          include.string());
  const std::string found = checksum_of_headers(include), expected = program_build().headers;
  require(found == expected, "plugin: the headers in {} are not those that this program was made with; make it again",
          include.string());
  return include;
}

/// The one translation unit: the header, and the record that the program looks for.
std::string unit_of(const std::string& header, const std::vector<std::string>& classes) {
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

/// Runs a command, what it says written to a file; returns its exit status, 128 + N if signal N ended it.
int run(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require(failed == 0, "plugin: the compiler {} cannot be started: {}; install it, or name another in CXX",
          in_quotes(words[0]), std::strerror(failed));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The compiler's first error in one line, `header:LINE: what it says`. Where it lies in a header of heed's or of the
/// compiler's, the line is that of `header` which led there, as far as the compiler names one.
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
    // What is missing as a whole has no line.
    return there.starts_with(header.substr(0, header.rfind('/') + 1)) ? fmt::format("{}: {}", there, match[3].str())
                                                                      : fmt::format("{}: {}", shown, match[3].str());
  }
  return fmt::format("{}: the compiler fails: {}", shown, lines.empty() ? "it says nothing" : lines.front());
}

void compile(const std::string& header, const std::string& shown, const Workplace& place, const std::string& object) {
  const std::string include = headers_of_program(), unit = place / "unit.cpp", log = place / "log";
  const std::vector<std::string> classes = mechanisms_in(header);
  write_file(unit, unit_of(header, classes));
  const char* const other = std::getenv("CXX");
  std::vector<std::string> words = words_of(other && *other ? other : program_build().compiler);
  for (const std::string& flag : words_of(program_build().flags)) words.push_back(flag);
  // Of a class that has the name of one of heed's, the plugin's own functions must be called: hence hidden.
  for (const std::string& word :
       {std::string("-shared"), std::string("-fPIC"), std::string("-fvisibility=hidden"), std::string("-w"),
        std::string("-fmax-errors=1"), std::string("-fno-diagnostics-show-caret"),
        std::string("-fdiagnostics-color=never"), "-I" + include, std::string("-o"), object, unit})
    words.push_back(word);
  setenv("LC_ALL", "C", 1);
  if (const int status = run(words, log); status != 0) {
    const std::string said = read_file(log);
    require(!said.empty(), "{}: the compiler {} ends with status {}", shown, in_quotes(words[0]), status);
    fail("{}", first_error(said, header, shown));
  }
}

int plugin_command(const std::string& header, std::string output) {
  if (output.empty()) output = fs::path(header).replace_extension(".so");
  require(fs::is_regular_file(header), "{}: there is no such file; expected the header of a mechanism", header);
  const Workplace place;
  const auto start = std::chrono::steady_clock::now();
  const std::string object = place / "plugin.so";
  compile(fs::canonical(header), header, place, object);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // What cannot be loaded is no plugin. The object is put in its place whole: a program may run that has loaded it.
  const std::vector<std::string> names = load_plugin(object, output);
  write_file(output, read_file(object));
  std::cout << fmt::format("{}: compiled in {:.1f} s\n", output, seconds);
  for (const std::string& name : names)
    std::cout << fmt::format(
        "next: {0} gradcheck {1} --plugin {2}\n      {0} train FILE --run DIR --plugin {2} --set "
        "attention.mechanism={1}\n",
        program_name(), name, output);
  return ok;
}

}  // namespace

void add_plugin(Command program) {
  static std::string header, output;
  Command command = program.command("plugin", "Compile a mechanism of your own, one header, for all other commands");
  command.option("HEADER", &header, "the mechanism, such as hydra.h (docs/adding-a-mechanism.md)", {.required = true});
  command.option("-o,--output", &output, "the plugin; default: hydra.so for hydra.h", {.value = "FILE"});
  command.footer("It takes a C++ compiler: the one that heed was made with, or, of the same version, that CXX names.");
  command.action([] { return plugin_command(header, output); });
}

}  // namespace heed::cli
