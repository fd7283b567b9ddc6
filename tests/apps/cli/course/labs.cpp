// Labs as students use them. A solution is right and a stub worth nothing: of one lab here, of all in tests/labs.sh;
// of personal labs those of two identities, or with HEED_LABS=all of two hundred.
#include "support/cli.h"
#include "support/command.h"

#include "heed/io/json.h"
#include "src/apps/grading/definition/definition.h"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

bool whole_class() {
  const char* const asked = std::getenv("HEED_LABS");
  return asked && std::string(asked) == "all";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A class that is graded by the labs of the repository.
struct Submissions {
  TemporaryDirectory directory;

  void hand_in(const std::string& student, const std::string& file, const std::string& text) const {
    fs::create_directories(directory / ("in/" + student));
    write_file(directory / ("in/" + student + "/" + file), text);
  }
  /// The rows of marks.csv, each as its columns up to the state.
  std::vector<std::vector<std::string>> grade() const {
    const Finished run = heed_with({"grade", directory / "in", "-o", directory / "marks.csv"});
    BOOST_TEST(run.status == 0, run.err);
    std::vector<std::vector<std::string>> rows;
    for (const std::string& line : lines_of(read_file(directory / "marks.csv"))) {
      std::istringstream columns(line);
      rows.emplace_back();
      for (std::string column; std::getline(columns, column, ',');) rows.back().push_back(column);
    }
    rows.erase(rows.begin());
    return rows;
  }
  std::string feedback(const std::string& student, const std::string& lab) const {
    return read_file(directory / ("marks.feedback/" + student + "/" + lab + ".txt"));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_labs)

BOOST_FIXTURE_TEST_CASE(a_solution_is_right_and_a_stub_worth_nothing, Submissions,
                        *boost::unit_test::precondition(without_sanitizer)) {
  const std::string file = "softmax-backward.h";
  hand_in("solution", file, read_file("notebooks/solutions/softmax-backward/" + file));
  hand_in("stub", file, read_file("notebooks/labs/softmax-backward/" + file));
  for (const auto& row : grade()) {
    BOOST_TEST(row[4] == "graded", row[0] << " " << row[1]);
    BOOST_TEST(row[2] == (row[0] == "solution" ? row[3] : "0"), feedback(row[0], row[1]));
  }
}

// Each looks right where it is looked at from one side only: what the gradient is compared with is wrong, too; an
// option that is not the default is left out.
BOOST_FIXTURE_TEST_CASE(half_a_solution, Submissions, *boost::unit_test::precondition(without_sanitizer)) {
  std::string newton = read_file("notebooks/solutions/newton-inverse/newton-inverse.py");
  newton +=
      "\n\ndef newton(A, a, steps):\n    return combined(a, A, 0, A)\n"
      "\n\ndef unrolled(A, a, steps, dX):\n    return combined(a, dX, 0, dX)\n";
  hand_in("constant", "newton-inverse.py", newton);
  std::string adder = read_file("notebooks/solutions/adder-attention/adder-attention.h");
  const std::string choice = "if (score_grad == ScoreGradient::hardtanh)";
  const std::size_t at = adder.find(choice);
  BOOST_REQUIRE(at != std::string::npos);
  hand_in("sign", "adder-attention.h", adder.replace(at, choice.size(), "if (false)"));
  grade();
  check_contains(feedback("constant", "newton-inverse"),
                 {"wrong  newton", "wrong  unrolled", "newton is not right yet"});
  check_contains(feedback("sign", "adder-attention"),
                 {"right  gradient q: ", "wrong  gradient q, score_grad=hardtanh: 0 of 1", "it is wrong in ",
                  "right  gradient k: ", "wrong  gradient k, score_grad=hardtanh: 0 of 1"});
}

BOOST_FIXTURE_TEST_CASE(personal_labs_can_be_solved, Submissions, *boost::unit_test::precondition(without_sanitizer)) {
  const int students = whole_class() ? 200 : 2;
  for (int i = 0; i < students; ++i) {
    const std::string student = "s" + std::to_string(1000 + i);
    const Definition write = definition_of(student, PersonalTask::write),
                     repair = definition_of(student, PersonalTask::repair);
    hand_in(student, "own-mechanism.h", header_of(write, "my_mechanism"));
    hand_in(student, "own-bugs.h", header_of(repair, "my_mechanism"));
  }
  // Each bug costs its point.
  for (int i = 0; i < (whole_class() ? 50 : 0); ++i) {
    const std::string student = "stub" + std::to_string(i);
    hand_in(student, "own-bugs.h",
            header_of(definition_of(student, PersonalTask::repair), "my_mechanism", bugs_of(student)));
  }
  // What is handed out is worth nothing, and so is another's solution but for what costs as much.
  hand_in("stub", "own-mechanism.h", stub_of(definition_of("stub", PersonalTask::write), "my_mechanism"));
  const Definition repair = definition_of("stub", PersonalTask::repair);
  hand_in("stub", "own-bugs.h", header_of(repair, "my_mechanism", bugs_of("stub")));
  hand_in("thief", "own-mechanism.h", header_of(definition_of("s1000", PersonalTask::write), "my_mechanism"));
  for (const auto& row : grade()) {
    if (row[0] == "thief" || row[4] == "missing") continue;
    BOOST_TEST(row[4] == "graded", row[0] << " " << row[1]);
    BOOST_TEST(row[2] == (row[0].starts_with("stub") ? "0" : row[3]), feedback(row[0], row[1]));
  }
  check_contains(feedback("thief", "own-mechanism"),
                 {"wrong  output", "wrong  gradient q", "wrong  gradient k", "wrong  gradient v"});
}

BOOST_AUTO_TEST_CASE(a_check_in_a_notebook, *boost::unit_test::precondition(without_sanitizer)) {
  const Finished stub = heed_with({"lab", "check", "softmax-backward", "--json"});
  BOOST_TEST(stub.status == 1);
  const Json json = Json::parse(stub.out);
  BOOST_TEST(json.at("marks").number() == 0);
  BOOST_TEST(json.at("of").number() == 10);
  for (const Json& point : json.at("points").items()) {
    BOOST_TEST(point.at("says").items().at(0).text() == "not yet");
    BOOST_TEST(point.at("says").items().size() == 1u);  // no hint before the beginning
  }
  check_refusal({"lab", "check", "softmax-backwards"}, {"no lab 'softmax-backwards'", "did you mean"});
  check_refusal({"lab", "check", "own-bugs"}, {"--student"});
  check_refusal({"lab", "check", "softmax-backward", "--file", "/nowhere.h"}, {"/nowhere.h"});
}

BOOST_AUTO_TEST_CASE(a_lab_of_ones_own) {
  const TemporaryDirectory directory;
  const std::string place = directory.path();
  check_contains(output_of({"lab", "new", "own-mechanism", "--student", "s1", "-o", place}), {"own-mechanism.h"});
  check_contains(read_file(directory / "own-mechanism/own-mechanism.h"), {"// ", "out", "fail(\"not yet\")"});
  check_refusal({"lab", "new", "own-mechanism", "--student", "s2", "-o", place}, {"is there already"});
  check_refusal({"lab", "new", "own-mechanism", "-o", place}, {"--student"});
  output_of({"lab", "new", "own-bugs", "--student", "s1", "-o", place});
  output_of({"lab", "new", "softmax-backward", "-o", place});
  BOOST_TEST(read_file(directory / "softmax-backward/softmax-backward.h") ==
             read_file("notebooks/labs/softmax-backward/softmax-backward.h"));
}

BOOST_AUTO_TEST_CASE(what_students_get) {
  const TemporaryDirectory directory;
  const std::string file = directory / "labs.tar.gz";
  output_of({"lab", "bundle", "-o", file});
  const CommandResult listed = run_command("tar tzf '" + file + "'");
  check_contains(listed.output, {"notebooks/labs/softmax-backward/softmax-backward.h", "lab.toml"});
  BOOST_TEST(listed.output.find("solution") == std::string::npos);
  BOOST_TEST(listed.output.find("README") == std::string::npos);
  output_of({"lab", "bundle", "-o", directory / "all"});
  BOOST_TEST(fs::exists(directory / "all/notebooks/labs/own-bugs/lab.toml"));
  BOOST_TEST(!fs::exists(directory / "all/notebooks/solutions"));
  check_refusal({"lab", "bundle", "-o", directory / "all"}, {"is there already"});
  BOOST_TEST(fs::exists(directory / "all/models/energy/int8-45nm.toml"));  // notebooks 7 and 10 read it
  int links = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / "all/notebooks")) {
    if (entry.path().extension() != ".ipynb") continue;
    static const std::regex link("\\]\\((?!https?:)([^)#]+)");
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++links)
      BOOST_TEST(fs::exists(entry.path().parent_path() / (*at)[1].str()), entry.path() << ": " << (*at)[0]);
  }
  BOOST_TEST(links > 20);
}

// Of a course of its own: what notebooks have made stays behind, and what they link to comes along.
BOOST_AUTO_TEST_CASE(what_is_in_a_bundle) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories((directory / file).parent_path());
    write_file(directory / file, text);
  };
  write("notebooks/1.ipynb", "see [a](../src/linked.cpp), [b](labs/x/x.h), [c](../../outside.md), [d](../gone.md)");
  for (const char* const file :
       {"notebooks/lab.py", "notebooks/labs/x/x.h", "notebooks/README.md", "notebooks/runs/model/last.safetensors",
        "notebooks/__pycache__/lab.pyc", "notebooks/.ipynb_checkpoints/1.ipynb", "notebooks/solutions/x/x.h",
        "docs/page.md", "models/small.toml", "src/linked.cpp", "src/other.cpp"})
    write(file, "");
  BOOST_TEST(run_command(heed_program() + " lab bundle -o out", directory.path()).status == 0);
  // A directory without a name would be this one.
  BOOST_TEST(run_command(heed_program() + " lab bundle -o ''", directory.path()).status == 2);
  std::set<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory / "out"))
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), directory / "out"));
  BOOST_TEST(files == (std::set<std::string>{"docs/page.md", "models/small.toml", "notebooks/1.ipynb",
                                             "notebooks/lab.py", "notebooks/labs/x/x.h", "src/linked.cpp"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
