// Labs as students use them. A solution gets full marks and a stub gets none. This is tested here for one lab, and for
// the personal labs of three identities, or two hundred if HEED_LABS=all; tests/labs.sh tests it for all other labs.
#include "support/cli.h"
#include "support/command.h"

#include "heed/io/json.h"
#include "src/apps/grading/definition/definition.h"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <numeric>
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

/// A class graded with the repository's labs.
struct Submissions {
  TemporaryDirectory directory;

  void hand_in(const std::string& student, const std::string& file, const std::string& text) const {
    fs::create_directories(directory / ("in/" + student));
    write_file(directory / ("in/" + student + "/" + file), text);
  }
  /// Grades the submissions; returns the fields of each row of marks.csv: student, lab, marks, full marks, state and
  /// others.
  std::vector<std::vector<std::string>> grade(const std::string& labs = "notebooks/labs") const {
    const Finished run = heed_with({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", labs});
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

// Each of these submissions would pass a weaker judge: one that compares derivatives with the submission's own, wrong
// newton(), or one that uses default options only. A point's options replace the lab's.
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
  fs::copy("notebooks/labs", directory / "labs", fs::copy_options::recursive);
  const std::string description = directory / "labs/adder-attention/lab.toml", reference = "reference = \"adder\"\n";
  std::string lab = read_file(description);
  write_file(description,
             lab.insert(lab.find(reference) + reference.size(), "reference_options = { score_grad = \"sign\" }\n"));
  grade(directory / "labs");
  check_contains(feedback("constant", "newton-inverse"),
                 {"wrong  newton", "wrong  unrolled", "newton is not right yet"});
  check_contains(feedback("sign", "adder-attention"),
                 {"right  gradient q: ", "wrong  gradient q, score_grad=hardtanh: 0 of 1", "it is wrong in ",
                  "right  gradient k: ", "wrong  gradient k, score_grad=hardtanh: 0 of 1"});
}

// Gradients by finite differences are rejected, and so are separate paths for float and for `Counted`. Equivalent
// correct code is accepted.
BOOST_FIXTURE_TEST_CASE(gradients_are_derivatives, Submissions, *boost::unit_test::precondition(without_sanitizer)) {
  const std::string file = "softmax-backward.h", solution = read_file("notebooks/solutions/softmax-backward/" + file);
  const auto with = [&](const std::string& from, const std::string& to) {
    const std::size_t at = solution.find(from);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, from);
    return std::string(solution).replace(at, from.size(), to);
  };
  const std::string products = "      // 3.\n      kernels::gemm(transposed(A), dout[h]";
  // Code that, except with Counted, replaces the correct products by finite differences of the output.
  const std::string by_differences = R"(
      if constexpr (!std::is_same_v<T, Counted>) {
        std::vector<double> x[3];
        const Matrix<const T> operands[] = {in.q[h], in.k[h], in.v[h]};
        const Matrix<T> gradients[] = {to.q[h], to.k[h], to.v[h]};
        for (int o = 0; o < 3; ++o)
          for (Index i = 0; i < operands[o].rows; ++i)
            for (Index c = 0; c < operands[o].columns; ++c) x[o].push_back(operands[o](i, c));
        const auto g = [&] {
          double sum = 0;
          std::vector<double> p(M);
          for (Index i = 0; i < N; ++i) {
            double all = 0;
            for (Index j = 0; j < M; ++j) {
              double s = 0;
              for (Index c = 0; c < d; ++c) s += x[0][i * d + c] * x[1][j * d + c];
              all += p[j] = std::exp(s / std::sqrt(double(d)));
            }
            for (Index j = 0; j < M; ++j)
              for (Index c = 0; c < e; ++c) sum += p[j] / all * x[2][j * e + c] * double(dout[h](i, c));
          }
          return sum;
        };
        for (int o = 0; o < 3; ++o)
          for (Index i = 0; i < operands[o].rows; ++i)
            for (Index c = 0; c < operands[o].columns; ++c) {
              double& at = x[o][i * operands[o].columns + c];
              const double centre = at;
              at = centre + 1e-5;
              const double above = g();
              at = centre - 1e-5;
              const double below = g();
              at = centre;
              write(to.update, gradients[o](i, c), T((above - below) / 2e-5));
            }
        continue;
      }
)";
  hand_in("differences", file, with(products, by_differences + products));
  hand_in("onlydouble", file,
          with(products,
               "      if constexpr (std::is_same_v<T, float>) { for (Index j = 0; j < M; ++j) "
               "for (Index c = 0; c < e; ++c) write(to.update, to.v[h](j, c), T(0)); "
               "continue; }\n" +
                   products));
  // Equivalent code: loops for products, a different order of the sums and of the division.
  hand_in("loops", file,
          with("kernels::gemm(dout[h], transposed(in.v[h]), dA);",
               "for (Index i = 0; i < N; ++i)\n for (Index j = 0; j < M; ++j) {\n T sum = dout[h](i, e - 1) * "
               "in.v[h](j, e - 1);\n for (Index c = e - 1; c-- > 0;) sum += dout[h](i, c) * in.v[h](j, c);\n "
               "dA(i, j) = sum;\n }"));
  hand_in("order", file, with("A(i, j) * (dA(i, j) - inner) / root", "(dA(i, j) - inner) / root * A(i, j)"));
  hand_in("reverse", file,
          with("T inner = A(i, 0) * dA(i, 0);\n        for (Index j = 1; j < M; ++j) inner",
               "T inner = A(i, M - 1) * dA(i, M - 1);\n        for (Index j = M - 1; j-- > 0;) inner"));
  for (const auto& row : grade()) {
    const bool right = row[0] == "loops" || row[0] == "order" || row[0] == "reverse";
    if (right) BOOST_TEST(row[2] == "10", feedback(row[0], row[1]));
    if (row[0] == "differences") BOOST_TEST(row[2] == "2", feedback(row[0], row[1]));
    if (row[0] == "onlydouble") BOOST_TEST(row[2] == "2", feedback(row[0], row[1]));
  }
  check_contains(feedback("differences", "softmax-backward"), {"wrong  gradient q", "the exact derivative"});
  check_contains(feedback("onlydouble", "softmax-backward"), {"in float"});
}

// Judges of Python labs describe a wrong gradient.
BOOST_FIXTURE_TEST_CASE(python_diagnoses, Submissions, *boost::unit_test::precondition(without_sanitizer)) {
  const std::string solution = read_file("notebooks/solutions/tape/tape.py"),
                    right = "a.accumulate(times(dout, b.value))";
  const auto with = [&](const std::string& to) {
    const std::size_t at = solution.find(right);
    BOOST_REQUIRE(at != std::string::npos);
    return std::string(solution).replace(at, right.size(), to);
  };
  hand_in("sign", "tape.py", with("a.accumulate([[-x for x in row] for row in times(dout, b.value)])"));
  hand_in("factor", "tape.py", with(right + "\n        " + right));
  hand_in("nothing", "tape.py", with("pass"));
  grade();
  check_contains(feedback("sign", "tape"), {"the gradient of a is wrong in", "like the negative"});
  check_contains(feedback("factor", "tape"), {": 2 times what it should be"});
  check_contains(feedback("nothing", "tape"), {": all are 0"});
}

// Submissions may include only the stub's headers, and use no other function of heed.
BOOST_FIXTURE_TEST_CASE(answers_are_not_in_the_headers, Submissions,
                        *boost::unit_test::precondition(without_sanitizer)) {
  const std::string solution = read_file("notebooks/solutions/sima/sima.h");
  hand_in("header", "sima.h", "#include \"heed/kernels/sums/normalize.h\"\n" + solution);
  hand_in("declares", "sima.h",
          solution +
              "\nnamespace heed::kernels { void softmax_rows(Matrix<float>, Matrix<float>); }\n"
              "namespace { void (*const volatile used)(heed::Matrix<float>, heed::Matrix<float>) = "
              "&heed::kernels::softmax_rows; }\n");
  hand_in("pastes", "aft-simple.h",
          "#define J(a, b) a##b\n" + read_file("notebooks/solutions/aft-simple/aft-simple.h"));
  hand_in("banner", "aft-simple.h",
          "//######## mine\n" + read_file("notebooks/solutions/aft-simple/aft-simple.h"));  // no macro
  for (const auto& row : grade())
    if (row[4] != "missing") BOOST_TEST(row[4] == (row[0] == "banner" ? "graded" : "refused"), row[0] << " " << row[1]);
  check_contains(feedback("header", "sima"),
                 {"sima.h:1: heed/kernels/sums/normalize.h: No such file", "only the includes of the file handed out"});
  check_contains(feedback("declares", "sima"), {"it uses 'softmax_rows', which is not declared by the includes"});
  check_contains(feedback("pastes", "aft-simple"), {"##"});
}

BOOST_FIXTURE_TEST_CASE(personal_labs_can_be_solved, Submissions, *boost::unit_test::precondition(without_sanitizer)) {
  // Together, the mechanisms of these three students cover both orders of the products, both divisors, all norms, all
  // features and both gates.
  std::vector<int> numbers{0, 2, 23};
  if (whole_class()) numbers.resize(200), std::iota(numbers.begin(), numbers.end(), 0);
  for (const int number : numbers) {
    const std::string student = "s" + std::to_string(1000 + number);
    const Definition write = definition_of(student, PersonalTask::write),
                     repair = definition_of(student, PersonalTask::repair);
    hand_in(student, "own-mechanism.h", header_of(write, "my_mechanism"));
    hand_in(student, "own-bugs.h", header_of(repair, "my_mechanism"));
  }
  // Each planted bug costs its point.
  for (int i = 0; i < (whole_class() ? 50 : 0); ++i) {
    const std::string student = "stub" + std::to_string(i);
    hand_in(student, "own-bugs.h",
            header_of(definition_of(student, PersonalTask::repair), "my_mechanism", bugs_of(student)));
  }
  // Stubs get no marks. Another student's solution gets none either, except for its cost if both students' mechanisms
  // have the same cost.
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
  BOOST_TEST(json.at("kind").text() == "mechanism");
  for (const Json& point : json.at("points").items()) {
    BOOST_TEST(point.at("says").items().at(0).text() == "not yet");
    BOOST_TEST(point.at("says").items().size() == 1u);  // no hints before the lab is started
  }
  check_refusal({"lab", "check", "softmax-backwards"}, {"unknown lab 'softmax-backwards'", "did you mean"});
  check_refusal({"lab", "check", "own-bugs"}, {"--student"});
  check_refusal({"lab", "check", "softmax-backward", "--file", "/nowhere.h"}, {"/nowhere.h"});
}

// The compiler is a script that fails like g++ when the CPU limit ends cc1plus, with a line that has no position.
BOOST_AUTO_TEST_CASE(a_compilation_that_takes_too_long, *boost::unit_test::precondition(without_sanitizer)) {
  const TemporaryDirectory directory;
  const std::string script = directory / "compiler";
  write_file(script,
             "#!/bin/sh\necho 'g++: internal compiler error: CPU time limit exceeded signal terminated program "
             "cc1plus' >&2\nexit 4\n");
  fs::permissions(script, fs::perms::owner_all);
  const EnvironmentVariable compiler("CXX", script);
  const Finished run = heed_with({"lab", "check", "softmax-backward"});
  BOOST_TEST(run.status == 1, run.err);
  check_contains(run.out, {"softmax-backward.h: the compiler was stopped: it uses more than 60 s of CPU time\n"});
}

// A decimal comma and a word without quotes are rejected; the message shows the right form.
BOOST_AUTO_TEST_CASE(answers_in_another_form) {
  const TemporaryDirectory directory;
  for (const char* const line : {"loss = 2,303\n", "word = linear\n"}) {
    write_file(directory / "a.toml", line);
    const Finished run = heed_with({"lab", "check", "train-and-look", "--file", directory / "a.toml"});
    BOOST_TEST(run.status == 1);
    check_contains(run.out, {"train-and-look.toml:1: ", "expected lines such as `loss = 2.303` (a decimal point)"});
  }
}

BOOST_AUTO_TEST_CASE(hints_one_by_one) {
  check_contains(output_of({"lab", "hint", "sima"}), {"Normalise first", "lab hint sima 2"});
  BOOST_TEST(output_of({"lab", "hint", "sima", "3"}).find("next") == std::string::npos);
  check_refusal({"lab", "hint", "sima", "4"}, {"sima has 3 hints"});
  // In a command to paste, the program's path is in quotes if it has spaces.
  const TemporaryDirectory directory;
  const std::string program = "'" + (directory / "my heed").string() + "'";
  BOOST_TEST(run_command("ln -s " + heed_program() + " " + program).status == 0);
  check_contains(run_command(program + " lab hint sima").output, {": " + program + " lab hint sima 2\n"});
}

BOOST_AUTO_TEST_CASE(a_lab_of_ones_own) {
  const TemporaryDirectory directory;
  const std::string place = directory.path();
  check_contains(output_of({"lab", "new", "own-mechanism", "--student", "s1", "-o", place}), {"own-mechanism.h"});
  check_contains(read_file(directory / "own-mechanism/own-mechanism.h"), {"// ", "out", "fail(\"not yet\")"});
  check_refusal({"lab", "new", "own-mechanism", "--student", "s2", "-o", place}, {"already exists"});
  check_refusal({"lab", "new", "own-mechanism", "-o", place}, {"--student"});
  check_refusal({"lab", "new", "own-bugs", "--student", " ", "-o", place}, {"--student ' ': is blank"});
  for (const char* const command : {"new", "check"})
    check_refusal({"lab", command, "sima", "--student", "s1"}, {"--student is for personal labs; sima is none"});
  output_of({"lab", "new", "own-bugs", "--student", "s1", "-o", place});
  output_of({"lab", "new", "softmax-backward", "-o", place});
  output_of({"lab", "new", "newton-inverse", "-o", place});
  for (const std::string file : {"softmax-backward/softmax-backward.h", "newton-inverse/newton-inverse.py",
                                 "newton-inverse/lab.toml", "newton-inverse/judge.py", "newton-inverse/calls.py"})
    BOOST_TEST(read_file(directory / file) == read_file("notebooks/labs/" + file), file);
  BOOST_TEST(read_file(directory / "own-bugs/student.txt") == "s1\n");
  // In a command to paste, a path with spaces is in quotes.
  check_contains(output_of({"lab", "new", "own-bugs", "--student", "s1", "-o", place + "/my labs"}),
                 {" lab check '" + place + "/my labs/own-bugs'\n"});
  write_file(directory / "zero.h", std::string(1, '\0'));
  const Finished check = heed_with({"lab", "check", directory / "own-bugs", "--file", directory / "zero.h", "--json"});
  BOOST_TEST(check.status == 1);
  const Json json = Json::parse(check.out);
  BOOST_TEST(json.at("kind").text() == "personal");
  BOOST_TEST(json.at("problem").text() == "it is not a text file: it has a zero byte");
}

// Unchanged files of personal labs, which differ little, are not flagged as copies.
BOOST_FIXTURE_TEST_CASE(files_of_personal_labs_are_no_copies, Submissions,
                        *boost::unit_test::precondition(without_sanitizer)) {
  for (const std::string student : {"s1", "s2"}) {
    hand_in(student, "own-mechanism.h", stub_of(definition_of(student, PersonalTask::write), "my_mechanism"));
    hand_in(student, "own-bugs.h",
            header_of(definition_of(student, PersonalTask::repair), "my_mechanism", bugs_of(student)));
  }
  BOOST_TEST(grade().size() == 4u);
  BOOST_TEST(read_file(directory / "marks.csv").find("alike") == std::string::npos);
}

// An editor may save the student's identity with a byte order mark, CR LF, capitals or spaces.
BOOST_AUTO_TEST_CASE(an_identity_in_another_form, *boost::unit_test::precondition(without_sanitizer)) {
  const TemporaryDirectory directory;
  output_of({"lab", "new", "own-bugs", "--student", "s1", "-o", directory.path()});
  write_file(directory / "own-bugs/own-bugs.h", header_of(definition_of("s1", PersonalTask::repair), "my_mechanism"));
  write_file(directory / "own-bugs/student.txt", "\xef\xbb\xbfS1 \r\n");
  BOOST_TEST(heed_with({"lab", "check", directory / "own-bugs"}).status == 0);
  write_file(directory / "own-bugs/student.txt", " \r\n");
  check_refusal({"lab", "check", directory / "own-bugs"}, {"student.txt: is empty; expected the student's identity"});
}

BOOST_AUTO_TEST_CASE(identities_with_combining_marks) {
  const TemporaryDirectory directory;
  const std::string decomposed = "jose\u0301";
  const std::vector<std::string> problem{"identity 'jose\u0301': has the combining mark U+0301", "composed letters"};
  check_refusal({"lab", "new", "own-mechanism", "--student", decomposed, "-o", directory.path()}, problem);
  BOOST_TEST(!fs::exists(directory / "own-mechanism"));
  output_of({"lab", "new", "own-mechanism", "--student", "jos\u00e9", "-o", directory.path()});
  check_refusal({"lab", "check", directory / "own-mechanism", "--student", decomposed}, problem);
  write_file(directory / "own-mechanism/student.txt", decomposed + "\n");
  check_refusal({"lab", "check", directory / "own-mechanism"}, problem);
}

BOOST_AUTO_TEST_CASE(what_students_get) {
  const TemporaryDirectory directory;
  const std::string file = directory / "labs.tar.gz";
  output_of({"lab", "bundle", "-o", file});
  const CommandResult listed = run_command("tar tzf '" + file + "'");
  check_contains(listed.output, {"notebooks/labs/softmax-backward/softmax-backward.h", "lab.toml"});
  BOOST_TEST(listed.output.find("solution") == std::string::npos);
  check_contains(run_command("tar xzOf '" + file + "' notebooks/README.md").output,
                 {"## Install", "## Hand in", "heed lab hint"});  // the students' page, not the instructor's
  output_of({"lab", "bundle", "-o", directory / "all"});
  BOOST_TEST(fs::exists(directory / "all/notebooks/labs/own-bugs/lab.toml"));
  BOOST_TEST(!fs::exists(directory / "all/notebooks/solutions"));
  check_refusal({"lab", "bundle", "-o", directory / "all"}, {"already exists"});
  BOOST_TEST(fs::exists(directory / "all/models/energy/int8-45nm.toml"));  // notebooks 7 and 10 read it
  BOOST_TEST(fs::exists(directory / "all/docs/README.md"));                // docs/commands.md refers to it
  int links = 0;
  for (const char* const folder : {"all/notebooks", "all/docs"})
    for (const fs::directory_entry& entry : fs::directory_iterator(directory / folder)) {
      if (entry.path().extension() != ".ipynb" && entry.path().extension() != ".md") continue;
      static const std::regex link("\\]\\((?!https?:)([^)#, ]+\\.[^)#, ]+)[)#]");
      const std::string text = read_file(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++links)
        BOOST_TEST(fs::exists(entry.path().parent_path() / (*at)[1].str()), entry.path() << ": " << (*at)[0]);
    }
  BOOST_TEST(links > 20);
}

// A bundle of another course: output of notebooks is excluded, linked files are included.
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
        "notebooks/labs/x/README.md", "models/README.md", "models/small.toml", "src/linked.cpp", "src/other.cpp",
        "src/of_page.h"})
    write(file, "");
  write("notebooks/for-students.md", "for students");
  // Installed files may be read-only; the copies are not.
  const std::pair<const char*, const char*> read_only[] = {{"notebooks/lab.py", "notebooks/lab.py"},
                                                           {"src/linked.cpp", "src/linked.cpp"},
                                                           {"notebooks/for-students.md", "notebooks/README.md"}};
  for (const auto& [file, copy] : read_only) fs::permissions(directory / file, fs::perms::owner_read);
  const std::string page = "see [d](../src/of_page.h)";
  write("docs/page.md", page);
  fs::create_directory_symlink(directory / "src", directory / "notebooks/labs/linked");
  const CommandResult bundle = run_command(heed_program() + " lab bundle -o out", directory.path());
  BOOST_TEST(bundle.status == 0);
  BOOST_TEST(is_line_with(bundle.errors, "notebooks/labs/linked: left out: it is a symbolic link"), bundle.errors);
  fs::remove(directory / "notebooks/labs/linked");
  // Other archives are not written; a directory of such a name would be taken for one.
  for (const char* const name : {"out.zip", "out.tgz"})
    BOOST_TEST(run_command(heed_program() + " lab bundle -o " + name, directory.path()).status == 2);
  // An empty name would mean the current directory.
  BOOST_TEST(run_command(heed_program() + " lab bundle -o ''", directory.path()).status == 2);
  // A bundle must not be in a directory that it copies, since it would contain itself.
  for (const auto& [from, place, copied] : {std::tuple(".", "docs/new", "docs"),
                                            {".", "notebooks/t.tar.gz", "notebooks"},
                                            {"notebooks", "new", "notebooks"}}) {
    const CommandResult inside = run_command(heed_program() + " lab bundle -o " + place, directory / from);
    BOOST_TEST(inside.status == 2);
    BOOST_TEST(is_line_with(inside.errors, fmt::format("heed: -o '{}': lies in {}, which is copied; ", place,
                                                       fs::canonical(directory / copied).string())),
               inside.errors);
    BOOST_TEST(!fs::exists(directory / from / place));
  }
  const CommandResult without =
      run_command("PATH=/none " + heed_program() + " lab bundle -o t.tar.gz", directory.path());
  BOOST_TEST(without.status == 2);
  BOOST_TEST(is_line_with(without.errors, "'tar' cannot be started: No such file or directory; install it"));
  std::set<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory / "out"))
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), directory / "out"));
  BOOST_TEST(files == (std::set<std::string>{"docs/page.md", "models/README.md", "models/small.toml",
                                             "notebooks/1.ipynb", "notebooks/lab.py", "notebooks/labs/x/x.h",
                                             "notebooks/README.md", "src/linked.cpp", "src/of_page.h"}),
             boost::test_tools::per_element());
  BOOST_TEST(read_file(directory / "out/docs/page.md") == page);
  BOOST_TEST(read_file(directory / "out/notebooks/README.md") == "for students");
  for (const auto& [file, copy] : read_only)
    BOOST_TEST(((fs::status(directory / "out" / copy).permissions() & fs::perms::owner_write) != fs::perms::none),
               copy);
}

BOOST_AUTO_TEST_SUITE_END()
