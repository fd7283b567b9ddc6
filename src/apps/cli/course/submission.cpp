#include "submission.h"

#include "plain_text.h"
#include "src/apps/cli/plugins/plugin_compile.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"
#include "heed/io/plugin_files.h"
#include "src/apps/grading/sandbox/object_symbols.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

constexpr Index megabyte = 1 << 20, compiler_seconds = 60;

/// Returns the path of a program; searches PATH if only its name is given.
std::string path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::absolute(program);
  const char* const path = std::getenv("PATH");
  for (const fs::path place : split(path ? path : "/usr/bin:/bin", ':'))
    if (access((place / program).c_str(), X_OK) == 0) return fs::absolute(place / program);
  fail("grade: the compiler {} is not installed; expected the compiler that built heed, or another named in CXX",
       in_quotes(program));
}

/// Returns the compiler's command for submissions, without warnings. It uses -O1, which compiles in half the time of
/// -O3, and no ccache, because submissions must not write to its cache.
std::vector<std::string> compiler_words(const std::string& include) {
  std::vector<std::string> words = plugin_words(include);
  if (fs::path(words[0]).filename() == "ccache" && words.size() > 1) words.erase(words.begin());
  words[0] = path_of(words[0]);
  words.insert(words.end(), {"-O1", "-w"});
  return words;
}

Confinement for_compiler(const std::string& directory, std::vector<std::string> readable) {
  return {.seconds = compiler_seconds,
          .memory = 3000 * megabyte,
          .file = 64 * megabyte,
          .programs = true,
          .directory = directory,
          .readable = std::move(readable)};
}

/// Returns true if the text contains the word as a whole word. An empty word matches between two characters that belong
/// to no word, so it is found in all code.
bool has_word(const std::string& text, const std::string& word) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    if ((at == 0 || !in_word(static_cast<unsigned char>(text[at - 1]))) &&
        (at + word.size() >= text.size() || !in_word(static_cast<unsigned char>(text[at + word.size()]))))
      return true;
  return false;
}

/// Includes of the headers that every mechanism and every plugin needs.
constexpr const char* base_headers =
    "#include \"heed/attention/mechanism_base.h\"\n#include \"heed/attention/plugin.h\"\n"
    "#include \"heed/kernels/products/gemm.h\"\n";

/// Adds the headers of heed that a text includes, directly or indirectly, as paths below `include`.
void add_headers(const std::string& include, const std::string& text, std::set<std::string>& found) {
  static const std::regex line("#\\s*include\\s*[<\"](heed/[^>\"]+)[>\"]");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
    if (const std::string path = (*at)[1]; fs::exists(fs::path(include) / path) && found.insert(path).second)
      add_headers(include, read_file(include + "/" + path), found);
}

std::set<std::string> headers_for(const std::string& include, const std::string& stub) {
  std::set<std::string> found;
  add_headers(include, base_headers + stub, found);
  return found;
}

/// Copies headers from one folder to another.
void copy_headers(const std::string& from, const std::set<std::string>& headers, const std::string& to) {
  for (const std::string& path : headers) {
    fs::create_directories((fs::path(to) / path).parent_path());
    fs::copy_file(fs::path(from) / path, fs::path(to) / path);
  }
}

/// Copies the formatting library, which heed's headers include, if it is in their folder, as in the tar file of
/// `make package`.
void copy_library(const std::string& from, const std::string& to) {
  const fs::path library = fs::path(from) / "fmt";
  if (fs::exists(library)) fs::copy(library, fs::path(to) / "fmt", fs::copy_options::recursive);
}

/// Throws Error if the compiler has read headers of heed outside these folders, such as those installed in
/// /usr/include.
void require_folders(const std::string& dependencies, const std::vector<std::string>& folders) {
  for (const std::string& path : split(dependencies, ' ')) {
    const bool ours = std::ranges::any_of(folders, [&](const std::string& folder) { return path.starts_with(folder); });
    require(ours || path.find("/heed/") == std::string::npos,
            "it includes {}; expected only headers that the handed-out file includes",
            in_quotes(path.substr(path.find("/heed/") + 1)));
  }
}

/// Returns the reason for a failed compilation whose log names no line: an unreadable header, the assembler's error, or
/// an exceeded limit.
std::string reason_without_place(const std::string& log) {
  static const std::regex assembler("\\.s:\\d+: Error: ([^\n]*)"), denied("fatal error: ([^\n]*: Permission denied)");
  std::smatch match;
  if (std::regex_search(log, match, denied)) return match[1];
  if (std::regex_search(log, match, assembler)) return "assembler error: " + match[1].str();
  if (log.find("CPU time limit exceeded") != std::string::npos)
    return fmt::format("it uses more than {} s of CPU time", compiler_seconds);
  return "it uses more than 3 GB of memory, or writes more than 64 MB";
}

/// Returns the last part of a symbol's name, "gemm" for heed::kernels::gemm<float>(...); empty if it is not heed's.
std::string function_of(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  const std::string name = text ? text.get() : symbol;
  std::smatch match;
  static const std::regex last("(?:^|[ :*&])heed::(?:\\w+(?:<[^()]*>)?::)*(\\w+)");
  return std::regex_search(name, match, last) ? match[1].str() : "";
}

}  // namespace

std::string read_bytes(const std::string& file, Index most) {
  const Descriptor opened(open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  require(opened >= 0 || errno != ELOOP, "it is a symbolic link; expected a file");
  require(opened >= 0, "it cannot be read: {}", std::strerror(errno));
  struct stat info {};
  require(fstat(opened, &info) == 0 && S_ISREG(info.st_mode), "it is not a regular file");
  require(info.st_size <= most, "it has {} bytes; expected at most {}", info.st_size, most);
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t got = read(opened, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::string read_submission(const std::string& file, Index most) { return plain_text(read_bytes(file, most)); }

SharedHeaders::SharedHeaders() {
  copy_headers(headers_of_program(), headers_for(headers_of_program(), ""), include());
  copy_library(headers_of_program(), include());
  write_file(header(), std::string(base_headers) + "#include <cmath>\n#include <vector>\n");
  std::vector<std::string> words = compiler_words(include());
  words.insert(words.end(), {"-x", "c++-header", "-o", header() + ".gch", header()});
  Confinement confinement = for_compiler(directory(), {});
  confinement.file = 512 * megabyte;
  const int status = Confined(words, confinement).wait();
  require(status == 0, "grade: heed's headers cannot be compiled: {}",
          first_error(read_file(place_ / "log"), header(), "heed.h"));
}

void compile_submission(const std::string& header, const std::string& shown, const std::string& stub,
                        const PrivateDirectory& place, const std::string& object, const SharedHeaders* shared) {
  const std::string all = headers_of_program(), unit = place / "unit.cpp", deps = place / "deps";
  std::string include = all;
  if (!stub.empty()) {
    include = place / "include";
    std::set<std::string> headers = headers_for(all, stub);
    if (shared)
      for (const std::string& base : headers_for(all, "")) headers.erase(base);
    copy_headers(all, headers, include);
    if (!shared) copy_library(all, include);
  }
  std::vector<std::string> words = compiler_words(include), readable{include};
  write_file(unit, plugin_unit(header, mechanism_classes(header, shown)));
  if (shared) {
    readable.push_back(shared->directory());
    words.insert(words.end(), {"-I" + shared->include(), "-include", shared->header()});
  }
  words.insert(words.end(), {"-MD", "-MF", deps, "-shared", "-o", object, unit});
  int status = 0;
  try {
    status = Confined(words, for_compiler(place.path(), readable)).wait();
  } catch (const Error& error) {
    fail("{}: the compiler was stopped: {}", shown, error.what());
  }
  if (status != 0) {
    const std::string log = read_file(place / "log");
    std::string error = first_error(log, header, shown);
    if (error.find(": the compiler fails: ") != std::string::npos)
      error = fmt::format("{}: the compiler was stopped: {}", shown, reason_without_place(log));
    // Removes the grader's paths from the message.
    for (const std::string& path : {include + "/", place.path() + "/", shared ? shared->include() + "/" : all})
      for (std::size_t at = 0; (at = error.find(path)) != std::string::npos;) error.erase(at, path.size());
    const bool missing = error.find("No such file") != std::string::npos;
    fail("{}{}", error, missing ? "; an answer may use only the includes of the file handed out" : "");
  }
  std::string dependencies = read_file(deps);
  std::ranges::replace(dependencies, '\n', ' ');
  require_folders(dependencies, {include, shared ? shared->include() : include});
}

void require_own_work(const std::string& object, const std::string& stub) {
  constexpr const char* theirs[] = {"make_mechanism", "find_mechanism", "10mechanismsE",  "15mechanism_entry",
                                    "5tallyE",        "dlopen",         "dlmopen",        "dlsym",
                                    "dlvsym",         "dladdr",         "dl_iterate_phdr"};
  const std::string include = headers_of_program();
  std::string declared;
  for (const std::string& path : headers_for(include, stub)) declared += read_file(include + "/" + path);
  for (const std::string& name : undefined_symbols(object)) {
    for (const char* const word : theirs)
      require(name.find(word) == std::string::npos,
              "it uses {}, which a submission may not call: the computation must be its own", in_quotes(name));
    const std::string function = function_of(name);
    require(stub.empty() || has_word(declared, function),
            "it uses {}, which is not declared by the includes of the file handed out", in_quotes(function));
  }
}

std::vector<std::string> system_calls_in(const std::string& object) {
  static const std::vector<std::string> known = split(
      "_Exit _exit clone close connect creat dup dup2 dup3 execl execlp execv execve execvp exit fopen fopen64 fork "
      "kill mmap open open64 openat openat64 pause popen ptrace quick_exit raise read remove rename setenv setsid "
      "sigaction signal sleep socket syscall system unlink usleep vfork write posix_spawn posix_spawnp pthread_create",
      ' ');
  std::vector<std::string> calls;
  for (const std::string& name : undefined_symbols(object))
    if (std::ranges::find(known, name) != known.end()) calls.push_back(name);
  std::ranges::sort(calls);
  return calls;
}

void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden) {
  for (const std::string& word : forbidden)
    require(!has_word(source, word), "it uses {}, which this lab asks you to write", in_quotes(word));
  for (const char* const paste : {"##", "%:%:"})
    require(forbidden.empty() || source.find(paste) == std::string::npos || !has_word(source, "define"),
            "it uses {}, which pastes tokens together; write them in full", paste);
}

void require_compiler() { compiler_words(headers_of_program()); }

}  // namespace heed::cli
