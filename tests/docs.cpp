// Checks the documentation: links and named files exist, quoted code is in the examples, and tables and diagrams are
// complete.
#include "heed/attention/mechanism.h"
#include "heed/config/sweep.h"
#include "heed/io/file.h"
#include "heed/nn/families.h"
#include "support/command.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace heed;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> pages() {
  std::vector<fs::path> list{"README.md",     "CONTRIBUTING.md",       "CHANGELOG.md",         "models/README.md",
                             "src/README.md", "experiments/README.md", "experiments/claims.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator("docs"))
    if (entry.path().extension() == ".md") list.push_back(entry.path());
  return list;
}

/// Calls f(line, number, in_code_block) for each line of a page.
template <class F>
void for_lines(const fs::path& page, const F& f) {
  std::istringstream text(read_file(page.string()));
  bool code = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const bool fence = line.starts_with("```");
    f(line, ++number, code || fence);
    code ^= fence;
  }
}

template <class F>
void for_matches(const std::string& line, const std::regex& pattern, const F& f) {
  for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end; ++match) f(*match);
}

/// Returns the anchors of a page's headings: "## A mechanism's cost" is #a-mechanisms-cost.
std::set<std::string> anchors(const fs::path& page) {
  std::set<std::string> found;
  for_lines(page, [&](const std::string& line, int, bool code) {
    if (code || !line.starts_with("#")) return;
    std::string anchor;
    for (const char c : line.substr(line.find_first_not_of("# ")))
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        anchor += '-';
    found.insert(anchor);
  });
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(docs)

BOOST_AUTO_TEST_CASE(every_mechanism_has_its_line_and_its_experiment) {
  const std::string readme = read_file("README.md");
  for (const MechanismEntry& entry : mechanisms())
    BOOST_TEST(readme.find(std::string("[`") + entry.name + "`](src/attention/") != std::string::npos,
               "README.md's table of mechanisms has no line for " << entry.name);
  for (const char* table : {"mnist", "cifar10"}) {
    const std::string sweep = fmt::format("experiments/sweeps/{}-table.toml", table);
    std::set<std::string> trained;
    for (const SweepCell& cell : load_sweep(sweep)) {
      BOOST_TEST(error_of([&] { make_model(cell.experiment); }) == "no error", sweep << ": " << cell.arm);
      trained.insert(cell.experiment.attention.mechanism.begin(), cell.experiment.attention.mechanism.end());
    }
    for (const MechanismEntry& entry : mechanisms())
      BOOST_TEST(trained.contains(entry.name),
                 sweep << " does not train " << entry.name << ": there is no experiments/mnist-*.toml with it");
  }
}

BOOST_AUTO_TEST_CASE(links_lead_somewhere) {
  static const std::regex link("(?:\\]\\(|src=\")([^)\"#]*)(?:#([^)\"]*))?[)\"]");
  int links = 0;
  for (const fs::path& page : pages())
    for_lines(page, [&](const std::string& line, int number, bool code) {
      if (code) return;
      for_matches(line, link, [&](const std::smatch& match) {
        if (match[1].str().starts_with("https://")) return;
        const fs::path target = match[1].str().empty() ? page : page.parent_path() / match[1].str();
        const std::string where = page.string() + ":" + std::to_string(number) + ": " + match[0].str();
        BOOST_TEST(fs::exists(target), where);
        if (match[2].matched && fs::exists(target)) BOOST_TEST(anchors(target).contains(match[2]), where);
        ++links;
      });
    });
  BOOST_TEST(links > 20);
}

// A named file need not exist if a block of code on the page has its text, with the name in the first line.
BOOST_AUTO_TEST_CASE(files_that_are_named_are_there) {
  static const std::regex file("\\b((?:include|src|tests|docs|models|experiments|datasets)/[\\w/.-]*\\.\\w+)");
  int files = 0;
  for (const fs::path& page : pages()) {
    std::set<std::string> held;
    for_lines(page, [&](const std::string& line, int number, bool) {
      for_matches(line, file, [&](const std::smatch& match) {
        if (line == "// " + match[1].str()) held.insert(match[1]);
        BOOST_TEST((held.contains(match[1]) || fs::exists(match[1].str())),
                   page.string() << ":" << number << ": there is no " << match[1].str());
        ++files;
      });
    });
  }
  BOOST_TEST(files > 20);
}

// tests/examples.sh compiles and runs the examples; these pages quote them.
BOOST_AUTO_TEST_CASE(quoted_code_is_in_the_examples) {
  std::string examples;
  for (const fs::directory_entry& entry : fs::directory_iterator("examples")) examples += read_file(entry.path());
  for (const std::string page : {"README.md", "docs/adding-an-operation.md", "docs/operations.md", "docs/library.md",
                                 "docs/adding-a-mechanism.md", "docs/comparing.md"}) {
    std::string block;
    bool inside = false;
    int blocks = 0;
    for_lines(page, [&](const std::string& line, int number, bool) {
      if (inside && line == "```") {
        // A block that begins with a file name is that file's content, which another test compiles.
        if (!block.starts_with("// "))
          BOOST_TEST(examples.find(block) != std::string::npos, page << ":" << number << ": no example has this block");
        ++blocks;
        inside = false;
      }
      if (inside) block += line + "\n";
      if (line == "```cpp" || line == "```python") block.clear(), inside = true;
    });
    BOOST_TEST(blocks > 0, page << " has no block of code");
  }
}

BOOST_AUTO_TEST_CASE(the_first_page_is_short) {
  int lines = 0;
  for_lines("README.md", [&](const std::string&, int, bool) { ++lines; });
  BOOST_TEST(lines <= 110);
}

// The table of commands has exactly the subcommands of the program's help.
BOOST_AUTO_TEST_CASE(every_command_has_its_row) {
  static const std::regex row("^\\| `heed ([a-z|\\\\]+).*"), subcommand("^  ([a-z]+)  .*"), name("[a-z]+");
  std::set<std::string> listed, known;
  for_lines("docs/commands.md", [&](const std::string& line, int, bool) {
    if (std::smatch match; std::regex_match(line, match, row))
      for_matches(match[1], name, [&](const std::smatch& one) { listed.insert(one[0]); });
  });
  std::istringstream help(test::run_command(test::heed_program() + " help").output);
  bool inside = false;
  for (std::string line; std::getline(help, line); inside |= line == "Subcommands:")
    if (std::smatch match; inside && std::regex_match(line, match, subcommand)) known.insert(match[1]);
  BOOST_TEST(known.size() > 20u);
  BOOST_TEST(listed == known, boost::test_tools::per_element());
}

// The committed diagrams are those that docs/diagrams/draw.py draws. docs/mechanisms.md shows one for each mechanism;
// layers.svg has all layers.
BOOST_AUTO_TEST_CASE(diagrams_are_what_the_script_draws) {
  const test::CommandResult check = test::run_command("python3 docs/diagrams/draw.py --check");
  BOOST_TEST(check.status == 0, check.errors);
  const std::string page = read_file("docs/mechanisms.md");
  for (const MechanismEntry& entry : mechanisms()) {
    const std::string mechanism = entry.name;
    BOOST_TEST(page.find("](diagrams/" + mechanism + ".svg)") != std::string::npos, mechanism << " has no diagram");
    BOOST_TEST(page.find("[`" + mechanism + "`](../src/attention/") != std::string::npos, mechanism << " has no link");
  }
  const std::string layers = read_file("docs/diagrams/layers.svg");
  static const std::regex layer("^\\| `([\\w/]+)` \\|.*");
  int count = 0;
  for_lines("docs/architecture.md", [&](const std::string& line, int, bool) {
    if (std::smatch match; std::regex_match(line, match, layer)) {
      BOOST_TEST(layers.find(">" + match[1].str() + "</text>") != std::string::npos,
                 "docs/diagrams/layers.svg has no layer " << match[1]);
      ++count;
    }
  });
  BOOST_TEST(count > 10);
}

BOOST_AUTO_TEST_SUITE_END()
