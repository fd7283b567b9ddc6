// The progress lines that heed train and heed sweep redraw, on a pseudo-terminal.
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/lines.h"

#include <pty.h>
#include <sys/ioctl.h>

#include <chrono>
#include <csignal>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

/// The program on a pseudo-terminal with a given number of columns.
class OnTerminal {
 public:
  OnTerminal(std::vector<std::string> arguments, unsigned short columns) {
    arguments.insert(arguments.begin(), program());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const winsize size{24, columns, 0, 0};
    process_ = forkpty(&terminal_, nullptr, nullptr, &size);
    BOOST_REQUIRE(process_ >= 0);
    if (process_ == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  OnTerminal(const OnTerminal&) = delete;
  ~OnTerminal() {
    close(terminal_);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }

  void resize(unsigned short columns) const {
    const winsize size{24, columns, 0, 0};
    BOOST_REQUIRE(ioctl(terminal_, TIOCSWINSZ, &size) == 0);
  }
  void interrupt() const { ::kill(process_, SIGINT); }

  /// Returns the output read until enough(output) is true, or to the end.
  template <typename Enough>
  std::string read_until(Enough enough) const {
    std::string text;
    char part[4096];
    for (ssize_t got = 1; got > 0 && !enough(text);) {
      got = ::read(terminal_, part, sizeof part);  // fails once the program has ended
      if (got > 0) text.append(part, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string read_rest() const {
    return read_until([](const std::string&) { return false; });
  }

 private:
  int terminal_ = -1;
  pid_t process_ = -1;
};

/// Returns the output's lines with a bar, except the last, which may be incomplete.
std::vector<std::string> bars(const std::string& text) {
  std::vector<std::string> lines;
  const std::string start = "\r\033[K";
  for (std::size_t at = text.find(start); at != std::string::npos;) {
    const std::size_t next = text.find(start, at + 1);
    const std::string line = text.substr(at + start.size(), next - at - start.size());
    const bool bar = line.find("█") != std::string::npos || line.find("░") != std::string::npos;
    if (next != std::string::npos && bar) lines.push_back(line);
    at = next;
  }
  return lines;
}

/// Reads the output until two lines with a bar have `least` to `most` columns, or until there are more than a hundred
/// lines with a bar; returns those with `least` to `most` columns. Lines printed at a previous width are skipped.
std::vector<std::string> bars_of(const OnTerminal& terminal, int least, int most) {
  const auto fitting = [&](std::vector<std::string> lines) {
    std::erase_if(lines, [&](const std::string& line) { return columns_of(line) < least || columns_of(line) > most; });
    return lines;
  };
  return fitting(bars(terminal.read_until([&](const std::string& text) {
    const std::vector<std::string> lines = bars(text);
    return lines.size() > 100 || fitting(lines).size() >= 2;
  })));
}

/// Returns the lines on a terminal too narrow for a bar, without incomplete lines and ends of epochs.
std::vector<std::string> beginnings(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; (at = text.find("\033[Kepo", at)) != std::string::npos; ++at) {
    const std::size_t end = text.find('\r', at);
    if (end < text.size() - 1 && text[end + 1] != '\n') lines.push_back(text.substr(at + 3, end - at - 3));
  }
  return lines;
}

struct ManyEpochs : Workshop {
  ManyEpochs() : Workshop(1300, 10) {
    Experiment x = experiment();
    ask_for_everything(x);
    x.train.epochs = 1000;
    file = write_experiment(*this, x);
  }
  std::vector<std::string> train() const { return {"train", file, "--run", *this / "run"}; }
  std::string file;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_progress)

BOOST_FIXTURE_TEST_CASE(the_line_fits_the_terminal_and_follows_its_width, ManyEpochs) {
  const OnTerminal terminal(train(), 80);
  const auto two_bars = [](const std::string& text) { return bars(text).size() >= 2; };
  std::vector<std::string> lines = bars(terminal.read_until(two_bars));
  BOOST_TEST(lines.size() >= 2u);
  for (const std::string& line : lines) {
    BOOST_TEST(columns_of(line) < 80, line);
    BOOST_TEST(line.find('\n') == std::string::npos);
    check_contains(line, {"/1000 ", "/80  loss ", "accuracy", " left"});
  }
  terminal.resize(40);
  lines = bars_of(terminal, 0, 39);
  BOOST_TEST(lines.size() >= 2u);
  for (const std::string& line : lines) check_contains(line, {"/80  loss "});
  terminal.resize(200);
  lines = bars_of(terminal, 81, 199);
  BOOST_TEST(lines.size() >= 2u);
  for (const std::string& line : lines) check_contains(line, {"images/s"});
  terminal.interrupt();
  check_contains(terminal.read_rest(), {"interrupted and saved"});
}

// The time left is the time so far, divided by the number of completed steps, times that of remaining steps, and
// rounded to seconds. Without the limit, 80 million steps would remain.
BOOST_FIXTURE_TEST_CASE(the_time_left_ends_at_the_limit_of_steps, ManyEpochs) {
  std::vector<std::string> limited = train();
  limited.insert(limited.end(), {"--set", "train.epochs=1000000", "--set", "train.max_steps=400"});
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> lines = bars(OnTerminal(limited, 120).read_rest());
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  BOOST_REQUIRE(!lines.empty());
  static const std::regex place("epoch ([0-9]+)/1000000 [^ ]* ([0-9]+)/80  .*  (?:([0-9]+):)?([0-9]+):([0-9]+) left");
  for (const std::string& line : lines) {
    std::smatch found;
    BOOST_TEST_REQUIRE(std::regex_search(line, found, place), line);
    const double steps = 80 * (std::stod(found[1]) - 1) + std::stod(found[2]);
    const double hours = found[3].matched ? std::stod(found[3]) : 0;
    const double left = 3600 * hours + 60 * std::stod(found[4]) + std::stod(found[5]);
    BOOST_TEST(left <= whole * (400 - steps) / steps + 0.5, line);
  }
}

// All lines fit except commands for pasting, which contain paths of any length.
BOOST_AUTO_TEST_CASE(all_lines_of_a_run_fit) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), run = workshop / "run";
  const std::string text = OnTerminal({"train", file, "--run", run}, 80).read_rest();
  check_contains(text, {"\r\n           validation loss ", "accuracy by class", "float32"});
  for (std::string line : lines_of(text)) {
    line = line.substr(line.rfind("\033[K") == line.npos ? 0 : line.rfind("\033[K") + 3);
    line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
    if (line.find(run) == line.npos) BOOST_TEST(columns_of(line) <= 80, line);
  }
}

BOOST_FIXTURE_TEST_CASE(a_terminal_of_a_few_columns, ManyEpochs) {
  const OnTerminal terminal(train(), 5);
  const std::string text = terminal.read_until([](const std::string& read) { return beginnings(read).size() >= 2; });
  BOOST_TEST(beginnings(text).size() >= 2u);
  for (const std::string& line : beginnings(text)) BOOST_TEST(line == "epoc");
  terminal.interrupt();
  terminal.read_rest();
}

// While the second seed is trained, the name of the arm begins after 24 bytes, "1 of 2 done, 0:00 left; ".
BOOST_AUTO_TEST_CASE(the_line_of_a_sweep_has_whole_characters) {
  const Workshop workshop;
  write_experiment(workshop, workshop.experiment());
  const std::string file = workshop / "sweep.toml";
  write_file(file, "base = \"x.toml\"\nseeds = 2\n[arms.\"öööööööööööö\"]\n");
  for (const unsigned short columns : {36, 37}) {
    const std::string out = workshop / std::to_string(columns);
    const std::string text = OnTerminal({"sweep", file, "--out", out}, columns).read_rest();
    check_contains(text, {"; öö"});
    BOOST_TEST(Json::parse(Json(text).dump()).text() == text, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
