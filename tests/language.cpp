// Checks comments, pages and messages for phrasings that are never good English.
#include "heed/io/file.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace heed;
namespace fs = std::filesystem;

namespace {

/// A forbidden phrasing, and the words to use instead. Only lines that contain `hint` are searched, since regular
/// expressions are slow; with an empty hint, only comments.
struct Phrasing {
  const char *hint, *pattern, *instead;
};

constexpr Phrasing everywhere[] = {
    {"so many", "\\bso many (of|[a-z]+s)\\b", "a letter or a name: n columns, `count` views"},
    {" before", "\\b(of|from) before\\b", "existing, previous"},
    {" far as", "\\b(in so far|so far) as\\b", "if"},
    {"apart", "\\b(tells?|told|telling) .{0,40}\\bapart\\b", "distinguishes, is classified"},
    {"along", "\\b(takes?|taken|taking) along\\b", "includes, copies"},
    {"to chance", "\\bleft to chance\\b", "random"},
    {"way back", "\\bon the way back\\b", "in the backward pass"},
    {"body", "\\b(no|some)body\\b", "the passive, or the role: caller, user, reader"},
    {" again", "\\b(made|makes?) again\\b", "recomputed, recomputes"},
    {"whether", "\\blooks? whether\\b", "checks"},
};

/// Beginnings of comments.
constexpr Phrasing at_the_beginning = {"", "^\\s*(///?<?|#) (Of|What|Who|Whose|Those|Where|Some|So many)\\b",
                                       "a verb in the third person, or a noun"};

/// Files that may contain a phrasing, with the phrasing.
const std::set<std::pair<std::string, std::string>> exceptions = {
    {"CONTRIBUTING.md", "so many columns"},  // the rule itself
};

bool is_text(const fs::path& file) {
  static const std::set<std::string> endings{".h", ".cpp", ".md", ".sh", ".py", ".mjs", ".mk", ".inc", ".toml"};
  return endings.contains(file.extension()) || file.extension().empty();  // Makefile, programs of experiments
}

std::vector<fs::path> texts() {
  std::vector<fs::path> list{"Makefile", "README.md", "CONTRIBUTING.md", "datasets/fetch.sh"};
  for (const char* folder : {"src", "include", "tests", "docs", "examples", "experiments", "models", "mk", "notebooks"})
    for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
      const std::string path = entry->path().generic_string();
      // Earlier versions of heed may have recorded the browser page's models, and runs of notebooks and experiments. A
      // notebook may run now, and remove directories.
      if (path == "src/apps/web/trained" || path == "notebooks/runs" || path == "experiments/runs")
        entry.disable_recursion_pending();
      if (entry->is_regular_file() && is_text(entry->path()) && path != "tests/language.cpp")
        list.push_back(entry->path());
    }
  return list;
}

/// Returns "file:line: the phrasing; what to use" for each forbidden phrasing in a text, except the listed exceptions.
std::vector<std::string> faults(const std::string& file, const std::string& text) {
  struct Compiled {
    Phrasing phrasing;
    std::regex pattern;
  };
  static const auto compiled = [] {
    std::vector<Compiled> all;
    for (const Phrasing& p : everywhere) all.push_back({p, std::regex(p.pattern, std::regex::icase)});
    all.push_back({at_the_beginning, std::regex(at_the_beginning.pattern)});
    return all;
  }();
  const bool page = file.ends_with(".md");  // "# What a model costs" is a heading there
  std::vector<std::string> found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(' ');
    const bool comment = begin != std::string::npos && (line[begin] == '/' || line[begin] == '#') && !page;
    for (const auto& [phrasing, pattern] : compiled) {
      if (*phrasing.hint == 0 ? !comment : line.find(phrasing.hint) == std::string::npos) continue;
      std::smatch match;
      if (!std::regex_search(line, match, pattern) || exceptions.contains({file, match.str()})) continue;
      found.push_back(file + ":" + std::to_string(number) + ": \"" + match.str() + "\"; use " + phrasing.instead);
    }
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(language)

BOOST_AUTO_TEST_CASE(no_text_has_these_phrasings) {
  for (const fs::path& file : texts())
    for (const std::string& fault : faults(file.generic_string(), read_file(file.string()))) BOOST_ERROR(fault);
}

BOOST_AUTO_TEST_CASE(each_phrasing_is_found) {
  for (const char* line :
       {"views, of which so many views", "Handles of before", "in so far as it", "told the two apart", "is taken along",
        "left to chance", "on the way back", "if nobody reads", "is made again", "looks whether it",
        "  // Of each head: a map", "/// What a file has"})
    BOOST_TEST(faults("a.h", line).size() == 1u, line);
  for (const char* line :
       {"so many", "before", "as far as n", "apart from", "nobody_reads", "// Whatever", "// Offsets"})
    BOOST_TEST(faults("a.h", line).empty(), line);
}

BOOST_AUTO_TEST_CASE(exceptions_are_there) {
  for (const auto& [file, phrasing] : exceptions)
    BOOST_TEST(read_file(file).find(phrasing) != std::string::npos, file << ": " << phrasing);
}

BOOST_AUTO_TEST_SUITE_END()
