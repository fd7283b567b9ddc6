// Numbers that heed grade writes about a class: marks, totals, days late, averages, percentages of similarity.
#include "support/cli.h"
#include "support/command.h"
#include "support/temporary.h"

#include "heed/io/json.h"
#include "src/apps/grading/marks/answer_marks.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// Time zone of the program's runs.
struct TimeZone : EnvironmentVariable {
  explicit TimeZone(const char* zone) : EnvironmentVariable("TZ", zone) {}
};

/// A class's directory with labs and submissions.
struct Course {
  TemporaryDirectory directory;

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((directory / file).parent_path());
    write_file(directory / file, text);
  }
  std::string text(const std::string& file) const { return read_file(directory / file); }

  /// Hands in a file that was last changed at `time`, in seconds since 1970.
  void hand_in(const std::string& file, const std::string& text, std::time_t time = 1'000'000'000) const {
    write("in/" + file, text);
    const timespec times[2] = {{time, 0}, {time, 0}};
    BOOST_TEST(utimensat(AT_FDCWD, (directory / ("in/" + file)).c_str(), times, 0) == 0);
  }
  Finished grade(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs",
                               "--jobs", "1"});
    const Finished run = heed_with(more);
    BOOST_TEST(run.status == 0, run.err);
    return run;
  }
};

/// Two labs with numeric answers, and five students: one has all answers right, one has one wrong, and three have no
/// marks, since each lacks a lab and has a wrong or a refused file for the other. Lab alpha is due at the end of 30
/// November 2026, 1796083200 in UTC; lab beta at 18:00, 1796061600.
struct Class : Course {
  static constexpr std::time_t end = 1'796'083'200, evening = 1'796'061'600, day = 86'400;

  Class() {
    write("labs/alpha/lab.toml",
          "title = \"Twice\"\nkind = \"answers\"\nminutes = 1\n[values]\nN = 6\n"
          "[[points]]\nname = \"twice\"\nquestion = \"?\"\nmarks = 2\nformula = \"2 * N\"\n"
          "[[points]]\nname = \"half\"\nquestion = \"?\"\nmarks = 0.5\nformula = \"N / 2\"\n");
    write("labs/beta/lab.toml",
          "title = \"Thrice\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"thrice\"\nquestion = \"?\"\n"
          "marks = 3\nformula = \"18\"\nhint = \"Add.\"\n");
    hand_in("ann/alpha.toml", "twice = 12\nhalf = 3\n", end);
    hand_in("ann/beta.toml", "thrice = 18\n", evening);
    hand_in("bob/alpha.toml", "twice = 13\nhalf = 3\n", end + day);
    hand_in("bob/beta.toml", "thrice = 18\n", evening + day + 1);
    hand_in("cid/beta.toml", "thrice = 17\n");
    hand_in("cid/notes.txt", "none\n");
    hand_in("dan/alpha.toml", "twice = \"many\"\n", end + 1);
    hand_in("eve/beta.toml", "thrice = 18,0\n", evening - 1);
    write("due.csv", "beta,2026-11-30 18:00\n*,2026-11-30\n");
  }
};

std::string histogram(const std::vector<int>& counts) {
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    const int count = counts[static_cast<std::size_t>(i)];
    lines += fmt::format("  {:3} to {:3} %  {:3} {}\n", 10 * i, 10 * (i + 1), count, std::string(size_t(count), '#'));
  }
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_gradebook)

BOOST_FIXTURE_TEST_CASE(marks_and_days_of_a_class_by_hand, Class) {
  const TimeZone utc("UTC0");
  write("roster.csv",
        "Student,ID,beta (7),alpha (6)\n    Points Possible,,,\nann,1\nbob,2,9,9\ncid,3,9,9\nzoe,4,5,6\n");
  const Finished run = grade({"--due", directory / "due.csv", "--roster", directory / "roster.csv"});
  check_contains(run.out, {"marks.csv: 5 students, 7 submissions; feedback in "});
  check_contains(run.err, {"[1/7] ann alpha: 2.5 of 2.5 marks, ", "[3/7] bob alpha: 0.5 of 2.5 marks, ",
                           "[7/7] eve beta: 0 of 3 marks\n", "heed: dan: does not match exactly one row"});
  BOOST_TEST(text("marks.csv") ==
             "student,lab,marks,of,state,points,flags\n"
             "ann,alpha,2.5,2.5,graded,twice 2/2; half 0.5/0.5,\n"
             "ann,beta,3,3,graded,thrice 3/3,\n"
             "bob,alpha,0.5,2.5,graded,twice 0/2; half 0.5/0.5,\n"
             "bob,beta,3,3,graded,thrice 3/3,\n"
             "cid,alpha,0,2.5,missing,not recognised: cid/notes.txt,\n"
             "cid,beta,0,3,graded,thrice 0/3,\n"
             "dan,alpha,0,2.5,graded,twice 0/2; half 0/0.5,\n"
             "dan,beta,0,3,missing,,\n"
             "eve,alpha,0,2.5,missing,,\n"
             "eve,beta,0,3,refused,thrice 0/3,\n");
  // A file handed in at the due time is not late; one handed in a second later is one day late, and one handed in a day
  // after that is two days late.
  BOOST_TEST(text("marks.gradebook.csv") ==
             "student,alpha,beta,total,of,late_days\nann,2.5,3,5.5,5.5,0\nbob,0.5,3,3.5,5.5,3\ncid,,0,0,5.5,0\n"
             "dan,0,,0,5.5,1\neve,,0,0,5.5,0\n");
  BOOST_TEST(text("marks.roster.csv") ==
             "Student,ID,beta (7),alpha (6)\n    Points Possible,,3,2.5\nann,1,3,2.5\nbob,2,3,0.5\ncid,3,0,9\n"
             "zoe,4,5,6\n");
  BOOST_TEST(text("marks.summary.txt") == "alpha: 3 of 5 graded, 1.0 of 2.5 marks on average\n" +
                                              histogram({1, 0, 1, 0, 0, 0, 0, 0, 0, 1}) +
                                              "  missed by 2: twice\n  missed by 1: half\n\n"
                                              "beta: 4 of 5 graded, 1.5 of 3 marks on average\n" +
                                              histogram({2, 0, 0, 0, 0, 0, 0, 0, 0, 2}) + "  missed by 2: thrice\n\n");
  BOOST_TEST(text("marks.feedback/bob/feedback.txt") ==
             "bob: 3.5 of 5.5 marks\n\n----\n\nalpha: Twice\n0.5 of 2.5 marks\n\nwrong  twice: 0 of 2\n"
             "       it is wrong\n\nright  half: 0.5 of 0.5\n\nhanded in 1 day late\n\n----\n\n"
             "beta: Thrice\n3 of 3 marks\n\nright  thrice: 3 of 3\n\nhanded in 2 days late\n");
  BOOST_TEST(text("marks.feedback/cid/feedback.txt") ==
             "cid: 0 of 5.5 marks\n\n----\n\nalpha: missing; not recognised: cid/notes.txt\n\n----\n\n"
             "beta: Thrice\n0 of 3 marks\n\nwrong  thrice: 0 of 3\n       it is wrong\n       Add.\n");
  const Json json = Json::parse(text("marks.feedback/bob/alpha.json"));
  BOOST_TEST(json.at("marks").number() == 0.5);
  BOOST_TEST(json.at("of").number() == 2.5);
  const Json& twice = json.at("points").items()[0];
  BOOST_TEST(twice.at("marks").number() == 0);
  BOOST_TEST(twice.at("of").number() == 2);
  // A single lab is graded.
  grade({"--lab", "beta"});
  BOOST_TEST(text("marks.gradebook.csv") ==
             "student,beta,total,of,late_days\nann,3,3,3,0\nbob,3,3,3,0\ncid,0,0,3,0\ndan,,0,3,0\neve,0,0,3,0\n");
}

// Noon and midnight of a summer's day in central Europe are two hours earlier in UTC: 10:00 on 1 July 2026 is
// 1782900000.
BOOST_FIXTURE_TEST_CASE(due_dates_are_in_local_time, Class) {
  const TimeZone europe("CET-1CEST,M3.5.0,M10.5.0/3");
  constexpr std::time_t noon = 1'782'900'000;
  write("due.csv", "alpha,2026-07-01 12:00\nbeta,2026-07-01\n");
  hand_in("ann/alpha.toml", "twice = 12\nhalf = 3\n", noon);
  hand_in("ann/beta.toml", "thrice = 18\n", noon + day / 2);
  hand_in("bob/alpha.toml", "twice = 13\nhalf = 3\n", noon + 1);
  hand_in("bob/beta.toml", "thrice = 18\n", noon + day / 2 + 1);
  hand_in("dan/alpha.toml", "twice = \"many\"\n", noon + 10 * day);
  hand_in("eve/beta.toml", "thrice = 18,0\n", noon - 1);
  grade({"--due", directory / "due.csv"});
  check_contains(text("marks.gradebook.csv"), {"\nann,2.5,3,5.5,5.5,0\n", "\nbob,0.5,3,3.5,5.5,2\n",
                                               "\ncid,,0,0,5.5,0\n", "\ndan,0,,0,5.5,10\n", "\neve,,0,0,5.5,0\n"});
}

// A late day ends at the due time on the local clock, even if the day has 23 or 25 hours. 18:00 on 29 March
// 2026 is 1774800000, on 25 October 1792947600.
BOOST_FIXTURE_TEST_CASE(late_days_across_changes_of_the_clock, Class) {
  const TimeZone europe("CET-1CEST,M3.5.0,M10.5.0/3");
  constexpr std::time_t spring = 1'774'800'000, autumn = 1'792'947'600;
  const auto days = [&](const std::string& due, std::time_t time) {
    write("due.csv", "beta," + due + "\n");
    hand_in("ann/beta.toml", "thrice = 18\n", time);
    grade({"--lab", "beta", "--due", directory / "due.csv"});
    const std::string book = text("marks.gradebook.csv");
    const std::size_t at = book.find("\nann,3,3,3,");
    BOOST_REQUIRE(at != std::string::npos);
    return book.substr(at + 11, book.find('\n', at + 11) - at - 11);
  };
  BOOST_TEST(days("2026-03-28 18:00", spring) == "1");
  BOOST_TEST(days("2026-03-28 18:00", spring + 1) == "2");
  BOOST_TEST(days("2026-03-28 18:00", spring - 23 * 3600) == "0");
  BOOST_TEST(days("2026-03-28 18:00", spring - 23 * 3600 + 1) == "1");
  BOOST_TEST(days("2026-10-24 18:00", autumn) == "1");
  BOOST_TEST(days("2026-10-24 18:00", autumn + 1) == "2");
  BOOST_TEST(days("2026-10-24 18:00", autumn - 25 * 3600) == "0");
  BOOST_TEST(days("2026-10-24", autumn + 6 * 3600) == "1");  // midnight, one day after the due time
  BOOST_TEST(days("2026-10-24", autumn + 6 * 3600 + 1) == "2");
}

// A file in an archive is as late as the archive, whose members may have any time.
BOOST_FIXTURE_TEST_CASE(late_days_of_archives, Class) {
  const TimeZone utc("UTC0");
  write("pack/beta.toml", "thrice = 18\n");
  for (const auto& [student, time] : {std::pair("fay", evening), {"gus", evening + 1}}) {
    const std::string archive = directory / (std::string("in/") + student + ".zip");
    BOOST_TEST(run_command("/usr/bin/python3 -m zipfile -c '" + archive + "' beta.toml", directory / "pack").status ==
               0);
    hand_in(student + std::string(".zip"), read_file(archive), time);
  }
  grade({"--due", directory / "due.csv"});
  check_contains(text("marks.gradebook.csv"), {"\nfay,,3,3,5.5,0\n", "\ngus,,3,3,5.5,1\n"});
}

// Every line is checked, even for a lab that is not graded: if one is wrong, nothing is written.
BOOST_FIXTURE_TEST_CASE(wrong_lines_of_due_dates, Class) {
  const auto refuses = [&](const std::string& due, const std::vector<std::string>& pieces) {
    write("due.csv", "beta,2026-11-30\n" + due + "\n");
    check_refusal({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs", "--lab",
                   "beta", "--due", directory / "due.csv"},
                  pieces);
    BOOST_TEST(!std::filesystem::exists(directory / "marks.feedback"));
  };
  refuses("aplha,2026-11-30", {"--due: unknown lab 'aplha'; did you mean 'alpha'?"});
  refuses("alpha,2026-11-30,18:00",
          {"--due: the line of alpha has 3 fields; expected two, such as alpha,2026-11-30 18:00"});
  refuses("alpha,2026-11-30\nbeta,2026-12-01", {"--due: beta has two lines; expected one"});
  refuses("*,2026-11-30\n*,2026-11-30", {"--due: * has two lines; expected one"});
  for (const char* const date :
       {"2026-02-31", "2026-02-29 12:00", "26-11-30", "0026-11-30", "2026-13-01", "2026-11-30 24:30", "tomorrow", ""})
    for (const char* const lab : {"alpha", "*"})
      refuses(std::string(lab) + "," + date,
              {fmt::format("--due: '{}' for {} is not a date; expected the form 2026-11-30", date, lab)});
  write("due.csv", "\n");
  check_refusal({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs", "--due",
                 directory / "due.csv"},
                {"due.csv: has no due dates; expected lines LAB,2026-11-30 18:00"});
  write("due.csv", "*,2028-02-29\nalpha,2026-12-31\n");
  grade({"--due", directory / "due.csv"});
}

// heed lab check gives a single file the same marks as heed grade.
BOOST_FIXTURE_TEST_CASE(a_check_gives_the_same_marks, Class) {
  const auto check = [&](const std::string& student) {
    return heed_with(
        {"lab", "check", directory / "labs/alpha", "--file", directory / ("in/" + student + "/alpha.toml")});
  };
  BOOST_TEST(check("ann").status == 0);
  const Json json = Json::parse(
      output_of({"lab", "check", directory / "labs/alpha", "--file", directory / "in/ann/alpha.toml", "--json"}));
  for (const auto& [key, value] : {std::pair("lab", "alpha"), {"title", "Twice"}, {"kind", "answers"}})
    BOOST_TEST(json.at(key).text() == value, key);
  check_contains(check("ann").out, {"alpha: Twice\n2.5 of 2.5 marks\n\nright  twice: 2 of 2\n"});
  BOOST_TEST(check("bob").status == 1);
  check_contains(check("bob").out, {"0.5 of 2.5 marks\n\nwrong  twice: 0 of 2\n"});
  check_contains(check("dan").out, {"wrong  twice: 0 of 2\n       it is a string; expected a number\n",
                                    "wrong  half: 0 of 0.5\n       there is no answer\n"});
}

// The hash from `heed lab hash` depends on the lab, the point and the digits. An answer rounded to these digits is
// right.
BOOST_FIXTURE_TEST_CASE(answers_are_hidden_by_the_program, Course) {
  const auto lab = [&](const std::string& word, const std::string& number) {
    write("gamma/lab.toml",
          "title = \"Hidden\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"word\"\nquestion = \"?\"\n"
          "marks = 1\n" +
              word + "[[points]]\nname = \"number\"\nquestion = \"?\"\nmarks = 1\ndigits = 2\n" + number);
  };
  lab("hash = \"0\"\n", "hash = \"0\"\n");
  const std::string word = output_of({"lab", "hash", directory / "gamma", "word", "Matrix product"}),
                    number = output_of({"lab", "hash", directory / "gamma", "number", "0.03456"});
  BOOST_TEST(output_of({"lab", "hash", directory / "gamma", "number", "0.03456", "--digits", "2"}) == number);
  BOOST_TEST(word == "hash = \"" + answer_hash("gamma", "word", std::string("matrixproduct"), 3) + "\"\n");
  BOOST_TEST(number == "hash = \"" + answer_hash("gamma", "number", 0.035, 2) + "\"\n");
  lab(word, number);
  write("gamma.toml", "word = \"matrix product\"\nnumber = 0.035\n");
  BOOST_TEST(heed_with({"lab", "check", directory / "gamma", "--file", directory / "gamma.toml"}).status == 0);
  // A number has the same hash however it is written; a word may begin with a number.
  for (const char* const same : {"3.456e-2", "0.034560", "+0.035"})
    BOOST_TEST(output_of({"lab", "hash", directory / "gamma", "number", same, "--digits", "2"}) == number, same);
  for (const std::string answer : {"3 heads", "2x", "1e3 steps", "infinite", "nano"})
    BOOST_TEST(output_of({"lab", "hash", directory / "gamma", "word", answer}) ==
                   "hash = \"" + answer_hash("gamma", "word", answer, 3) + "\"\n",
               answer);
  // Numbers that are not finite are words.
  lab(word, output_of({"lab", "hash", directory / "gamma", "number", "inf", "--digits", "2"}));
  write("gamma.toml", "word = \"matrix product\"\nnumber = inf\n");
  BOOST_TEST(heed_with({"lab", "check", directory / "gamma", "--file", directory / "gamma.toml"}).status == 0);
  lab(word, number);
  write("gamma.toml", "word = \"matrix product\"\nnumber = 0.039\n");
  BOOST_TEST(heed_with({"lab", "check", directory / "gamma", "--file", directory / "gamma.toml"}).status == 1);
}

// Editors save text as UTF-8 or UTF-16, with or without a byte order mark, or in Latin-1.
BOOST_FIXTURE_TEST_CASE(answers_in_other_encodings, Course) {
  const auto right = [&](const std::string& answer, const std::string& file) {
    write("gamma/lab.toml",
          "title = \"Hidden\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"word\"\nquestion = \"?\"\n"
          "marks = 1\nhash = \"" +
              answer_hash("gamma", "word", answer, 3) + "\"\n");
    write("gamma.toml", file);
    const Finished run = heed_with({"lab", "check", directory / "gamma", "--file", directory / "gamma.toml"});
    BOOST_TEST(run.status == 0, run.out);
  };
  const std::string answer = "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";  // characters of two, three and four bytes
  right(answer, "word = \"" + answer + "\"\r\n");
  right(answer, "\xef\xbb\xbfword = \"" + answer + "\"\n");
  for (const bool big_endian : {false, true})
    for (const bool mark : {false, true}) {
      std::string bytes;
      for (const char16_t unit : std::u16string(mark ? u"\ufeff" : u"") + u"word = \"caf\u00e9 \u20ac \U0001f600\"\n") {
        const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 255);
        bytes += big_endian ? std::string{high, low} : std::string{low, high};
      }
      right(answer, bytes);
    }
  right("caf\xc3\xa9", "word = \"caf\xe9\"\n");
  right(answer, "# a line that ends as on old systems\rword = \"" + answer + "\"\r");
}

// C++ submissions are compared without comments, names, numbers and the text of strings. The forbidden word `never`
// ends the grading before anything is compiled. Flags name unusual constructs outside of comments and strings.
BOOST_FIXTURE_TEST_CASE(copies_in_cpp, Course) {
  write("labs/word/lab.toml",
        "title = \"Word\"\nkind = \"mechanism\"\nminutes = 1\n[mechanism]\nname = \"word\"\n"
        "reference = \"softmax\"\nforbidden = [\"never\"]\n[[points]]\nname = \"output\"\nmarks = 1\n");
  write("labs/word/word.h", "// Handed out.\n");
  hand_in("ann/word.h",
          "never;\n// Sums.\nvoid f() {\n  for (int i = 0; i < n; ++i) {\n    total = total + w[i];\n"
          "    print(\"a;b\");\n  }\n  if (total != 3) { best = max(total, best); return; }\n}\n");
  hand_in("bob/word.h",
          "never;\nvoid g() {  /* mine; { */\n  for (int k = 7; m > k; ++k) {\n    s += v[k];  // in place;\n"
          "    print(\"\");\n  }\n  if (s > 4) { top = max(s, top); return; }\n}\n");
  hand_in("cid/word.h",
          "never;\nvoid h() {\n  while (a[0] > 0) a[1] = a[0] / 2;\n  x = y * z - q(1, 2, 3);\n  c = d ? e : f;\n"
          "  do { u = u / v / w; } while (u);\n  return r(a, b, c, d, e);\n}\n");
  hand_in("dan/word.h",
          "never;\n#pragma GCC optimize\nif constexpr (x) long double y = 1;\ntemplate <> int z;\nwrite(3, y);\n");
  hand_in("eve/word.h",
          "#pragma once\nnever;  // fork\nif (x) long long y = \"system\";  /* kill */\ntemplate <int> int z;\n"
          "write(update, 3);\n");
  grade();
  check_contains(text("marks.csv"),
                 {"\nann,word,0,1,refused,output 0/1,100 % alike: bob\n",
                  "\nbob,word,0,1,refused,output 0/1,100 % alike: ann\n", "\ncid,word,0,1,refused,output 0/1,\n",
                  "\ndan,word,0,1,refused,output 0/1,\"uses if constexpr, long double, pragma, template <>, write\"\n",
                  "\neve,word,0,1,refused,output 0/1,\n"});
}

// Besides the line handed out, submissions consist of statements of five tokens each. Out of 20 statements, a and b
// share 18, b and c 19, and a and c 17: 90, 95 and 85 %. Equal submissions are flagged if they have at least 40 tokens.
BOOST_FIXTURE_TEST_CASE(similarity_by_hand, Course) {
  const std::string handed_out = "def f(x): return x\n";
  write("labs/sim/lab.toml",
        "title = \"Similar\"\nkind = \"python\"\nminutes = 1\n[[points]]\nname = \"f\"\nmarks = 1\n");
  write("labs/sim/judge.py", "def draw_f(random): return []\ndef judge_f(arguments, result): return 'wrong'\n");
  write("labs/sim/sim.py", handed_out);
  const auto statements = [](int count, const std::string& statement) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += statement + "\n";
    return lines;
  };
  const auto hand = [&](const std::string& student, const std::string& own) {
    hand_in(student + "/sim.py", handed_out + own);
  };
  const auto flags = [&] {
    grade();
    std::string all;
    std::istringstream rows(text("marks.csv"));
    for (std::string line; std::getline(rows, line);)
      if (const std::size_t at = line.find(",f 0/1,"); at != std::string::npos)
        all += line.substr(0, line.find(',')) + "> " + line.substr(at + 7) + "\n";
    return all;
  };
  hand("a", statements(20, "a = b + 1"));
  hand("b", statements(18, "c = d + 2") + statements(2, "e = f * 3"));
  hand("c", statements(17, "g = h + 4") + statements(3, "i = j * 5"));
  hand("x", statements(8, "p = q - r"));
  hand("y", statements(8, "s = t - u"));
  const std::string of_three = "a> 90 % alike: b\nb> 95 % alike: c; 90 % alike: a\nc> 95 % alike: b\n";
  BOOST_TEST(flags() == of_three + "x> 100 % alike: y\ny> 100 % alike: x\n");
  check_contains(text("marks.feedback/pairs.html"),
                 {"<h2>sim: b and c, 95 % alike</h2>", "<pre style=\"overflow: auto\">def f"});
  // In a class of six, statements that more than half of the class share are disregarded.
  hand("x", statements(7, "p = q - r"));
  hand("y", statements(7, "s = t - u"));
  hand("z", "'''\nos\n'''\n\"\"\"\nsys\n\"\"\"\nk = l / 3  # exec\n");  // suspicious words outside of code
  BOOST_TEST(flags() == of_three + "x> \ny> \nz> \n");
  hand("z", "\"\"\"\nos\n\"\"\"\nopen\nk = l + 3\n");
  BOOST_TEST(flags() == "a> \nb> \nc> \nx> \ny> \nz> uses open\n");
}

// Labs are graded in name order, including one without submissions. A lab's own due date overrides that of *, for any
// order of the lines.
BOOST_FIXTURE_TEST_CASE(labs_that_are_asked_for, Class) {
  const TimeZone utc("UTC0");
  write("labs/gamma/lab.toml",
        "title = \"None\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"x\"\nquestion = \"?\"\nmarks = 1\n"
        "formula = \"1\"\n");
  write("due.csv", "*,2026-11-30\nalpha,2026-11-29\n");
  grade({"--lab", "gamma", "--lab", "alpha", "--due", directory / "due.csv"});
  BOOST_TEST(text("marks.gradebook.csv") ==
             "student,alpha,gamma,total,of,late_days\nann,2.5,,2.5,3.5,1\nbob,0.5,,0.5,3.5,2\ncid,,,0,3.5,0\n"
             "dan,0,,0,3.5,2\neve,,,0,3.5,0\n");
  check_contains(text("marks.summary.txt"), {"gamma: 0 of 5 graded\n"});
  check_contains(text("marks.csv"), {"\nann,gamma,0,1,missing,,\n"});
}

// A repeated run grades only what has changed: a lab, a file, an identity.
BOOST_FIXTURE_TEST_CASE(only_changes_are_graded_again, Class) {
  const auto check = [&](const std::vector<std::string>& more, const std::vector<std::string>& pieces) {
    const std::string said = grade(more).err;
    check_contains(said, pieces);
    return said;
  };
  check({}, {"[7/7] "});
  const std::string marks = text("marks.csv");
  check({}, {"7 of 7 submissions are already graded\n"});
  write("labs/beta/lab.toml", text("labs/beta/lab.toml") + "\n");
  BOOST_TEST(check({}, {"3 of 7 submissions are already", "[4/4] eve beta: 0 of 3"}).find("alpha") ==
             std::string::npos);
  BOOST_TEST(text("marks.csv") == marks);
  write("roster.csv", "Student,Username\ncid,c1\nann,ann\nbob,bob\ndan,dan\neve,eve\n");
  check({"--roster", directory / "roster.csv"}, {"6 of 7 submissions are already", "[1/1] cid beta: 0 of 3 marks"});
  write("roster.csv", "Student,Username\ncid,c1\n");
  hand_in("bob/alpha.toml", "twice = 12\nhalf = 3\n");
  hand_in("eve/beta.toml", "thrice = 18\n");
  // --student grades both labs of that student alone.
  const Finished run =
      heed_with({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs", "--jobs", "1",
                 "--student", "bob", "--roster", directory / "roster.csv"});
  BOOST_TEST(run.status == 1);
  check_contains(run.err, {"[1/2] bob alpha: 2.5 of 2.5 marks", "[2/2] bob beta: 3 of 3 marks"});
  check_contains(text("marks.csv"),
                 {"\nbob,alpha,2.5,2.5,graded,", "\neve,beta,,3,not graded,,\n", "\ncid,beta,0,3,g"});
  check_contains(text("marks.gradebook.csv"), {"\neve,,,0,5.5,0\n"});
  check({"--roster", directory / "roster.csv"}, {"6 of 7 submissions are already", "[1/1] eve beta: 3 of 3 marks"});
}

// Each change in a Python lab's files changes the marks of the same submission.
BOOST_FIXTURE_TEST_CASE(a_changed_judge_is_another_lab, Course) {
  const auto lab = [&](int marks) {
    write("labs/twice/lab.toml",
          fmt::format("title = \"Twice\"\nkind = \"python\"\nminutes = 1\n[[points]]\nname = \"f\"\nmarks = {}\n",
                      marks));
  };
  const auto calls = [&](const std::string& result) {
    write("labs/twice/calls.py", "def run_f(student, given): return " + result + "\n");
  };
  const auto judge = [&](int right) {
    write("labs/twice/judge.py",
          fmt::format(
              "def draw_f(random): return [3]\ndef judge_f(given, result):\n    if result != {}: return 'wrong'\n",
              right));
  };
  const auto graded = [&](const char* marks) {
    check_contains(grade().err, {fmt::format("[1/1] ann twice: {} marks", marks)});
    check_contains(grade().err, {"1 of 1 submissions are already graded"});
  };
  lab(1), calls("student.f(given[0])"), judge(6);
  hand_in("ann/twice.py", "def f(x): return 2 * x\n");
  graded("1 of 1");
  calls("student.f(given[0]) + 1");
  graded("0 of 1");
  judge(7);
  graded("1 of 1");
  lab(2);
  graded("2 of 2");
}

// The file handed out decides which headers a compiled submission may include, so a change of its includes changes the
// lab. This submission is refused before it is compiled, so its marks stay the same.
BOOST_FIXTURE_TEST_CASE(a_changed_header_is_another_lab, Course) {
  write("labs/delta/lab.toml",
        "title = \"Word\"\nkind = \"mechanism\"\nminutes = 1\n[mechanism]\nname = \"delta\"\n"
        "reference = \"softmax\"\nforbidden = [\"never\"]\n[[points]]\nname = \"output\"\nmarks = 1\n");
  write("labs/delta/delta.h", "// Handed out.\n");
  hand_in("ann/delta.h", "never\n");
  check_contains(grade().err, {"[1/1] ann delta: 0 of 1 marks"});
  check_contains(grade().err, {"1 of 1 submissions are already graded"});
  write("labs/delta/delta.h", "#include \"heed/attention/mechanism.h\"\n");
  check_contains(grade().err, {"[1/1] ann delta: 0 of 1 marks"});
}

// A formula may use a value that a command computes from a file outside the lab. If that value changes, the lab counts
// as changed and is graded again.
BOOST_FIXTURE_TEST_CASE(a_changed_value_is_another_lab, Course) {
  const auto model = [&](int depth) {
    write("model.toml",
          fmt::format(
              "[model]\nimage = 8\nchannels = 1\npatch = 4\ndim = 8\nheads = 2\nhidden = 8\nclasses = 2\ndepth = {}\n",
              depth));
  };
  write("labs/cost/lab.toml",
        fmt::format("title = \"Cost\"\nkind = \"answers\"\nminutes = 1\n[values]\ntotal = {{ heed = [\"cost\", "
                    "\"{}\", \"--json\"], field = \"total/mul\" }}\n[[points]]\nname = \"p\"\n"
                    "question = \"?\"\nmarks = 1\nformula = \"total\"\n",
                    (directory / "model.toml").string()));
  hand_in("ann/cost.toml", "p = 1\n");
  model(1);
  check_contains(grade().err, {"[1/1] ann cost: 0 of 1 marks"});
  check_contains(grade().err, {"1 of 1 submissions are already graded"});
  model(2);
  check_contains(grade().err, {"[1/1] ann cost: 0 of 1 marks"});
}

// The record of a graded submission contains the student's identity: the one in the roster or, without a unique match,
// the student's name.
BOOST_FIXTURE_TEST_CASE(identities_of_rosters, Class) {
  std::filesystem::remove_all(directory / "in");
  const struct {
    const char *student, *roster, *identity;
  } rosters[] = {{"ann", "identity,username,Student\ni1,u1,ann\n", "i1"},
                 {"ann", "identity,User name,Student\n,u1,ANN\n", "u1"},
                 {"ann", "SIS Login ID,ID number,username,Student\nl1,n1,,ann\nl2,n2,u2,bob\n", "n1"},
                 {"ann", "SIS User ID,SIS Login ID,Student\ns2,l2,bob\ns1,l1,ann\n", "l1"},
                 {"ann", "SIS User ID,Student\ns1,ann\n", "s1"},
                 {"ann", "Student,Username\nann,u1\nAnn,u2\n", "ann"},
                 {"Ann Bo", "First name,Last name,Username\nAnn,Li,u1\nAnn,Bo,u9\n", "u9"},
                 {"77", "Name,Identifier,Username\nAnn Bo,77,u7\nX Y,78,u8\n", "u7"},
                 {"77", "Name,Quiz,Username\nAnn Bo,77,u7\n", "77"},  // 77 is a mark, not a student
                 {"77", "Matriculation,Quiz,Username\n78,77,u8\n77,78,u7\n", "u7"},
                 {"77", "Name,Quiz,Test,Username\nAnn Bo,7,7,u7\n", "77"},
                 {"77", "Name,Quiz,SIS Login ID,Username\nAnn Bo,1,77,u7\nX Y,77,78,u8\n", "u7"},
                 {"Ann Bo_77_assignsubmission_file",  // only the number matches
                  "Name,Identifier,Username\nA. Bo,Participant 78,u8\nX Y,Participant 77,u7\n", "u7"},
                 {"Ann Bo_77_assignsubmission_file",  // number and name match different rows
                  "Name,Identifier,Username\nAnn Bo,Participant 78,u8\nX Y,Participant 77,u7\n", "Ann Bo"},
                 {"Ann Bo_77_assignsubmission_file",  // 77 is a mark in the other row
                  "Name,Quiz,Username\nAnn Bo,5,u8\nX Y,77,u7\n", "u8"},
                 {"Ann Bo_77_assignsubmission_file",  // the name is in two rows; in the next case, the number
                  "Name,Identifier,Username\nAnn Bo,Participant 78,u8\nAnn Bo,Participant 77,u7\n", "u7"},
                 {"Ann Bo_77_assignsubmission_file", "Name,ID,Username\nX Y,77,u7\nAnn Bo,77,u8\n", "u8"}};
  for (const auto& [student, roster, identity] : rosters) {
    hand_in(student + std::string("/beta.toml"), "thrice = 18\n");
    write("roster.csv", roster);
    grade({"--roster", directory / "roster.csv"});
    const std::string name = std::string(student).substr(0, std::string(student).find('_'));
    const std::string graded = Json::parse(text("marks.feedback/" + name + "/beta.json")).at("graded").text();
    BOOST_TEST(graded.find(fmt::format(" {} ", identity)) != std::string::npos, roster << graded);
    std::filesystem::remove_all(directory / "in");
  }
}

// Students without an identity in the roster are named if a lab is personal. A roster in Latin-1 would not match names
// with accents.
BOOST_FIXTURE_TEST_CASE(rosters_without_identities, Class) {
  write("labs/mine/lab.toml",
        "title = \"Mine\"\nkind = \"personal\"\nminutes = 1\n[personal]\ntask = \"write\"\n[[points]]\n"
        "name = \"memory\"\nmarks = 1\n");
  for (const char* const student : {"ann", "bob"}) hand_in(student + std::string("/mine.h"), "none");
  const auto said = [&](const std::string& roster) {
    write("roster.csv", roster);
    return grade({"--roster", directory / "roster.csv"}).err;
  };
  const std::string problem = "gives no identity for ";
  check_contains(said("Student,ID-Nummer\nann,1\nbob,2\n"),
                 {problem + "ann, bob (columns identity, username, ID number"});
  check_contains(said("Student,ID number\nann,1\nbob,\n"), {problem + "bob (columns"});
  BOOST_TEST(said("Student,ID number\nann,1\nbob,2\ncid,\n").find(problem) == std::string::npos);
  write("roster.csv", "Student\nJos\xe9\n");
  check_refusal({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs", "--roster",
                 directory / "roster.csv"},
                {"roster.csv: is not UTF-8; convert it with `iconv -f WINDOWS-1252 -t UTF-8 OLD >NEW`"});
}

// Marks are not scaled to the points of the platform's assignment.
BOOST_FIXTURE_TEST_CASE(other_points_of_rosters, Class) {
  const auto said = [&](const std::string& roster) {
    write("roster.csv", roster);
    return grade({"--lab", "beta", "--roster", directory / "roster.csv"}).err;
  };
  const std::string problem = "heed: beta: 3 marks, but 100 points in the roster; marks are filled in as they are\n";
  check_contains(said("Student,beta (7)\nPoints Possible,100\nann,\n"), {problem});
  check_contains(said("Identifier,Name,Grade,Maximum Grade\n1,ann,,100\n2,bob,,100\n"), {problem});
  for (const char* const roster :
       {"Student,beta (7)\nPoints Possible,3.0\nann,\n", "Identifier,Name,Grade,Maximum Grade\n1,ann,,3\n2,cy,,100\n"})
    BOOST_TEST(said(roster).find("points in the roster") == std::string::npos, roster);
}

// Before anything is graded, identities with combining marks are refused if a lab is personal. Other labs need no
// identity.
BOOST_FIXTURE_TEST_CASE(decomposed_identities, Class) {
  write("labs/mine/lab.toml",
        "title = \"Mine\"\nkind = \"personal\"\nminutes = 1\n[personal]\ntask = \"write\"\n[[points]]\n"
        "name = \"memory\"\nmarks = 1\n");
  std::filesystem::remove(directory / "in/cid/notes.txt");  // would add a line to stderr
  hand_in("jose\u0301/beta.toml", "thrice = 18\n");
  grade();
  check_contains(text("marks.gradebook.csv"), {"\njose\u0301,,3,3,5.5,0\n"});
  const auto refused = [&](const std::string& identity, const std::vector<std::string>& more) {
    std::vector<std::string> words{"grade",  directory / "in",  "-o", directory / "other.csv",
                                   "--labs", directory / "labs"};
    words.insert(words.end(), more.begin(), more.end());
    check_refusal(words, {"identity '" + identity + "': has the combining mark U+0301"});
    BOOST_TEST(!std::filesystem::exists(directory / "other.feedback"));
  };
  hand_in("jose\u0301/mine.h", "none\n");
  refused("jose\u0301", {});
  hand_in("ann/mine.h", "none\n");
  std::filesystem::remove(directory / "in/jose\u0301/mine.h");
  write("roster.csv", "identity,Student\na\u0301,ann\nb,bob\nc,cid\nd,dan\ne,eve\nj,jose\u0301\n");
  refused("a\u0301", {"--roster", directory / "roster.csv"});
}

// A mark equal to a student's number does not identify the student. If name and number match different rows, or two
// students match one row, no mark is filled in.
BOOST_FIXTURE_TEST_CASE(names_and_numbers_of_rosters, Class) {
  std::filesystem::remove_all(directory / "in");
  hand_in("Ann Bo_85_assignsubmission_file/beta.toml", "thrice = 18\n");
  hand_in("Cid Lu_86_assignsubmission_file/beta.toml", "thrice = 17\n");
  const std::string head = "Name,Identifier,Quiz,beta\n";
  const auto filled = [&](const std::string& rows, const std::vector<std::string>& problems) {
    write("roster.csv", head + rows);
    const Finished run = grade({"--roster", directory / "roster.csv"});
    if (problems.empty()) BOOST_TEST(run.err.find("roster.csv") == std::string::npos, run.err);
    check_contains(run.err, problems);
    return text("marks.roster.csv").substr(head.size());
  };
  BOOST_TEST(filled("Ann Bo,Participant 85,86,\nCid Lu,Participant 86,85,\n", {}) ==
             "Ann Bo,Participant 85,86,3\nCid Lu,Participant 86,85,0\n");
  BOOST_TEST(filled("Ann Bo,,86,\nCid Lu,,85,\n", {}) == "Ann Bo,,86,3\nCid Lu,,85,0\n");
  const std::string exchanged = "Ann Bo,Participant 86,1,\nCid Lu,Participant 85,2,\n",
                    shared = "Ann Bo,Participant 86,1,\nX Y,Participant 1,2,\n";
  BOOST_TEST(filled(exchanged, {"heed: Ann Bo: the name and the number 85 match different rows in ",
                                "heed: Cid Lu: the name and the number 86 match different rows in "}) == exchanged);
  BOOST_TEST(filled(shared, {"heed: Ann Bo: its row is also another student's in ",
                             "heed: Cid Lu: its row is also another student's in "}) == shared);
}

// Canvas's numbers distinguish students with the same name. Moodle's differ between assignments, so equal names are
// taken for one student, with a warning.
BOOST_FIXTURE_TEST_CASE(namesakes, Class) {
  std::filesystem::remove_all(directory / "in");
  hand_in("doejane_111_900_alpha.toml", "twice = 12\nhalf = 3\n");
  hand_in("DoeJane_LATE_222_901_beta.toml", "thrice = 18\n");
  hand_in("roetom_333_902_alpha.toml", "twice = 13\nhalf = 3\n");
  hand_in("RoeTom_333_903_beta.toml", "thrice = 18\n");
  const std::string roster = directory / "roster.csv";
  write("roster.csv", "Student,ID,alpha (1),beta (2)\n\"Doe, Jane\",111,,\n\"Doe, Jane\",222,,\n\"Roe, Tom\",333,,\n");
  BOOST_TEST(grade({"--roster", roster}).err.find("roster.csv") == std::string::npos);
  BOOST_TEST(text("marks.gradebook.csv") ==
             "student,alpha,beta,total,of,late_days\nDoeJane_222,,3,3,5.5,0\nRoeTom,0.5,3,3.5,5.5,0\n"
             "doejane_111,2.5,,2.5,5.5,0\n");
  BOOST_TEST(text("marks.roster.csv") ==
             "Student,ID,alpha (1),beta (2)\n\"Doe, Jane\",111,2.5,\n\"Doe, Jane\",222,,3\n\"Roe, Tom\",333,0.5,3\n");
  std::filesystem::remove_all(directory / "in");
  hand_in("Ann Bo_85_assignsubmission_file/alpha.toml", "twice = 12\nhalf = 3\n");
  hand_in("Ann Bo_97_assignsubmission_file/beta.toml", "thrice = 18\n");
  const std::string numbers =
      "heed: students with several Moodle numbers, each graded as one student: Ann Bo (85, 97); if students share a "
      "name, rename their directories\n";
  write("roster.csv", "Name,Identifier\nX Y,Participant 85\nAnn Bo,Participant 97\n");
  check_contains(grade({"--roster", roster}).err, {numbers});
  BOOST_TEST(text("marks.roster.csv") ==
             "Name,Identifier,alpha,beta\nX Y,Participant 85,,\nAnn Bo,Participant 97,2.5,3\n");
  write("roster.csv", "Name,Identifier\nAnn Bo,Participant 85\nAnn Bo,Participant 97\n");
  check_contains(grade({"--roster", roster}).err, {numbers, "heed: Ann Bo: does not match exactly one row in "});
  BOOST_TEST(text("marks.roster.csv") ==
             "Name,Identifier,alpha,beta\nAnn Bo,Participant 85,,\nAnn Bo,Participant 97,,\n");
}

// File names may carry suffixes such as "-final" and " copy", lab names may end in a number, student names may contain
// underscores, and files may be eight directories deep. Ten of twelve unrecognised files are listed one by one.
BOOST_FIXTURE_TEST_CASE(files_of_other_names_and_places, Course) {
  for (const std::string lab : {"alpha", "week-2"})
    write("labs/" + lab + "/lab.toml",
          "title = \"One\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"p\"\nquestion = \"?\"\nmarks = 1\n"
          "formula = \"1\"\n");
  for (const std::string file : {"ann/week-2.toml", "bob/alpha-final.toml", "cid/alpha copy.toml", "dan_lee_alpha.toml",
                                 "eve/1/2/3/4/5/6/7/8/alpha.toml", "fay/1/2/3/4/5/6/7/8/9/alpha.toml"})
    hand_in(file, "p = 1\n");
  for (int i = 0; i < 12; ++i) hand_in(fmt::format("gus/{:02}.txt", i), "none\n");
  const Finished run = grade();
  check_contains(text("marks.csv"), {"\nann,week-2,1,1,graded,p 1/1,\n", "\nbob,alpha,1,1,graded,p 1/1,\n",
                                     "\ncid,alpha,1,1,graded,p 1/1,\n", "\ndan_lee,alpha,1,1,graded,p 1/1,\n",
                                     "\neve,alpha,1,1,graded,p 1/1,\n",
                                     "\nfay,alpha,0,1,missing,not recognised: fay/1/2/3/4/5/6/7/8/9,\n"});
  check_contains(run.err, {"fay/1/2/3/4/5/6/7/8/9: directories nested more than 8 deep are not read; nest them less"});
  std::string listed;
  std::istringstream lines(run.err);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find(": not recognised: gus/"); at != std::string::npos)
      listed += line.substr(at + 22, 2) + (line.ends_with(": and more such files") ? " and more" : " ");
  BOOST_TEST(listed == "00 01 02 03 04 05 06 07 08 09 10 and more");
}

// Hidden members of archives are ignored; an archive with more than 300 other members is reported. Backslashes separate
// directories, and paths may contain . and .. .
BOOST_FIXTURE_TEST_CASE(members_of_archives, Course) {
  write("labs/alpha/lab.toml",
        "title = \"One\"\nkind = \"answers\"\nminutes = 1\n[[points]]\nname = \"p\"\nquestion = \"?\"\nmarks = 1\n"
        "formula = \"1\"\n");
  write("alpha.toml", "p = 1\n");
  write("pack.py", R"(
import os, tarfile, zipfile
os.mkdir('in')
def pack(name, members):
    with zipfile.ZipFile(name, 'w') as archive:
        for member in members:
            info = zipfile.ZipInfo()
            info.filename = member
            archive.writestr(info, 'p = 1' if member.endswith('alpha.toml') else 'none')
def notes(count): return ['hw/%03d.txt' % i for i in range(count)]
pack('in/ann.zip', ['hw/.git/objects/%03d' % i for i in range(400)] + ['hw/alpha.toml'])
pack('in/bob.zip', notes(299) + ['hw/__MACOSX/alpha.toml', 'hw/alpha.toml'])
pack('in/cid.zip', notes(300) + ['hw/alpha.toml'])
pack('in/dan.zip', ['hw\\', 'hw\\alpha.toml', 'hw\\.git\\config'])
pack('in/eve.zip', ['../hw/./alpha.toml'])
pack('in/gus.zip', ['hw/', 'hw/.DS_Store'])
with tarfile.open('in/fay.tar.gz', 'w:gz') as archive: archive.add('alpha.toml', './alpha.toml')
os.mkdir('week')
os.rename('alpha.toml', 'week/solution.toml')
os.symlink('week/solution.toml', 'alpha.toml')
os.symlink('/nowhere', 'week/link.toml')
with tarfile.open('in/hal.tar.gz', 'w:gz') as archive: [archive.add(name) for name in ('week', 'alpha.toml')]
)");
  BOOST_TEST(run_command("/usr/bin/python3 pack.py", directory.path()).status == 0);
  grade();
  check_contains(text("marks.csv"),
                 {"\nann,alpha,1,1,graded,p 1/1,\n", "\nbob,alpha,1,1,graded,p 1/1,\n", "\ncid,alpha,0,1,missing,",
                  "; not recognised: cid.zip,\n", "\ndan,alpha,1,1,graded,p 1/1,\n", "\neve,alpha,1,1,graded,p 1/1,\n",
                  "\nfay,alpha,1,1,graded,p 1/1,\n", "\ngus,alpha,0,1,missing,not recognised: gus.zip,\n",
                  "\nhal,alpha,1,1,graded,p 1/1,\n"});
  const std::string list = text("marks.feedback/not-recognised.txt");
  check_contains(list, {"\ncid.zip/hw/010.txt: and more such files\ncid.zip: only 300 of its 301 files are read; "
                        "submit a smaller archive, or the files themselves\n",
                        "\ngus.zip: it contains no files; submit the files themselves\n",
                        "\nhal.tar.gz/week/link.toml: its name matches no lab"});
  BOOST_TEST(list.find("bob.zip: only") == std::string::npos);
  for (const char* const whole : {"ann.zip", "dan.zip", "eve.zip", "fay.tar"})
    BOOST_TEST(list.find(whole) == std::string::npos, whole);
}

// A single lab's marks are in Moodle's grade column; several labs get separate columns.
BOOST_FIXTURE_TEST_CASE(a_worksheet_is_of_one_lab, Class) {
  write("roster.csv", "Identifier,Full name,Grade\nParticipant 1,Ann,\nParticipant 2,Bob,7\n");
  const std::string roster = directory / "roster.csv";
  grade({"--roster", roster, "--lab", "beta"});
  BOOST_TEST(text("marks.roster.csv") == "Identifier,Full name,Grade\nParticipant 1,Ann,3\nParticipant 2,Bob,3\n");
  grade({"--roster", roster});
  BOOST_TEST(text("marks.roster.csv") ==
             "Identifier,Full name,Grade,alpha,beta\nParticipant 1,Ann,,2.5,3\nParticipant 2,Bob,7,0.5,3\n");
}

// A lab's column has its name, alone or with the number that Canvas adds; columns of other names keep their content.
BOOST_FIXTURE_TEST_CASE(a_column_is_of_one_lab, Class) {
  write("roster.csv", "Student,alphabet (9),alpha makeup (12),alpha2,alpha (6),beta-2,My beta\nann,1,2,3,4,5,6\n");
  grade({"--roster", directory / "roster.csv"});
  BOOST_TEST(text("marks.roster.csv") ==
             "Student,alphabet (9),alpha makeup (12),alpha2,alpha (6),beta-2,My beta,beta\nann,1,2,3,2.5,5,6,3\n");
}

// A judge's looks() names a factor only if all numbers have it, the right ones included.
BOOST_FIXTURE_TEST_CASE(common_factors_of_wrong_numbers, Course) {
  write("labs/pair/lab.toml",
        "title = \"Pair\"\nkind = \"python\"\nminutes = 1\n[[points]]\nname = \"f\"\nmarks = 1\n");
  write("labs/pair/judge.py",
        "def draw_f(random): return [0.5, 2]\ndef judge_f(given, result):\n"
        "    if result != given: return 'wrong' + looks(zip(result, given))\n");
  const std::pair<const char*, const char*> works[] = {{"0, 0", "wrong: all are 0"},
                                                       {"-x, -y", "wrong: like the negative"},
                                                       {"3 * x, 3 * y", "wrong: 3 times what it should be"},
                                                       {"x, 3 * y", "wrong"},
                                                       {"-x, y", "wrong"},
                                                       {"0, y", "wrong"}};
  for (std::size_t i = 0; i < std::size(works); ++i)
    hand_in(fmt::format("s{}/pair.py", i), fmt::format("def f(x, y): return [{}]\n", works[i].first));
  grade();
  for (std::size_t i = 0; i < std::size(works); ++i)
    BOOST_TEST(text(fmt::format("marks.feedback/s{}/pair.txt", i)) ==
                   fmt::format("pair: Pair\n0 of 1 marks\n\nwrong  f: 0 of 1\n       {}\n", works[i].second),
               works[i].first);
}

// Cells in columns without a heading, and cells for which there is no mark, are unchanged.
BOOST_FIXTURE_TEST_CASE(other_cells_of_rosters, Class) {
  write("roster.csv", "Name,alpha\nann,1,seen\ncid,2\ndan\neve,4,,x\n");
  grade({"--roster", directory / "roster.csv"});
  BOOST_TEST(text("marks.roster.csv") == "Name,alpha,,,beta\nann,2.5,seen,,3\ncid,2,,,0\ndan,0,,,\neve,4,,x,0\n");
}

// Quoted cells may hold quotes, commas and line ends, and rows may be short; the copy has the same cells.
BOOST_FIXTURE_TEST_CASE(quoted_cells_of_rosters, Class) {
  const std::string head = "Name,\"Note \"\"a\"\", b\",beta\n", ann = "ann,\"said \"\"hi\"\",\nthen left\",";
  write("roster.csv", head + ann + "\nbob\n");
  grade({"--lab", "beta", "--roster", directory / "roster.csv"});
  BOOST_TEST(text("marks.roster.csv") == head + ann + "3\nbob,,3\n");
  // Spreadsheets of some countries separate columns by semicolons; such rosters are rejected, and so are tabs.
  for (const std::string separator : {";", "\t"}) {
    write("roster.csv", "Last, first name" + separator + "ID" + separator + "Note\nann" + separator + "1\n");
    check_refusal({"grade", directory / "in", "-o", directory / "marks.csv", "--labs", directory / "labs", "--roster",
                   directory / "roster.csv"},
                  {"roster.csv: its columns are separated by semicolons or tabs; expected commas"});
  }
}

// The judge prints its arguments: they depend on the seed and the point, and are the same in heed lab check.
BOOST_FIXTURE_TEST_CASE(hidden_inputs_are_those_of_the_seed, Course) {
  write("labs/told/lab.toml",
        "title = \"Told\"\nkind = \"python\"\nminutes = 1\n[[points]]\nname = \"f\"\nmarks = 1\n[[points]]\n"
        "name = \"g\"\nmarks = 1\n");
  const std::string draw = "(random): return [random.random()]\n", judge = "(given, result): return 'for %r' % given\n";
  write("labs/told/judge.py", "def draw_f" + draw + "draw_g = draw_f\ndef judge_f" + judge + "judge_g = judge_f\n");
  std::string work = "def f(x): return x\ndef g(x): return x\n";
  const auto told = [&](const std::vector<std::string>& more) {
    hand_in("ann/told.py", work += "#\n");
    grade(more);
    return text("marks.feedback/ann/told.txt");
  };
  const auto checked = [&](const std::string& seed) {
    return heed_with({"lab", "check", directory / "labs/told", "--file", directory / "in/ann/told.py", "--seed", seed})
        .out;
  };
  const std::string five = told({"--seed", "5"}), six = told({"--seed", "6"});
  check_contains(five, {"told: Told\n0 of 2 marks\n\nwrong  f: 0 of 1\n       for ", "wrong  g: 0 of 1\n       for "});
  BOOST_TEST(five != six);
  const auto argument = [&](const std::string& point) {
    const std::size_t begin = five.find("for ", five.find("wrong  " + point + ":"));
    return five.substr(begin, five.find('\n', begin) - begin);
  };
  BOOST_TEST(argument("f") != argument("g"));
  BOOST_TEST(told({}) == six);  // the seed of the previous run
  BOOST_TEST(checked("5") == five);
  const Finished json = heed_with(
      {"lab", "check", directory / "labs/told", "--file", directory / "in/ann/told.py", "--seed", "5", "--json"});
  BOOST_TEST(Json::parse(json.out).at("kind").text() == "python");
  BOOST_TEST(checked("6") == six);
}

BOOST_AUTO_TEST_SUITE_END()
