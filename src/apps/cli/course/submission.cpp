#include "submission.h"

#include "src/apps/cli/plugins/plugin_compile.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"
#include "heed/io/plugin_files.h"
#include "src/apps/grading/sandbox/object_symbols.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

constexpr Index megabyte = 1 << 20;

/// The path of a program that is called by name.
std::string path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::absolute(program);
  const char* const path = std::getenv("PATH");
  for (const fs::path place : split(path ? path : "/usr/bin:/bin", ':'))
    if (access((place / program).c_str(), X_OK) == 0) return fs::absolute(place / program);
  fail("grade: the compiler {} is not installed; expected the one that heed was made with, or one named in CXX",
       in_quotes(program));
}

/// The compiler as it is called for submissions: at -O1, which takes half the time, without warnings, and by itself:
/// what ccache would keep lies where submissions must not write.
std::vector<std::string> compiler_words(const std::string& include) {
  std::vector<std::string> words = plugin_words(include);
  if (fs::path(words[0]).filename() == "ccache" && words.size() > 1) words.erase(words.begin());
  words[0] = path_of(words[0]);
  words.insert(words.end(), {"-O1", "-w"});
  return words;
}

Confinement for_compiler(const std::string& directory, std::vector<std::string> readable) {
  return {.seconds = 60,
          .memory = 3000 * megabyte,
          .file = 64 * megabyte,
          .programs = true,
          .directory = directory,
          .readable = std::move(readable)};
}

}  // namespace

std::string read_submission(const std::string& file) {
  const int opened = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  require(opened >= 0 || errno != ELOOP, "it is a symbolic link; expected a file");
  require(opened >= 0, "it cannot be read: {}", std::strerror(errno));
  struct stat info {};
  const bool regular = fstat(opened, &info) == 0 && S_ISREG(info.st_mode);
  std::string text;
  if (regular && info.st_size <= megabyte) {
    text.resize(static_cast<std::size_t>(info.st_size));
    const ssize_t got = read(opened, text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  close(opened);
  require(regular, "it is no regular file");
  require(info.st_size <= megabyte, "it has {} bytes; expected at most {}", info.st_size, megabyte);
  return text;
}

SharedHeaders::SharedHeaders() {
  const std::string include = headers_of_program();
  write_file(header(),
             "#include \"heed/attention/mechanism_base.h\"\n#include \"heed/attention/plugin.h\"\n"
             "#include \"heed/kernels/products/gemm.h\"\n#include <cmath>\n#include <vector>\n");
  std::vector<std::string> words = compiler_words(include);
  words.insert(words.end(), {"-x", "c++-header", "-o", header() + ".gch", header()});
  Confinement confinement = for_compiler(directory(), {include});
  confinement.file = 512 * megabyte;
  const int status = Confined(words, confinement).wait();
  require(status == 0, "grade: heed's headers cannot be compiled: {}",
          first_error(read_file(place_ / "log"), header(), "heed.h"));
}

void compile_submission(const std::string& header, const std::string& shown, const PrivateDirectory& place,
                        const std::string& object, const SharedHeaders* shared) {
  const std::string include = headers_of_program(), unit = place / "unit.cpp";
  std::vector<std::string> words = compiler_words(include), readable{include};
  write_file(unit, plugin_unit(header, mechanism_classes(header, shown)));
  if (shared) {
    readable.push_back(shared->directory());
    words.insert(words.end(), {"-include", shared->header()});
  }
  words.insert(words.end(), {"-shared", "-o", object, unit});
  int status = 0;
  try {
    status = Confined(words, for_compiler(place.path(), readable)).wait();
  } catch (const Error& error) {
    fail("{}: the compiler was stopped: {}", shown, error.what());
  }
  if (status != 0) fail("{}", first_error(read_file(place / "log"), header, shown));
}

void require_own_work(const std::string& object) {
  constexpr const char* theirs[] = {"make_mechanism", "find_mechanism", "10mechanismsE",  "15mechanism_entry",
                                    "5tallyE",        "dlopen",         "dlmopen",        "dlsym",
                                    "dlvsym",         "dladdr",         "dl_iterate_phdr"};
  for (const std::string& name : undefined_symbols(object))
    for (const char* const word : theirs)
      require(name.find(word) == std::string::npos,
              "it uses {}, which a submission may not: it must do the work itself", in_quotes(name));
}

void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (const std::string& word : forbidden)
    for (std::size_t at = 0; (at = source.find(word, at)) != std::string::npos; ++at)
      require((at > 0 && in_word(static_cast<unsigned char>(source[at - 1]))) ||
                  (at + word.size() < source.size() && in_word(static_cast<unsigned char>(source[at + word.size()]))),
              "it uses {}, which this lab asks for", in_quotes(word));
}

void require_compiler() { compiler_words(headers_of_program()); }

}  // namespace heed::cli
