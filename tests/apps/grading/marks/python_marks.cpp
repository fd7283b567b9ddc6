// Marks of Python functions by a judge written by the test.
#include "src/apps/grading/marks/python_marks.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// A lab with the points "few", "form" and "sentence".
struct Judged {
  TemporaryDirectory directory;
  Lab lab;

  Judged() {
    lab.directory = directory.path().string();
    for (const char* name : {"few", "form", "sentence"}) lab.points.push_back({.name = name});
  }
  void judge(const std::string& text) const { write_file(lab.directory + "/judge.py", text); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(python_marks, Judged)

// A function is called twenty times by default. A result of the wrong form is the student's error; a verdict that is
// not a string is the judge's.
BOOST_AUTO_TEST_CASE(verdicts_of_a_judge) {
  judge(
      "def draw_few(random): return [1]\n"
      "draw_form = draw_sentence = draw_few\n"
      "def judge_few(given, result): return 'twenty' if result == 20 else None\n"
      "def judge_form(given, result): return 'wrong' if result + 1 != 2 else None\n"
      "def judge_sentence(given, result): return 3\n");
  const std::string source =
      "seen = []\n"
      "def few(x):\n"
      "    seen.append(x)\n"
      "    return len(seen)\n"
      "def form(x): return None\n"
      "def sentence(x): return x\n";
  std::set<std::string> refused;
  const std::vector<Mark> marks = PythonTask(lab, 1).marks(source, refused);
  const char* const expected[] = {
      "twenty", "what it returns is not of the expected form (TypeError)",
      "it cannot be graded: TypeError: judge_sentence returns 3; expected None or a sentence"};
  BOOST_TEST_REQUIRE(marks.size() == 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(!marks[i].right);
    BOOST_TEST_REQUIRE(marks[i].says.size() == 1u);
    BOOST_TEST(marks[i].says[0] == expected[i]);
  }
  BOOST_TEST(refused.empty());
}

BOOST_AUTO_TEST_CASE(errors_of_a_judge_name_the_function) {
  judge("def draw_few(random): return [1]\ndef draw_form(random): return 1 / 0\n");
  BOOST_TEST(error_of([&] { PythonTask(lab, 1); }, lab.directory) ==
             "/judge.py: draw_form: ZeroDivisionError: division by zero");
}

BOOST_AUTO_TEST_SUITE_END()
