// Runs of the program built with the tests.
#pragma once

#include "heed/io/file.h"
#include "support/temporary.h"
#include "support/training.h"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace heed::test {

/// Returns the path of the program built with these tests: build/heed for build/tests/run.
inline std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "heed";
}

/// Removes AddressSanitizer's warning about switched stacks, which it prints although src/base/fiber.cpp announces each
/// switch.
inline std::string without_warning_of_stacks(std::string text) {
  const std::size_t warning = text.find("WARNING: ASan doesn't fully support makecontext/swapcontext");
  if (warning == std::string::npos) return text;
  const std::size_t line = text.rfind('\n', warning) + 1;  // npos + 1 is 0
  return without_warning_of_stacks(text.erase(line, text.find('\n', warning) + 1 - line));
}

/// Result of a run of the program.
struct Finished {
  int status = -1;  ///< exit status; 1000 + signal if it was killed
  std::string out, err;
};

/// A running program with its output in files. The destructor waits for its end.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program());
    BOOST_REQUIRE_MESSAGE(std::filesystem::exists(arguments[0]),
                          arguments[0] << " is missing: make it before the tests");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string out = directory_ / "out", err = directory_ / "err";
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
    BOOST_REQUIRE(posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  ~Program() {
    if (process_ > 0) wait();
  }

  void signal(int number) const { ::kill(process_, number); }

  /// Returns the program's child process, or 0 if it has none.
  pid_t child() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      std::ifstream file(entry.path() / "stat");
      std::string stat;
      if (name.find_first_not_of("0123456789") != std::string::npos || !std::getline(file, stat)) continue;
      // The parent is the second field after the command in parentheses.
      if (std::stoi(stat.substr(stat.rfind(')') + 4)) == process_) return std::stoi(name);
    }
    return 0;
  }

  /// Returns the program's standard output so far.
  std::string output() const { return read_file(directory_ / "out"); }

  Finished wait() {
    int status = 0;
    BOOST_REQUIRE(::waitpid(process_, &status, 0) == process_);
    process_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), output(),
            without_warning_of_stacks(read_file(directory_ / "err"))};
  }

 private:
  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

inline Finished heed_with(std::vector<std::string> arguments) { return Program(std::move(arguments)).wait(); }

/// Runs the program, which must succeed without output on stderr; returns its output.
inline std::string output_of(const std::vector<std::string>& arguments) {
  const Finished run = heed_with(arguments);
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.err == "");
  return run.out;
}

/// Runs the program on an unfinished run and requires a warning of one line; returns its output.
inline std::string output_of_unfinished(const std::vector<std::string>& arguments) {
  const Finished run = heed_with(arguments);
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.err.starts_with("heed: warning: "));
  BOOST_TEST(run.err.find("training is not finished: ") != std::string::npos, run.err);
  BOOST_TEST(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  return run.out;
}

inline void check_contains(const std::string& text, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces)
    BOOST_TEST(text.find(piece) != std::string::npos, "'" << piece << "' is not in\n" << text);
}

/// Checks that the program rejects these arguments in one line that contains all `pieces`.
inline void check_refusal(const std::vector<std::string>& arguments, const std::vector<std::string>& pieces) {
  const Finished run = heed_with(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  BOOST_TEST_CONTEXT("heed " << line << "said: " << run.err) {
    BOOST_TEST(run.status == 2);
    BOOST_TEST(run.out == "");
    BOOST_TEST(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    BOOST_TEST(run.err.ends_with('\n'));
    for (const std::string& piece : pieces) BOOST_TEST(run.err.find(piece) != std::string::npos, "lacks " << piece);
  }
}

/// Writes an experiment file for a Workshop's data.
inline std::string write_experiment(const Workshop& workshop, const Experiment& x) {
  write_file(workshop / "x.toml", to_toml(x));
  return workshop / "x.toml";
}

/// A trained run on a Workshop's images.
struct Trained : Workshop {
  std::string run = *this / "run";
  Trained() {
    Experiment x = experiment();
    x.train.epochs = 1;
    output_of({"train", write_experiment(*this, x), "--run", run});
  }
};

}  // namespace heed::test
