// heed plugin: compiles the header of a mechanism into a shared object.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/output_file.h"
#include "plugin_compile.h"
#include "plugins.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/bench/timing.h"
#include "heed/io/file.h"
#include "heed/io/plugin_files.h"
#include "src/apps/grading/sandbox/confined.h"

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// Compiles the header and returns the warnings of -Wall, most of which are about likely errors, not style.
std::vector<std::string> compile(const std::string& header, const std::string& shown, const PrivateDirectory& place,
                                 const std::string& object) {
  const std::string unit = place / "unit.cpp", log = place / "log";
  std::vector<std::string> words = plugin_words(headers_of_program());
  write_file(unit, plugin_unit(header, mechanism_classes(header, shown)));
  words.insert(words.end(), {"-Wall", "-shared", "-o", object, unit});
  setenv("LC_ALL", "C", 1);
  const int status = run_to_files(words, place / "out", log, "install a compiler, or name another in CXX");
  const std::string said = read_file(log);
  if (status != 0) {
    require(!said.empty(), "{}: the compiler {} exits with status {}", shown, in_quotes(words[0]), status);
    fail("{}", first_error(said, header, shown));
  }
  return warnings_of(said, header, shown);
}

int plugin_command(const std::string& header, std::string output) {
  if (output.empty()) output = fs::path(header).replace_extension(".so");
  require(fs::is_regular_file(header), "{}: the file does not exist; expected the header of a mechanism", header);
  require_own_file({"-o", output}, {{"HEADER", header}});
  require_writable({"-o", output});
  require_execution(fs::temp_directory_path());
  const PrivateDirectory place;
  const bench::Clock::time_point start = bench::Clock::now();
  const std::string object = place / "plugin.so";
  const std::vector<std::string> warnings = compile(fs::canonical(header), header, place, object);
  const double seconds = bench::seconds_since(start);
  // The output is replaced atomically, and only if the new plugin can be loaded: a running program may be using the old
  // one.
  const std::vector<std::string> names = load_plugin(object, output);
  write_file(output, read_file(object));
  for (const std::string& warning : warnings) std::cout << "warning: " << printable(warning) << "\n";
  std::cout << fmt::format("{}: compiled in {:.1f} s\n", output, seconds);
  for (const std::string& name : names)
    std::cout << fmt::format(
        "next: {0} gradcheck {1} --plugin {2}\n      {0} train FILE --run DIR --plugin {2} --set "
        "attention.mechanism={1}\n",
        program_name(), name, shell_word(output));
  return ok;
}

}  // namespace

void add_plugin(Command program) {
  static std::string header, output;
  Command command =
      program.command("plugin", "Compile your own mechanism, a single header, for use in all other commands");
  command.option("HEADER", &header, "header of the mechanism, such as hydra.h (docs/adding-a-mechanism.md)",
                 {.required = true});
  command.option("-o,--output", &output, "the plugin; default: hydra.so for hydra.h", {.value = "FILE"});
  command.footer("Needs a C++ compiler: the one that compiled heed, or another of the same version, named by CXX.");
  command.action([] { return plugin_command(header, output); });
}

}  // namespace heed::cli
