// The list is the only connection to mechanisms: no file except a mechanism's own refers to one by name, so a new one
// is complete.
#include "heed/attention/mechanism.h"
#include "heed/io/file.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <regex>

using namespace heed;
namespace fs = std::filesystem;

namespace {

/// The check of adder attention's surrogate gradient defines the function of which it is the derivative.
const std::string own_check = "src/checks/adder_cases.cpp";

bool has(const std::string& text, const std::regex& pattern) { return std::regex_search(text, pattern); }

/// A call that creates or finds a mechanism by a literal name.
const std::regex by_name("\\b(make_mechanism|find_mechanism|keep)\\(\\s*\"");

/// Returns a pattern for names in a script: 'softmax', "soft:landmarks=49".
std::regex quoted_name() {
  std::string names;
  for (const MechanismEntry& entry : mechanisms()) names += fmt::format("{}{}", names.empty() ? "" : "|", entry.name);
  return std::regex("[\"'](" + names + ")[:\"']");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(list_of_mechanisms)

BOOST_AUTO_TEST_CASE(source_names_no_mechanism) {
  for (const char* top : {"include", "src"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const std::string path = entry.path();
      if (!entry.is_regular_file() || path.starts_with("src/attention/") || path == own_check) continue;
      BOOST_TEST(!has(read_file(path), by_name), path << " asks for a mechanism by name");
    }
  BOOST_TEST(has(read_file(own_check), by_name));
}

BOOST_AUTO_TEST_CASE(scripts_name_no_mechanism) {
  const std::regex pattern = quoted_name();
  for (const fs::directory_entry& entry : fs::directory_iterator("experiments/tools")) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() && (extension.empty() || extension == ".py"))
      BOOST_TEST(!has(read_file(entry.path().string()), pattern),
                 entry.path() << " names a mechanism; `heed list --settings` has them all");
  }
  BOOST_TEST(has("run('soft:landmarks=49')", pattern));
}

BOOST_AUTO_TEST_SUITE_END()
