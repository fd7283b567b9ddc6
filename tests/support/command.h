// Programs and scripts run from the shell.
#pragma once

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace heed::test {

struct CommandResult {
  int status;
  std::string output, errors;
};

/// Runs a shell command line in `directory`. SIGPIPE ends its programs, even if Confined or the caller of the tests has
/// ignored this signal.
inline CommandResult run_command(const std::string& line, const std::string& directory = ".") {
  const TemporaryDirectory logs;
  std::signal(SIGPIPE, SIG_DFL);
  const int status = std::system(("cd '" + directory + "' && (" + line + ") > '" + (logs / "output").string() +
                                  "' 2> '" + (logs / "errors").string() + "'")
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(logs / "output"), read_file(logs / "errors")};
}

/// Returns the path of the program built with these tests, in quotes.
inline std::string heed_program() {
  const std::filesystem::path tests = std::filesystem::read_symlink("/proc/self/exe");
  return "'" + (tests.parent_path().parent_path() / "heed").string() + "'";
}

/// Precondition of test suites: Python with matplotlib.
inline boost::test_tools::assertion_result with_matplotlib(boost::unit_test::test_unit_id) {
  static const bool have = run_command("/usr/bin/python3 -c 'import matplotlib'").status == 0;
  boost::test_tools::assertion_result result(have);
  if (!have) result.message() << "python3-matplotlib is not installed";
  return result;
}

/// Precondition of tests that measure memory or time, or limit the number of open files: no sanitizer.
inline boost::test_tools::assertion_result without_sanitizer(boost::unit_test::test_unit_id) {
#ifdef HEED_SANITIZED
  boost::test_tools::assertion_result no(false);
  no.message() << "sanitizers change memory use and time, and open files";
  return no;
#else
  return true;
#endif
}

/// Returns true if the text is one complete line that contains `piece`.
inline bool is_line_with(const std::string& text, const std::string& piece) {
  return text.find('\n') == text.size() - 1 && text.find(piece) != std::string::npos;
}

}  // namespace heed::test
