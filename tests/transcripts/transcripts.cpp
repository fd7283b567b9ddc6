// Transcripts of commands with all their output, which a person has checked. Each case runs a file of
// tests/transcripts.
//
// "$ " begins a command for the shell, "> " continues it. Its standard output follows, then its standard error, each
// line of which begins with "! ", then its exit status unless that is 0. "## " begins a title. The commands of a file
// share a directory with data/, files in MNIST's format with images of 8 x 8 pixels; images/, which has a folder for
// each of three classes; and vit.toml, a small model for data/. In the output, DIR stands for that directory, and T for
// durations and rates, as in "T s"; the pace of an epoch is omitted.
//
//   HEED_WRITE_TRANSCRIPTS=1 build/tests/run --run_test=transcripts     records the current output in the files
#include "heed/train/runs/run.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/images.h"
#include "support/lines.h"
#include "support/temporary.h"

#include <fmt/format.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

std::vector<std::string> names_of_transcripts() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator("tests/transcripts"))
    if (file.path().extension() == ".txt") names.push_back(file.path().stem());
  std::ranges::sort(names);
  return names;
}

/// Precondition: SIMD kernels. Plain loops give different bits.
boost::test_tools::assertion_result with_simd(boost::unit_test::test_unit_id) {
#ifdef HEED_NO_SIMD
  boost::test_tools::assertion_result no(false);
  no.message() << "plain loops have other bits";
  return no;
#else
  return true;
#endif
}

/// Returns the text with durations, rates and the directory replaced, since these differ from run to run, and without
/// the pace of an epoch, which is printed for long epochs only.
std::string lasting(std::string text, const std::string& directory) {
  for (std::size_t at; (at = text.find(directory)) != std::string::npos;) text.replace(at, directory.size(), "DIR");
  static const std::regex duration("[0-9][0-9.]*(?:e-[0-9]+)? (s|ms|µs|min|h|[a-z]+/s)(?![a-zA-Z])");
  static const std::regex pace("  T [a-z]+/s  [0-9]+:[0-9]+(?=\n|$|  [0-9]+ steps? skipped)");
  return std::regex_replace(std::regex_replace(text, duration, "T $1"), pace, "");
}

/// The directory of a transcript's commands.
struct Place : Workshop {
  Place() {
    const char* const classes[] = {"cat", "dog", "owl"};
    for (int i = 0; i < 24; ++i)
      write_image(fmt::format("{}/{}/{:02}.png", *this / "images", classes[i % 3], i), pattern({3, 10, 12}, 40 * i));
    Experiment x = experiment();
    x.data.path = "data";
    write_file(*this / "vit.toml", config_toml(x));
  }

  /// Returns what the command prints, in the form of a transcript.
  std::string printed(const std::string& command) const {
    const std::string directory = std::filesystem::path(data()).parent_path();
    const CommandResult result = run_command(command, directory);
    std::string text = lasting(result.output, directory);
    if (!text.empty() && text.back() != '\n') text += "\n";
    for (const std::string& line : lines_of(lasting(without_warning_of_stacks(result.errors), directory)))
      text += "! " + line + "\n";
    if (result.status != 0) text += fmt::format("status {}\n", result.status);
    return text;
  }
};

/// Returns the first line in which the texts differ, as expected and as found.
std::string first_difference(const std::string& expected, const std::string& found) {
  const std::vector<std::string> a = lines_of(expected), b = lines_of(found);
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto line = [i](const std::vector<std::string>& lines) { return i < lines.size() ? lines[i] : "(its end)"; };
  return fmt::format("expected: {}\nfound:    {}", line(a), line(b));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(transcripts, *boost::unit_test::precondition(with_simd))

BOOST_DATA_TEST_CASE_F(Place, prints_what_the_transcript_says, boost::unit_test::data::make(names_of_transcripts()),
                       name) {
  const std::string file = "tests/transcripts/" + name + ".txt";
  const EnvironmentVariable path("PATH",
                                 std::filesystem::path(program()).parent_path().string() + ":" + std::getenv("PATH"));
  const std::vector<std::string> lines = lines_of(read_file(file));
  std::string now;
  for (std::size_t i = 0; i < lines.size();) {
    if (!lines[i].starts_with("$ ")) {
      now += lines[i++] + "\n";  // the title
      continue;
    }
    const std::size_t start = i;
    std::string command = lines[i].substr(2), expected;
    now += lines[i++] + "\n";
    for (; i < lines.size() && lines[i].starts_with("> "); ++i) {
      command += "\n" + lines[i].substr(2);
      now += lines[i] + "\n";
    }
    for (; i < lines.size() && !lines[i].starts_with("$ ") && !lines[i].starts_with("## "); ++i)
      expected += lines[i] + "\n";
    while (expected == "\n" || expected.ends_with("\n\n")) expected.pop_back();
    std::string found = printed(command);
    while (found.ends_with("\n\n")) found.pop_back();
    now += found + "\n";
    BOOST_TEST(found == expected, file << ":" << start + 1 << ": " << command << "\n"
                                       << first_difference(expected, found));
  }
  if (std::getenv("HEED_WRITE_TRANSCRIPTS")) write_file(file, now.substr(0, now.find_last_not_of('\n') + 2));
}

BOOST_AUTO_TEST_SUITE_END()
