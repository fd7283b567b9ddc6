// Labs in TOML: each key is read into its field.
#include "heed/config/lab.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <variant>

using namespace heed;

namespace {

struct OneLab {
  TemporaryDirectory directory;

  Lab read(const std::string& text) const {
    std::filesystem::create_directory(directory / "one");
    write_file(file(), "title = \"One\"\nminutes = 20\n" + text);
    return load_lab(directory / "one");
  }

  /// Returns the error, without the file's name. Line 3 is the first of `text`.
  std::string refusal(const std::string& text) const {
    return error_of([&] { read(text); }, file());
  }
  std::string file() const { return directory / "one/lab.toml"; }
};

using Texts = std::map<std::string, std::string>;

const std::string python = "kind = \"python\"\n", answers = "kind = \"answers\"\n",
                  a_point = "[[points]]\nname = \"a\"\nmarks = 1\n",
                  a_question = answers + a_point + "question = \"?\"\n", formula = "formula = \"1\"\n";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(config_lab, OneLab)

BOOST_AUTO_TEST_CASE(keys_of_a_mechanism) {
  const Lab lab = read(
      "kind = \"mechanism\"\nhints = [\"a\", \"b\"]\n[mechanism]\nname = \"mine\"\nreference = \"sima\"\n"
      "options = { scale = \"2\" }\nreference_options = { norm = \"l2\", causal = \"true\" }\nslack = 3.5\n"
      "forbidden = [\"eval\", \"import\"]\n[[points]]\nname = \"output\"\nmarks = 2\nhint = \"c\"\n"
      "[[points]]\nname = \"memory\"\nmarks = 0.5\n");
  BOOST_TEST(lab.name == "one");
  BOOST_TEST(lab.title == "One");
  BOOST_TEST((lab.kind == LabKind::mechanism));
  BOOST_TEST(lab.minutes == 20);
  BOOST_TEST((lab.hints == std::vector<std::string>{"a", "b"}));
  BOOST_TEST(lab.mechanism == "mine");
  BOOST_TEST(lab.reference == "sima");
  BOOST_TEST((lab.options == Texts{{"scale", "2"}}));
  BOOST_TEST((lab.reference_options == Texts{{"norm", "l2"}, {"causal", "true"}}));
  BOOST_TEST(lab.slack == 3.5);
  BOOST_TEST((lab.forbidden == std::vector<std::string>{"eval", "import"}));
  BOOST_REQUIRE(lab.points.size() == 2u);
  BOOST_TEST(lab.points[0].name == "output");
  BOOST_TEST(lab.points[0].hint == "c");
  BOOST_TEST(lab.points[1].marks == 0.5);
  BOOST_TEST(lab.marks() == 2.5);
  BOOST_TEST(lab.file() == "one.h");
}

BOOST_AUTO_TEST_CASE(keys_of_answers) {
  const Lab lab = read(
      "kind = \"answers\"\n[values]\nwidth = 12\ncost = { heed = [\"cost\", \"x.toml\"], field = \"total.mul\" }\n"
      "[[points]]\nname = \"a\"\nmarks = 1\nquestion = \"How wide?\"\nformula = \"2 width\"\ntolerance = 0.01\n"
      "[[points]]\nname = \"b\"\nmarks = 1\nquestion = \"How far?\"\nhash = \"abc\"\ndigits = 5\n");
  BOOST_TEST(lab.values.at("width").number.value() == 12);
  BOOST_TEST((lab.values.at("cost").heed == std::vector<std::string>{"cost", "x.toml"}));
  BOOST_TEST(lab.values.at("cost").field == "total.mul");
  BOOST_REQUIRE(lab.points.size() == 2u);
  BOOST_TEST(lab.points[0].question == "How wide?");
  BOOST_TEST(lab.points[0].formula == "2 width");
  BOOST_TEST(lab.points[0].tolerance == 0.01);
  BOOST_TEST(lab.points[1].question == "How far?");
  BOOST_TEST(lab.points[1].hash == "abc");
  BOOST_TEST(lab.points[1].digits == 5);
  BOOST_TEST(lab.points[1].tolerance == 1e-6);
  BOOST_TEST(lab.points[0].digits == 3);
  BOOST_TEST(lab.file() == "one.toml");
}

BOOST_AUTO_TEST_CASE(keys_of_a_personal_mechanism) {
  const std::string points = "[[points]]\nname = \"output\"\nmarks = 1\n";
  const Lab write = read("kind = \"personal\"\n[personal]\ntask = \"write\"\nslack = 4\n" + points);
  BOOST_TEST(!write.repair);
  BOOST_TEST(write.slack == 4);
  BOOST_TEST(write.file() == "one.h");
  const Lab repair = read("kind = \"personal\"\n[personal]\ntask = \"repair\"\n" + points);
  BOOST_TEST(repair.repair);
  BOOST_TEST(repair.slack == 2);
  BOOST_TEST(read(python + points).file() == "one.py");
}

BOOST_AUTO_TEST_CASE(a_lab_has_the_name_of_its_directory) {
  read(python + a_point);
  for (const char* name : {"one", "one/", "one/.", "one/../one"})
    BOOST_TEST(load_lab((directory / name).string()).name == "one", name);
  std::filesystem::rename(directory / "one", directory / "a b");
  BOOST_TEST(error_of([&] { load_lab(directory / "a b"); }, directory / "a b/lab.toml") ==
             ": the lab's directory has the name 'a b'; expected letters, digits, - and _");
}

BOOST_AUTO_TEST_CASE(tables_and_points_are_required) {
  BOOST_TEST(refusal(a_point) == ": 'kind' is missing");
  BOOST_TEST(refusal("kind = \"mechanism\"\n" + a_point) == ": a lab of kind 'mechanism' needs a table [mechanism]");
  BOOST_TEST(refusal("kind = \"personal\"\n" + a_point) == ": a lab of kind 'personal' needs a table [personal]");
  BOOST_TEST(refusal("kind = \"personal\"\n[personal]\ntask = \"solve\"\n" + a_point) ==
             ": personal.task is 'solve'; expected write or repair");
  BOOST_TEST(refusal(python) == ": expected tables [[points]], at most 100");
  BOOST_TEST(refusal(python + a_point + a_point) == ":7: two points have the name 'a'");
  BOOST_TEST(refusal(python + a_point + "mark = 1\n") == ":7: unknown key 'points.mark'; did you mean 'marks'?");
  BOOST_TEST(
      refusal(python + a_point + "hint = 1\n").starts_with(":7: 'points.hint': expected a string, found an int"));
  BOOST_TEST(refusal(python + "[[points]]\nname = \"a\"\n") == ": 'points.marks' is missing");
  BOOST_TEST(refusal(answers + "[values]\nw = \"x\"\n" + a_point) ==
             ":5: 'values.w': expected a number or { heed, field }, found a string");
  std::string hundred = python;
  for (int i = 0; i < 100; ++i) hundred += fmt::format("[[points]]\nname = \"p{}\"\nmarks = 1\n", i);
  BOOST_TEST(read(hundred).marks() == 100);
  BOOST_TEST(refusal(hundred + a_point) == ": expected tables [[points]], at most 100");
}

BOOST_AUTO_TEST_CASE(numbers_of_a_lab_have_ranges) {
  const auto with_marks = [&](const char* marks) {
    return refusal(python + "[[points]]\nname = \"a\"\nmarks = " + marks + "\n");
  };
  BOOST_TEST(with_marks("1000") == "no error");
  for (const char* marks : {"0", "-1", "1001"})
    BOOST_TEST(with_marks(marks) ==
               fmt::format(":4: points.marks is {}; expected a number above 0, at most 1000", marks));
  const auto with_slack = [&](const std::string& kind, const std::string& key, const char* slack) {
    return refusal(fmt::format("kind = \"{0}\"\n[{0}]\n{1}\nslack = {2}\n{3}", kind, key, slack, a_point));
  };
  for (const auto& [kind, key] : {std::pair("mechanism", "name = \"mine\""), {"personal", "task = \"write\""}}) {
    for (const char* slack : {"1", "1e6"}) BOOST_TEST(with_slack(kind, key, slack) == "no error");
    for (const char* slack : {"0.5", "-2"})
      BOOST_TEST(with_slack(kind, key, slack) ==
                 fmt::format(": {}.slack is {}; expected a number from 1 to 1000000", kind, slack));
  }
  for (const char* both : {"", "formula = \"1\"\nhash = \"ab\"\n"})
    BOOST_TEST(refusal(a_question + both) == ":4: a question needs a formula or a hash");
  const std::string hash = "hash = \"ab\"\n";
  for (const std::string& good :
       {formula + "tolerance = 0", formula + "tolerance = 0.5", hash + "digits = 1", hash + "digits = 15"})
    BOOST_TEST(refusal(a_question + good + "\n") == "no error", good);
  BOOST_TEST(refusal(a_question + hash + "tolerance = 0.5\n") ==
             ":4: points.tolerance is for a formula; a number with a hash has points.digits");
  BOOST_TEST(refusal(a_question + formula + "digits = 2\n") ==
             ":4: points.digits is for a hash; a formula has points.tolerance");
  for (const char* tolerance : {"-0.1", "1"})
    BOOST_TEST(refusal(a_question + formula + "tolerance = " + tolerance + "\n") ==
               fmt::format(":4: points.tolerance is {}; expected a number from 0 to 1, excluding 1", tolerance));
  for (const char* digits : {"0", "16"})
    BOOST_TEST(refusal(a_question + hash + "digits = " + digits + "\n") ==
               fmt::format(":4: points.digits is {}; expected 1 to 15", digits));
  for (const auto& [minutes, good] : {std::pair("0", false), {"0.5", true}, {"9999", true}, {"10000", false}}) {
    write_file(file(), fmt::format("title = \"One\"\nminutes = {}\n{}{}", minutes, python, a_point));
    BOOST_TEST(
        error_of([&] { load_lab(directory / "one"); }, file()) ==
        (good ? "no error" : fmt::format(": minutes is {}; expected a number above 0 and below 10000", minutes)));
  }
}

// A student's file is not trusted: the number and the length of its answers are limited.
BOOST_AUTO_TEST_CASE(answers_are_numbers_and_short_texts) {
  const std::string longest(1000, 'x');
  const auto found = read_answers("whole = 2\nhalf = 0.5\ntext = \"" + longest + "\"\n", "file");
  BOOST_TEST(found.size() == 3u);
  BOOST_TEST(std::get<double>(found.at("whole")) == 2);
  BOOST_TEST(std::get<double>(found.at("half")) == 0.5);
  BOOST_TEST(std::get<std::string>(found.at("text")) == longest);
  const auto refusal_of_answers = [](const std::string& text) {
    return error_of([&] { read_answers(text, "file"); }, "file");
  };
  const std::string expected = ": expected a number or a string of at most 1000 bytes, found ";
  BOOST_TEST(refusal_of_answers("a = 1\nb = \"" + longest + "x\"\n") == ":2: 'b'" + expected + "a longer string");
  BOOST_TEST(refusal_of_answers("a = 1\n\nb = true\n") == ":3: 'b'" + expected + "a boolean");
  BOOST_TEST(refusal_of_answers("a = 1\nb\n").starts_with(":2: "));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += fmt::format("a{} = {}\n", i, i);
  BOOST_TEST(read_answers(many, "file").size() == 1000u);
  BOOST_TEST(refusal_of_answers(many + "b = 1\n") == ": has more than 1000 answers");
}

BOOST_AUTO_TEST_CASE(questions_of_a_notebook) {
  const std::string path = directory / "questions.toml",
                    first = "[[questions]]\nid = \"1\"\nmarks = 2\nrubric = \"r\"\nanswer = \"a\"\n",
                    second = "[[questions]]\nid = \"x\"\nmarks = 0.5\nrubric = \"s\"\n";
  write_file(path, first + second + "answer = \"b\"\n");
  const std::vector<NotebookQuestion> questions = load_questions(path);
  BOOST_REQUIRE(questions.size() == 2u);
  BOOST_TEST(questions[0].id == "1");
  BOOST_TEST(questions[0].rubric == "r");
  BOOST_TEST(questions[1].marks == 0.5);
  BOOST_TEST(questions[1].answer == "b");
  const auto refusal_of_questions = [&](const std::string& text) {
    write_file(path, text);
    return error_of([&] { load_questions(path); }, path);
  };
  BOOST_TEST(refusal_of_questions(first + second) == ": 'questions.answer' is missing");
  BOOST_TEST(refusal_of_questions(first + "hint = \"h\"\n").starts_with(":6: unknown key 'questions.hint'"));
  BOOST_TEST(refusal_of_questions("other = 1\n" + first).starts_with(":1: unknown key 'other'"));
  BOOST_TEST(refusal_of_questions("") == ": expected tables [[questions]]");
}

BOOST_AUTO_TEST_CASE(names_of_labs_and_students_are_plain) {
  for (const char* name : {"a", "softmax-backward", "A_1.b", "7", "_x"}) BOOST_TEST(is_plain_name(name), name);
  BOOST_TEST(is_plain_name(std::string(100, 'a')));
  for (const char* name : {"", ".", "..", ".a", "-a", "a b", "a/b", "\xc3\xa9", "a\n"})
    BOOST_TEST(!is_plain_name(name), name);
  BOOST_TEST(!is_plain_name(std::string(101, 'a')));
}

BOOST_AUTO_TEST_SUITE_END()
