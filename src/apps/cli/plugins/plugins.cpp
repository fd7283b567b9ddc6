#include "plugins.h"

#include "src/apps/cli/shared/commands.h"
#include "plugin_compile.h"

#include "heed/io/checksum.h"
#include "heed/attention/plugin.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"
#include "heed/io/plugin_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <filesystem>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// Returns the name of the plugin being loaded, for the message of say_and_exit(): exceptions cannot leave dlopen.
std::string& loading() {
  static std::string file;
  return file;
}

[[noreturn]] void say_and_exit() {
  _exit(report_error(fmt::format("{}: throws an exception during loading", loading())));
}

/// Returns the loader's error message, without the file's name in front, and with a C++ name at its end demangled.
std::string complaint(const std::string& file) {
  std::string text = dlerror();
  if (text.starts_with(file + ": ")) text = text.substr(file.size() + 2);
  const std::size_t name = text.find("_Z");
  if (name == std::string::npos) return text;
  int status = 0;
  char* const plain = abi::__cxa_demangle(text.c_str() + name, nullptr, nullptr, &status);
  if (status == 0) text.replace(name, std::string::npos, plain);
  std::free(plain);
  return text;
}

/// Calls dlopen, which runs the file's constructors. Throws Error, with `name`, if the file cannot be loaded.
void* open_library(const std::string& file, const std::string& name, int mode) {
  require_whole(file, name);
  loading() = name;
  const std::terminate_handler before = std::set_terminate(say_and_exit);
  void* const library = dlopen(file.c_str(), mode | RTLD_LOCAL);
  std::set_terminate(before);
  if (library == nullptr) fail("{}: cannot be loaded as a plugin: {}", name, complaint(file));
  return library;
}

/// Returns the text in a field of the record; the field may lack a terminator.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return {text, strnlen(text, size)};
}

/// Returns the text truncated to the size of the record's field.
template <std::size_t size>
std::string cut(const char (&)[size], const std::string& text) {
  return text.substr(0, size - 1);
}

/// Returns true if the address is in this shared object.
bool is_in(const void* library_base, const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fbase == library_base;
}

/// Returns the plugin's record. Throws Error if it is missing or damaged, or if it does not match this program's build.
const PluginRecord& record_of(void* library, const std::string& file) {
  const void* const symbol = dlsym(library, "heed_plugin");
  Dl_info info{};
  const ElfW(Sym)* described = nullptr;
  require(symbol != nullptr && dladdr1(symbol, &info, (void**)&described, RTLD_DL_SYMENT) != 0 &&
              described != nullptr && described->st_size >= sizeof(PluginRecord) &&
              std::memcmp(symbol, plugin_mark, plugin_mark_text) == 0,
          "{}: a shared object, but not compiled by `heed plugin`", file);
  const PluginRecord& record = *static_cast<const PluginRecord*>(symbol);
  const PluginBuild& program = program_build();
  const auto same = [&](const char* what, const std::string& found, const std::string& expected) {
    require(found == expected, "{}: compiled {} {}, but this heed {} {}; compile it again: heed plugin {}", file, what,
            in_quotes(found), what, in_quotes(expected), shell_word(text_of(record.source)));
  };
  same("for contract", text_of(record.mark).substr(plugin_mark_text), plugin_mark + plugin_mark_text);
  same("for version", text_of(record.version), cut(record.version, program.version));
  same("by compiler", text_of(record.compiler), cut(record.compiler, program.compiler_version));
  same("with flags", text_of(record.flags), cut(record.flags, program.flags));
  same("with headers whose checksum is", text_of(record.headers), cut(record.headers, program.headers));
  require(record.count > 0 && record.count <= 64 && is_in(info.dli_fbase, record.makers) &&
              is_in(info.dli_fbase, record.makers + record.count - 1),
          "{}: the plugin's record is damaged; compile it again: heed plugin {}", file,
          shell_word(text_of(record.source)));
  return record;
}

/// Throws Error unless the entry is usable by commands; creates the mechanism to check this.
void check_entry(const std::string& file, const MechanismEntry& entry) {
  const std::string name = entry.name ? entry.name : "";
  const bool plain = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  require(!name.empty() && plain, "{}: a mechanism has the name {}; expected letters, digits, _ and -", file,
          in_quotes(name));
  require(entry.summary && entry.complexity, "{}: mechanism '{}' has no summary, or no complexity", file, name);
  try {
    entry.options();
    require(!entry.variants().empty(), "{}: mechanism '{}' has no variants; expected at least {{}}", file, name);
    require(!entry.settings().empty(), "{}: mechanism '{}' has no settings", file, name);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail("{}: mechanism '{}' cannot be created: {}", file, name, error.what());
  } catch (...) {
    fail("{}: mechanism '{}' cannot be created: it throws an exception of a type other than std::exception", file,
         name);
  }
}

/// Returns the absolute path, since dlopen searches system directories for a name without a directory.
std::string absolute(const std::string& file) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(file, error);
  require(!error && fs::is_regular_file(path, error), "{}: the plugin does not exist", file.empty() ? "''" : file);
  require(path.string().find(':') == std::string::npos, "{}: expected a plugin's path without a colon", file);
  return path;
}

std::vector<std::string>& loaded() {
  static std::vector<std::string> files;
  return files;
}

}  // namespace

std::vector<std::string> load_plugin(const std::string& file, const std::string& name) {
  const std::string path = absolute(file);
  if (std::ranges::find(loaded(), path) != loaded().end()) return {};
  // Symbols are resolved lazily at first: a plugin for another heed may need functions that this one lacks, and the
  // check of the record gives a better error.
  const PluginRecord& record = record_of(open_library(path, name, RTLD_LAZY), name);
  open_library(path, name, RTLD_NOW);
  const std::string sum = checksum(read_file(path));
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < record.count; ++i) {
    const MechanismEntry entry = record.makers[i]();
    check_entry(name, entry);
    add_mechanism(entry, {fs::weakly_canonical(name), text_of(record.source), sum});
    names.emplace_back(entry.name);
  }
  loaded().push_back(path);
  return names;
}

void load_plugins(const std::vector<std::string>& files) {
  const char* const listed = std::getenv("HEED_PLUGINS");
  for (const std::string& file : split(listed ? listed : "", ':'))
    if (!file.empty()) load_plugin(file, file);
  for (const std::string& file : files) load_plugin(file, file);
  const std::string all = fmt::format("{}", fmt::join(loaded(), ":"));
  if (!all.empty()) setenv("HEED_PLUGINS", all.c_str(), 1);
}

}  // namespace heed::cli
