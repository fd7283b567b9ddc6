// A class with hostile submissions among others: each is marked correctly, without affecting the others.
#include "support/cli.h"
#include "support/command.h"

#include "heed/io/json.h"
#include "src/apps/grading/sandbox/confined.h"

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <map>
#include <sstream>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

const std::string solution_file = "notebooks/solutions/softmax-backward/softmax-backward.h";

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file(path, text);
}

/// Returns `text` with the first `from` replaced by `to`; checks that `from` occurs.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

/// A class with its labs, and the marks of a grading run.
struct Classroom {
  TemporaryDirectory directory;
  std::map<std::string, std::string> rows;   ///< by student: row of marks.csv without student, lab and flags
  std::map<std::string, std::string> flags;  ///< by student: the row's last column
  Finished run;

  Classroom() {
    add_lab("double",
            "def draw_twice(random): return [random.random() for _ in range(3)]\n"
            "def judge_twice(arguments, result):\n"
            "    if result != [2 * x for x in arguments]: return 'it is not twice as much'\n",
            "def run_twice(student, arguments): return [student.twice(x) for x in arguments]\n");
  }

  void add_lab(const std::string& name, const std::string& judge, const std::string& calls) const {
    write(directory / ("labs/" + name + "/lab.toml"),
          "title = \"Twice\"\nkind = \"python\"\nminutes = 1\n[[points]]\nname = \"twice\"\nmarks = 2\nhint = "
          "\"Add.\"\n");
    write(directory / ("labs/" + name + "/judge.py"), judge);
    write(directory / ("labs/" + name + "/calls.py"), calls);
  }
  void hand_in(const std::string& student, const std::string& file, const std::string& text) const {
    write(directory / ("in/" + student + "/" + file), text);
  }
  void grade(std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"grade", directory / "in", "-o", directory / "out/marks.csv", "--labs", directory / "labs"});
    fs::create_directories(directory / "out");
    run = heed_with(more);
    rows.clear(), flags.clear();
    if (!fs::exists(directory / "out/marks.csv")) return;
    std::istringstream table(read_file(directory / "out/marks.csv"));
    for (std::string line; std::getline(table, line);) {
      const std::size_t comma = line.find(',');
      const std::string row = line.substr(line.find(',', comma + 1) + 1), student = line.substr(0, comma);
      const std::size_t last = row.ends_with('"') ? row.rfind(",\"") : row.rfind(',');
      rows[student] = row.substr(0, last);
      flags[student] = row.substr(last + 1);
    }
  }
  std::string feedback(const std::string& student, const std::string& file) const {
    return read_file(directory / ("out/marks.feedback/" + student + "/" + file));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_grade)

BOOST_FIXTURE_TEST_CASE(python_submissions, Classroom) {
  hand_in("good", "double.py", "def twice(x): return x + x\n");
  hand_in("nested", "double/double.py", "def twice(x): return 2 * x\n");
  hand_in("wrong", "double.py", "def twice(x):\n    print('passed')\n    return x\n");
  hand_in("stub", "double.py", "def twice(x):\n    raise NotImplementedError('not yet')\n");
  hand_in("hangs", "double.py", "def twice(x):\n    while True: pass\n");
  hand_in("exits", "double.py", "import os\nprint('passed')\nos._exit(0)\n");
  hand_in("quits", "double.py", "def twice(x): raise SystemExit(0)\n");
  hand_in("forges", "double.py",
          "import os, struct\nd = struct.pack('<qq', 1, 4) + b'null'\nos.write(3, struct.pack('<q', len(d)) + d)\n"
          "os._exit(0)\n");
  hand_in("eats", "double.py", "def twice(x): return bytearray(1 << 40)\n");
  hand_in("floods", "double.py", "def twice(x): return 'x' * (8 << 20)\n");
  hand_in("deep", "double.py", "def twice(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a\n");
  hand_in("kills", "double.py", "import os\ndef twice(x):\n    os.kill(os.getppid(), 9)\n    return 2 * x\n");
  hand_in("bomb", "double.py", "import os\ndef twice(x):\n    while True: os.fork()\n");
  hand_in("writes", "double.py",
          "def twice(x):\n    open('" + (directory / "in/good/double.py").string() + "', 'w')\n    return 2 * x\n");
  hand_in("reads", "double.py",
          "def twice(x):\n    exec(open('" + (directory / "in/good/double.py").string() +
              "').read(), globals())\n"
              "    return twice(x)\n");
  hand_in("error", "double.py", "def twice(x:\n");
  hand_in("caller", "double.py", "import sys\ndef twice(x): return 2 * sys._getframe(1).f_locals['arguments'][0]\n");
  hand_in("trace", "double.py",
          "def twice(x):\n    try:\n        1 / 0\n    except ArithmeticError as e:\n"
          "        return 2 * e.__traceback__.tb_frame.f_back.f_locals['arguments'][0]\n");
  hand_in("hidden", "double.py",
          "import sys\ndef twice(x): return 2 * getattr(sys, '_get' + 'frame')(1).f_code.co_argcount * x\n");
  hand_in("two\nlines", "double.py", "def twice(x): return 2 * x\n");
  hand_in("=cmd(), \"x\"", "double.py", "def twice(x): return 2 * x\n");
  fs::create_directories(directory / "in/linked");
  fs::create_symlink(directory / "in/good/double.py", directory / "in/linked/double.py");
  fs::create_directory_symlink(directory / "in/good", directory / "in/alias");
  fs::create_directories(directory / "in/empty");
  fs::create_directories(directory / "in/pipe");
  BOOST_TEST(mkfifo((directory / "in/pipe/double.py").c_str(), 0600) == 0);
  hand_in("large", "double.py", std::string((1 << 20) + 1, '#'));
  grade();
  BOOST_TEST(run.status == 0, run.err);
  const std::string full = "2,2,graded,twice 2/2", none = "0,2,graded,twice 0/2", refused = "0,2,refused,twice 0/2";
  for (const char* const student : {"good", "nested"}) BOOST_TEST(rows[student] == full, student);
  for (const char* const student : {"wrong", "stub", "hangs", "exits", "quits", "forges", "eats", "floods", "deep",
                                    "kills", "bomb", "writes", "error", "caller", "trace", "hidden"})
    BOOST_TEST(rows[student] == none, student);
  BOOST_TEST(flags["good"] == "");
  for (const auto& [student, call] :
       {std::pair{"kills", "kill"}, std::pair{"bomb", "fork or thread"}, std::pair{"writes", "open for writing"}})
    BOOST_TEST(flags[student].find(std::string("was refused ") + call) != std::string::npos, flags[student]);
  for (const char* const student : {"linked", "pipe", "large"}) BOOST_TEST(rows[student] == refused, student);
  if (has_landlock()) BOOST_TEST(rows["reads"] == none);
  BOOST_TEST(rows["empty"] == "0,2,missing,");
  BOOST_TEST(rows.count("alias") == 0u);
  check_contains(run.err, {"in/alias: left out: it is a symbolic link", "left out: its name has control characters"});
  check_contains(read_file(directory / "out/marks.csv"), {"\n\"'=cmd(), \"\"x\"\"\",double,2,2,graded,twice 2/2,\n"});
  check_contains(feedback("wrong", "double.txt"), {"0 of 2 marks", "wrong  twice", "it is not twice as much", "Add."});
  check_contains(feedback("stub", "double.txt"), {"not yet"});
  check_contains(feedback("hangs", "double.txt"), {"it used more than 10 s of CPU time"});
  check_contains(feedback("exits", "double.txt"), {"it exited with status 0"});
  check_contains(feedback("eats", "double.txt"), {"it exceeds the memory limit"});
  check_contains(feedback("kills", "double.txt"), {"PermissionError", "in line 3"});
  check_contains(feedback("error", "double.txt"), {"SyntaxError", "in line 1"});
  check_contains(feedback("linked", "double.txt"), {"symbolic link"});
  check_contains(feedback("caller", "double.txt"), {"in line 2", "may not look at its caller"});
  BOOST_TEST(read_file(directory / "in/good/double.py") == "def twice(x): return x + x\n");
  const Json json = Json::parse(feedback("good", "double.json"));
  BOOST_TEST(json.at("student").text() == "good");
  BOOST_TEST(json.at("marks").number() == 2);
}

// Access to a caller's frame, or to code that is not in the submitted text, is refused and flagged.
BOOST_FIXTURE_TEST_CASE(python_without_frames, Classroom) {
  const std::string right = "def twice(x): return x + x\n";
  const std::pair<const char*, const char*> ways[] = {
      {"alias", "g = getattr\n"},
      {"reduce", "import functools\nfunctools.reduce(getattr, ['real'], 1)\n"},
      {"pattern", "class F:\n    __match_args__ = ('f_' + 'back',)\n"},
      {"tuples",
       "import collections\nN = collections.namedtuple('N', ['f_' + 'back'])\nmatch 1:\n    case N(x): pass\n"},
      {"literal", "'{0.__class__}'.format(1)\n"},
      {"call", "getattr(1, 'a' + 'b')\n"},
      {"formatter", "import string\nstring.Formatter().vformat('', (), {})\n"},
      {"timer", "import timeit\ntimeit.timeit('1')\n"},
      {"ctypes", "import ctypes\n"},
      {"objects", "from gc import get_objects\n"},
      {"hints", "import typing\ntyping.get_type_hints(twice)\n"},
      {"bytecode", "import dataclasses\ndataclasses.types.CodeType\n"},
      {"wraps", "import functools\nfunctools.wraps(twice, assigned=('real',))\n"},
      {"generator", "(x for x in ()).gi_frame\n"},
      {"builtin", "import builtins\n"}};
  for (const auto& [student, code] : ways) hand_in(student, "double.py", right + code);
  hand_in(
      "honest", "double.py",
      "from __future__ import annotations\nimport collections, copy, dataclasses, functools, itertools, json, math\n"
      "from typing import List\n@dataclasses.dataclass\nclass P:\n    x: float = 1.5\n"
      "@functools.wraps(abs)\ndef f(x): return abs(x)\n"
      "assert getattr(P(), 'x') == P().x and '{:.1f}'.format(f(-1)) == '1.0' and f'{P().x}'\n"
      "f_plus, f_minus = f(2), f(1)\n'''like P.__init__'''\nP.calls = 1\n"
      "match 3:\n    case int(n): pass\n    case P(x=1): pass\n" +
          right);
  grade();
  for (const auto& [student, code] : ways) {
    BOOST_TEST(rows[student] == "0,2,graded,twice 0/2", student);
    check_contains(flags[student], {"was refused ", ", in line "});
  }
  BOOST_TEST(rows["honest"] == "2,2,graded,twice 2/2", feedback("honest", "double.txt"));
  BOOST_TEST(flags["honest"] == "");
}

// Three submissions are each wrong for a different one of three arguments, and all are detected; a single call would
// detect at most one of them.
BOOST_FIXTURE_TEST_CASE(all_calls_must_be_right, Classroom) {
  write(directory / "labs/double/judge.py",
        "def draw_twice(random): return [random.choice((0, 1, 2))]\n"
        "def judge_twice(arguments, result):\n"
        "    if result != [2 * x for x in arguments]: return f'wrong for {arguments[0]}'\n");
  hand_in("right", "double.py", "def twice(x): return x + x\n");
  for (const std::string x : {"0", "1", "2"})
    hand_in("but" + x, "double.py", "def twice(x): return 9 if x == " + x + " else x + x\n");
  hand_in("forges", "double.py",
          "import os, struct\nd = struct.pack('<qq', 1, 2) + b'[]'\nos.write(3, struct.pack('<q', len(d)) + d)\n"
          "os._exit(0)\n");
  grade({"--seed", "1"});
  BOOST_TEST(rows["right"] == "2,2,graded,twice 2/2");
  for (const std::string x : {"0", "1", "2"}) {
    BOOST_TEST(rows["but" + x] == "0,2,graded,twice 0/2");
    check_contains(feedback("but" + x, "double.txt"), {"wrong for " + x});
  }
  BOOST_TEST(rows["forges"] == "0,2,graded,twice 0/2");
}

// Text encodings of other systems, file names made by browsers and learning platforms, and archives are accepted if
// they are unambiguous.
BOOST_FIXTURE_TEST_CASE(forgiving_intake, Classroom) {
  const std::string right = "def twice(x): return x + x\n", wrong = "def twice(x): return x\n";
  hand_in("crlf", "double.py", "def twice(x):\r\n    return x + x\r\n");
  hand_in("mark", "double.py", "\xef\xbb\xbf" + right);
  std::string wide = "\xff\xfe";
  for (const char c : "# \xe9\n" + right) wide += {c, '\0'};
  hand_in("utf16", "double.py", wide);
  // Big-endian UTF-16 with a surrogate pair, then three surrogates without their partners: a low one, a high one, and a
  // high one at the end of the file.
  std::string halves = std::string("\xfe\xff\0#\xd8\x34\xdd\x1e\xdd\x1e\xd8\x34", 12);
  for (const char c : "\n" + right) halves += {'\0', c};
  hand_in("halves", "double.py", halves + "\xd8\x34");
  hand_in("latin1", "double.py", "# caf\xe9\n" + right);
  hand_in("capital", "Double.py", right);
  hand_in("again", "double (1).py", right);
  hand_in("canvas", "double-1.py", right);
  hand_in("copied", "double - Copy.py", right);
  hand_in("text", "double.py.txt", right);
  hand_in("deep", "homework/week 3/double/double.py", right);
  hand_in("folder", "double/solution.py", right);
  hand_in("twice", "a/double.py", right);
  hand_in("twice", "b/double.py", right);
  hand_in("unclear", "a/double.py", right);
  hand_in("unclear", "b/double.py", wrong);
  hand_in("two", "double.py", right);
  hand_in("two", "double (1).py", wrong);
  hand_in("lost", "homework.py", right);
  hand_in("S1234", "double.py", right);
  hand_in("Jane Doe_1234567_assignsubmission_file", "double.py", right);
  write(directory / "in/Ann Lee_1234568_assignsubmission_file_double.py", right);
  write(directory / "in/doejohn_LATE_12345_678910_double-2.py", right);
  write(directory / "in/s77_double.py", right);
  write(directory / "in/double.py", right);
  write(directory / "pack/double.py", right);
  for (const char* const name : {"zipped/answer.zip", "tarred/answer.tar.gz", "broken/answer.zip"})
    fs::create_directories((directory / "in" / name).parent_path());
  const std::string in = (directory / "in").string();
  BOOST_TEST(run_command("/usr/bin/python3 -m zipfile -c '" + in + "/zipped/answer.zip' double.py && tar czf '" + in +
                             "/tarred/answer.tar.gz' double.py && cp '" + in + "/zipped/answer.zip' '" + in +
                             "/s88.zip' && cp '" + in + "/s88.zip' '" + in +
                             "/Bo Ray_1234569_assignsubmission_file_answer.zip' && cp '" + in + "/s88.zip' '" + in +
                             "/s89_double.zip' && cp '" + in + "/s88.zip' '" + in + "/jane.doe.zip' && cp '" + in +
                             "/tarred/answer.tar.gz' '" + in + "/jane.smith.TAR.GZ'",
                         directory / "pack")
                 .status == 0);
  write(directory / "in/broken/answer.zip", "PK");
  write(directory / "in/roejohn_777_8_answer.zip", "PK");
  hand_in("jane.doe", "notes.txt", "none");  // this student also has an archive
  hand_in("two", "05-sima.ipynb", "{}");
  grade();
  BOOST_TEST(run.status == 0, run.err);
  const std::string full = "2,2,graded,twice 2/2";
  for (const char* const student :
       {"crlf", "mark",   "utf16",  "latin1",   "capital",    "again",    "canvas",  "copied", "text",
        "deep", "folder", "twice",  "two",      "S1234",      "Jane Doe", "doejohn", "s77",    "s88",
        "s89",  "zipped", "tarred", "jane.doe", "jane.smith", "Ann Lee",  "Bo Ray"})
    BOOST_TEST(rows[student] == full, student << ": " << rows[student]);
  BOOST_TEST(rows["unclear"].starts_with("0,2,not recognised,"));
  BOOST_TEST(rows["lost"].starts_with("0,2,missing,not recognised: lost/homework.py"));
  BOOST_TEST(rows["broken"].starts_with("0,2,missing,not recognised: broken/answer.zip"));
  const std::string list = read_file(directory / "out/marks.feedback/not-recognised.txt");
  check_contains(list, {"\nlost/homework.py: ", "LAB.py", "two/double (1).py: two/double.py is graded", "submit one",
                        "\nroejohn/answer.zip: it cannot be unpacked", "broken/answer.zip: it cannot be unpacked",
                        "\ndouble.py: the student is unknown"});
  check_contains(run.err, {"heed: not recognised: lost/homework.py",
                           "not recognised: notebooks, 1: notebooks/solutions/questions is missing beside"});
  // Names that differ only in case belong to the same student.
  hand_in("s1234", "double.py", wrong);
  grade();
  BOOST_TEST(rows.count("s1234") == 0u);
  BOOST_TEST(rows["S1234"].starts_with("0,2,not recognised,"));
}

// Each file of an archive is read with its own content; those in __MACOSX, which macOS adds, are ignored.
BOOST_FIXTURE_TEST_CASE(archives_of_several_files, Classroom) {
  add_lab("triple",
          "def draw_twice(random): return [random.random() for _ in range(3)]\n"
          "def judge_twice(arguments, result):\n"
          "    if result != [3 * x for x in arguments]: return 'it is not thrice as much'\n",
          "def run_twice(student, arguments): return [student.twice(x) for x in arguments]\n");
  const std::string two = "def twice(x): return 2 * x\n", three = "def twice(x): return 3 * x\n";
  for (const auto& [student, of_double, of_triple] :
       {std::tuple("ann", two, three), {"bob", three, three}, {"cid", two, two}}) {
    const fs::path pack = directory / (std::string("pack/") + student);
    write(pack / "double.py", of_double);
    write(pack / "triple.py", of_triple);
    write(pack / "__MACOSX/double.py", "none\n");
    const fs::path place = directory / (std::string("in/") + student);
    fs::create_directories(place);
    const std::string command = student == std::string("bob")
                                    ? "tar czf '" + (place / "answer.tar.gz").string()
                                    : "/usr/bin/python3 -m zipfile -c '" + (place / "answer.zip").string();
    BOOST_TEST(run_command(command + "' double.py triple.py __MACOSX", pack.string()).status == 0);
  }
  grade();
  BOOST_TEST(read_file(directory / "out/marks.csv") ==
             "student,lab,marks,of,state,points,flags\n"
             "ann,double,2,2,graded,twice 2/2,\nann,triple,2,2,graded,twice 2/2,\n"
             "bob,double,0,2,graded,twice 0/2,\nbob,triple,2,2,graded,twice 2/2,\n"
             "cid,double,2,2,graded,twice 2/2,\ncid,triple,0,2,graded,twice 0/2,\n");
  BOOST_TEST(read_file(directory / "out/marks.feedback/not-recognised.txt") == "");
}

// Copies are detected despite changes of names, numbers, comments, operators and the order of operands; a different
// solution is not flagged.
BOOST_FIXTURE_TEST_CASE(flags_of_copies, Classroom) {
  const std::string own =
      "def twice(x):\n    total = 0\n    step = x / 2\n    for i in range(4):\n        total = total + step\n"
      "    if total != x + x:\n        total = x * 2\n    other = [total, total]\n    best = max(other[0], other[1])\n"
      "    return best\n";
  hand_in("a", "double.py", own);
  hand_in("b", "double.py", own);
  hand_in("c", "double.py",
          "# mine\ndef twice(z):\n    h = z / 8  # half\n    s = 7\n    for k in range(2):\n        s += h\n"
          "    if s < z + z:\n        s = 3 * z\n    both = [s, s]\n    w = max(both[1], both[0])\n    return w\n");
  hand_in(
      "d", "double.py",
      "def pieces(x):\n    yield x\n    yield x\n\n\ndef twice(x):\n    found = list(pieces(x))\n    while len(found) "
      "> "
      "1:\n        last, first = found.pop(), found.pop()\n        found.append(first - (0 - last))\n    assert found, "
      "'nothing is left'\n    return found[-1]\n");
  hand_in("e", "double.py", "import sys\ndef twice(x): return x + x\n");
  grade();
  check_contains(flags["a"], {"identical: b", "100 % alike: c"});
  check_contains(flags["c"], {"100 % alike: a", "100 % alike: b"});
  BOOST_TEST(flags["d"] == "");
  BOOST_TEST(flags["e"] == "uses sys");
  check_contains(read_file(directory / "out/marks.feedback/pairs.html"),
                 {"double: a and b, identical", "def twice(z):"});
  BOOST_TEST(rows["a"] == rows["b"]);
}

// Flags are computed for each lab separately: copies among the lab's submissions, and suspicious words that are not in
// the file handed out for it.
BOOST_FIXTURE_TEST_CASE(flags_of_each_lab, Classroom) {
  add_lab("later", read_file(directory / "labs/double/judge.py"), read_file(directory / "labs/double/calls.py"));
  write(directory / "labs/later/later.py", "import sys\n");
  const std::string own =
      "def twice(x):\n    total = 0\n    step = x / 2\n    for i in range(4):\n        total = total + step\n"
      "    if total != x + x:\n        total = x * 2\n    other = [total, total]\n    best = max(other[0], other[1])\n"
      "    return best\n";
  const std::string short_one = "import sys\ndef twice(x): return x + x\n";
  hand_in("a", "double.py", own);
  hand_in("b", "double.py", own);
  hand_in("c", "double.py", short_one);
  hand_in("a", "later.py", short_one);
  hand_in("b", "later.py", "import sys\n" + own);
  hand_in("c", "later.py", "import sys\n" + own);
  grade();
  std::map<std::string, std::string> found;
  std::istringstream table(read_file(directory / "out/marks.csv"));
  for (std::string line; std::getline(table, line);)
    found[line.substr(0, line.find(',', line.find(',') + 1))] = line.substr(line.rfind(',') + 1);
  for (const auto& [work, flag] : {std::pair("a,double", "identical: b"),
                                   {"b,double", "identical: a"},
                                   {"c,double", "uses sys"},
                                   {"a,later", ""},
                                   {"b,later", "identical: c"},
                                   {"c,later", "identical: b"}})
    BOOST_TEST(found[work] == flag, work << ": " << found[work]);
  const std::string page = read_file(directory / "out/marks.feedback/pairs.html");
  check_contains(page, {"<h2>double: a and b, identical</h2>", "<h2>later: b and c, identical</h2>"});
  BOOST_TEST(page.find("<h2>", page.rfind("<h2>later: b and c") + 1) == std::string::npos);
}

// Gradebook for the course's platform, and files for students and the teacher.
BOOST_FIXTURE_TEST_CASE(a_gradebook, Classroom) {
  hand_in("Jane Doe_77_assignsubmission_file", "double.py", "def twice(x): return x + x\n");
  write(directory / "in/roejohn_12_345_double.py", "def twice(x): return x\n");
  hand_in("stranger", "double.py", "def twice(x): return x + x\n");
  write(directory / "canvas.csv",
        "Student,ID,SIS User ID,SIS Login ID,Section,double (901)\n    Points Possible,,,,,\n\"Doe, "
        "Jane\",11,u1,jdoe,A,\n"
        "\"Roe, John\",12,u2,jroe,A,\n");
  write(directory / "due.csv", "double,2001-01-01\n");
  std::vector<std::string> more{"--roster", directory / "canvas.csv", "--due", directory / "due.csv"};
  grade(more);
  BOOST_TEST(run.status == 0, run.err);
  check_contains(run.err,
                 {"stranger: does not match exactly one row in", "Jane Doe: does not match exactly one row in"});
  BOOST_TEST(read_file(directory / "out/marks.roster.csv") ==
             "Student,ID,SIS User ID,SIS Login ID,Section,double (901)\n    Points Possible,,,,,2\n\"Doe, Jane\",11,u1,"
             "jdoe,A,\n\"Roe, John\",12,u2,jroe,A,0\n");
  write(
      directory / "moodle.csv",
      "Identifier,Full name,Email address,Grade\r\nParticipant 77,Jane Doe,j@x.org,\r\nParticipant 78,John Roe,,\r\n");
  grade({"--roster", directory / "moodle.csv"});
  check_contains(read_file(directory / "out/marks.roster.csv"), {"Participant 77,Jane Doe,j@x.org,2\n"});
  grade({"--due", directory / "due.csv"});
  check_contains(read_file(directory / "out/marks.gradebook.csv"),
                 {"student,double,total,of,late_days\nJane Doe,2,2,2,"});
  check_contains(read_file(directory / "out/marks.summary.txt"),
                 {"double: 3 of 3 graded, 1.3 of 2", "missed by 1: twice"});
  check_contains(feedback("roejohn", "feedback.txt"), {"roejohn: 0 of 2 marks", "wrong  twice", "days late"});
  // Regrades one student and preserves the others' marks.
  grade({"--student", "RoeJohn"});
  check_contains(run.err, {"[1/1] roejohn double: 0 of 2 marks"});
  BOOST_TEST(rows["stranger"] == "2,2,graded,twice 2/2");
  check_refusal(
      {"grade", directory / "in", "-o", directory / "m.csv", "--labs", directory / "labs", "--student", "roejon"},
      {"no student 'roejon'", "did you mean 'roejohn'"});
  write(directory / "due.csv", "double,soon\n");
  check_refusal({"grade", directory / "in", "-o", directory / "m.csv", "--labs", directory / "labs", "--due",
                 directory / "due.csv"},
                {"'soon' for double is not a date"});
  // Neither the table of marks nor the files beside it overwrite an input.
  for (const auto& [table, option, input] :
       {std::tuple("due.csv", "--due", "due.csv"), {"m.csv", "--roster", "m.roster.csv"}}) {
    write(directory / "m.roster.csv", "name,identity\nroejohn,r\n");
    check_refusal(
        {"grade", directory / "in", "-o", directory / table, "--labs", directory / "labs", option, directory / input},
        {std::string(input) + ": is also " + option + "; expected another file"});
  }
}

// A repeated run grades only changed submissions, on the same hidden inputs.
BOOST_FIXTURE_TEST_CASE(a_run_goes_on, Classroom) {
  hand_in("a", "double.py", "def twice(x): return x + x\n");
  hand_in("b", "double.py", "def twice(x): return x\n");
  grade({"--jobs", "1"});
  BOOST_TEST(run.status == 0, run.err);
  const std::string seed = read_file(directory / "out/marks.feedback/run.json");
  check_contains(run.err, {"[1/2] a double: 2 of 2 marks", "[2/2] b double: 0 of 2 marks"});
  hand_in("b", "double.py", "def twice(x): return 2 * x\n");
  grade();
  check_contains(run.err, {"1 of 2 submissions are already graded", "[1/1] b double: 2 of 2 marks"});
  BOOST_TEST(read_file(directory / "out/marks.feedback/run.json") == seed);
  grade({"--seed", "5"});
  check_contains(run.err, {"[2/2]"});
  grade({"--seed", "5"});
  check_contains(run.err, {"2 of 2 submissions are already graded"});
  // Tables whose names differ only after a dot have separate files.
  const std::string week = directory / "out/marks.week2";
  BOOST_TEST(heed_with({"grade", directory / "in", "-o", week, "--labs", directory / "labs"}).status == 0);
  for (const char* const ending : {"", ".feedback", ".gradebook.csv", ".summary.txt"})
    BOOST_TEST(fs::exists(week + ending), ending);
  // A failing judge is detected before any grading.
  write(directory / "labs/double/judge.py", "def draw_twice(random): return undefined\n");
  grade();
  BOOST_TEST(run.status == 2);
  check_contains(run.err, {"judge.py: draw_twice", "undefined"});
}

// After Ctrl-C during the second submission, heed grade exits with status 130; it has recorded only the first
// submission and written no table of marks.
BOOST_FIXTURE_TEST_CASE(an_interrupt, Classroom) {
  hand_in("a", "double.py", "def twice(x): return x + x\n");
  hand_in("b", "double.py", "import time\ndef twice(x): time.sleep(100)\n");
  fs::create_directories(directory / "out");
  Program program({"grade", directory / "in", "-o", directory / "out/marks.csv", "--labs", directory / "labs"});
  const fs::path first = directory / "out/marks.feedback/a/double.json";
  for (int i = 0; i < 3000 && !fs::exists(first); ++i) usleep(10'000);
  program.signal(SIGINT);
  BOOST_TEST(program.wait().status == 130);
  BOOST_TEST(fs::exists(first));
  BOOST_TEST(!fs::exists(directory / "out/marks.feedback/b/double.json"));
  BOOST_TEST(!fs::exists(directory / "out/marks.csv"));
}

BOOST_FIXTURE_TEST_CASE(bad_input, Classroom) {
  check_refusal({"grade", "/nowhere", "-o", directory / "m.csv"}, {"/nowhere", "the directory does not exist"});
  fs::create_directories(directory / "in/a");
  // Arguments that are rejected before any grading.
  check_refusal({"grade", directory / "in", "-o", ""}, {"--output: ''"});
  check_refusal({"grade", directory / "in", "-o", directory / "in"}, {"table of marks"});
  // Tables and feedback among the submissions would be taken for submissions.
  for (const char* const place : {"in/m.csv", "in/a/m.csv", "in/new/../m.csv", "out/../in/m.csv"})
    check_refusal({"grade", directory / "in", "-o", directory / place, "--labs", directory / "labs"},
                  {"-o '", "whose entries are students; expected a file elsewhere"});
  check_refusal({"grade", directory / "in", "-o", directory / "m.csv", "--labs", directory / "labs"},
                {"no submission for a lab", "DIR/STUDENT/double.py"});
  check_refusal({"grade", directory / "in", "-o", directory / "m.csv", "--labs", directory / "labs", "--lab", "dubble"},
                {"no lab 'dubble'", "did you mean 'double'"});
}

// Compiled submissions: code that runs before main, calls of heed's own mechanisms, includes of files elsewhere, a hang
// in every point, and code that exhausts the compiler.
BOOST_FIXTURE_TEST_CASE(compiled_submissions, Classroom, *boost::unit_test::precondition(without_sanitizer)) {
  fs::create_directories(directory / "labs/softmax-backward");
  fs::copy_file("notebooks/labs/softmax-backward/lab.toml", directory / "labs/softmax-backward/lab.toml");
  const std::string solution = read_file(solution_file), file = "softmax-backward.h";
  const std::string system = "#include <csignal>\n#include <cstdio>\n#include <unistd.h>\n#include <fcntl.h>\n";
  const std::string target = (directory / "in/good/softmax-backward.h").string();
  const auto before_main = [&](const std::string& code) {
    return system + solution + "\nnamespace { const int before_main = [] { " + code + " return 0; }(); }\n";
  };
  hand_in("good", file, solution);
  hand_in("wild", file,
          before_main("for (int i = 0; i < 100000; ++i) std::puts(\"passed\"); kill(getppid(), SIGKILL); kill(-1, "
                      "SIGKILL); setsid(); for (int i = 0; i < 1000; ++i) if (fork() == 0) pause(); "
                      "open(\"" +
                      target + "\", O_WRONLY | O_TRUNC); unlink(\"" + target + "\");"));
  hand_in("forges", file,
          before_main("long m[] = {16, 1, 1, 8, 1}; write(3, m, sizeof m); std::puts(\"passed\"); _exit(0);"));
  hand_in(
      "floods", file,
      before_main("static long m[1 << 17] = {60 << 20}; for (int i = 0; i < 61; ++i) write(3, m, sizeof m); pause();"));
  hand_in(
      "asks", file,
      with(solution, "const auto [N, M, d, e] = in.shape.sizes();",
           "const auto [N, M, d, e] = in.shape.sizes();\n#ifdef __x86_64__\n long r = 41; __asm volatile(\"syscall\" "
           ": \"+a\"(r) : \"D\"(2), \"S\"(1), \"d\"(0) : \"rcx\", \"r11\", \"memory\");\n#endif\n"));
  hand_in("hangs", file,
          with(solution, "const Matrix<const T> A = saved[h];\n      // 3.",
               "const Matrix<const T> A = saved[h];\n      if (std::is_same_v<T, Counted>) for (;;) usleep(1000);\n    "
               "  // 3."));
  hand_in("hangs", "unused.h", "");
  write_file(directory / "in/hangs/softmax-backward.h", system + read_file(directory / "in/hangs/softmax-backward.h"));
  hand_in("copies", file,
          with(solution, "const auto [N, M, d, e] = in.shape.sizes();",
               "make_mechanism(\"softmax\", {}); const auto [N, M, d, e] = in.shape.sizes();"));
  hand_in("spies", file, solution + "\n#include \"" + target + "\"\n");
  hand_in("looks", file, solution + "\n#if __has_include(\"" + target + "\")\n#endif\n");
  hand_in("broken", file, with(solution, "const Matrix<T> A = saved[h];", "const Matrix<T> A = saved[h]"));
  hand_in("nothing", file, "passed\n");
  hand_in("endless", file, solution + "\ntemplate <int N> struct A { A<N + 1> a; };\ninline A<0> bomb;\n");
  hand_in("swollen", file,
          solution + "\n#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(x))))\nB(B(B(int f();)))\n");
  hand_in("zero", file, solution + "\n#include \"/dev/zero\"\n");
  hand_in("assembler", file, solution + "\nasm(\"nonsense 1\");\n");
  grade({"--jobs", "2"});
  BOOST_TEST(run.status == 0, run.err);
  const std::string full = "10,10,graded,gradient v 2/2; gradient q 3/3; gradient k 3/3; cost backward 2/2";
  BOOST_TEST(rows["good"] == full);
  BOOST_TEST(rows["wild"] == full, feedback("wild", "softmax-backward.txt"));
  BOOST_TEST(rows["hangs"] == "0,10,graded,gradient v 0/2; gradient q 0/3; gradient k 0/3; cost backward 0/2");
  BOOST_TEST(rows["forges"].starts_with("0,10,graded"));
  check_contains(feedback("floods", "softmax-backward.txt"), {"its results cannot be read"});
  check_contains(flags["floods"], {"calls pause, write"});
#ifdef __x86_64__
  BOOST_TEST(rows["asks"] == full);
  check_contains(flags["asks"], {"uses __asm", "was refused socket"});
#endif
  BOOST_TEST(flags["good"].find("refused") == std::string::npos, flags["good"]);
  check_contains(flags["wild"], {"was refused changed file, fork or thread, kill, open for writing, setsid"});
  BOOST_TEST(flags["wild"].find("calls fork, kill, open, pause, setsid, unlink") != std::string::npos, flags["wild"]);
  for (const char* const student : {"copies", "broken", "nothing", "endless", "swollen", "zero", "assembler"})
    BOOST_TEST(rows[student].starts_with("0,10,refused"), student);
  check_contains(feedback("endless", "softmax-backward.txt"), {"template instantiation depth exceeds"});
  check_contains(feedback("swollen", "softmax-backward.txt"), {"the compiler was stopped: it uses more than 3 GB"});
  check_contains(feedback("assembler", "softmax-backward.txt"), {"assembler error: no such instruction"});
  check_contains(feedback("copies", "softmax-backward.txt"), {"make_mechanism", "may not"});
  check_contains(feedback("broken", "softmax-backward.txt"), {"softmax-backward.h:", "expected"});
  check_contains(feedback("nothing", "softmax-backward.txt"),
                 {"\nsoftmax-backward.h: the mechanism's class is not named"});
  check_contains(feedback("hangs", "softmax-backward.txt"),
                 {"it was idle for more than 10 s", "the same as for gradient v"});
  if (has_landlock()) {
    BOOST_TEST(rows["spies"].starts_with("0,10,refused"));
    check_contains(feedback("looks", "softmax-backward.txt"), {"Permission denied"});
  }
  BOOST_TEST(read_file(target) == solution);
}

// Answers to questions are marked by a person: they are shown beside the rubric and a model answer, and do not change
// marks.
BOOST_FIXTURE_TEST_CASE(answers_to_questions, Classroom) {
  write(directory / "solutions/questions/05-sima.toml",
        "[[questions]]\nid = \"1\"\nmarks = 2\nrubric = \"1: why.\"\nanswer = \"Since it is.\"\n"
        "[[questions]]\nid = \"2\"\nmarks = 1\nrubric = \"1: how.\"\nanswer = \"So.\"\n");
  const std::string cells =
      R"({"cells": [{"metadata": {}, "source": "text"}, {"metadata": {"tags": ["answer-1"]}, "source": )"
      R"(["*Your answer to question 1:*\n", "\n", "It must be."]}]})";
  for (const char* const student : {"plain", "browser", "broken"})
    hand_in(student, "double.py", "def twice(x): return 2 * x\n");
  hand_in("plain", "05-sima.ipynb", cells);
  hand_in("browser", "week 5/05_Sima (1).ipynb", cells);
  hand_in("broken", "05-sima.ipynb", "{\"cells\": 3}");
  grade();
  BOOST_TEST(run.status == 0, run.err);
  for (const char* const student : {"plain", "browser"}) {
    BOOST_TEST(rows[student] == "2,2,graded,twice 2/2");
    check_contains(feedback(student, "feedback.txt"),
                   {"05-sima: answers, marked by a person: ____ of 3 marks\n\nquestion 1: ____ of 2 marks\n  answer\n"
                    "    It must be.\n  rubric\n    1: why.\n  model answer\n    Since it is.\n",
                    "question 2: ____ of 1 marks\n  answer\n    none\n"});
  }
  check_contains(feedback("broken", "feedback.txt"), {"it cannot be read\n    JSON: expected a list"});
  BOOST_TEST(run.err.find("not recognised") == std::string::npos, run.err);
}

// A cell's source is a list of lines or one string. A prompt alone does not count as an answer; an answer may begin on
// the prompt's line, and extend over several cells.
BOOST_FIXTURE_TEST_CASE(answers_of_two_notebooks, Classroom) {
  write(directory / "solutions/questions/05-sima.toml",
        "[[questions]]\nid = \"1\"\nmarks = 2\nrubric = \"1: why.\"\nanswer = \"Since it is.\"\n"
        "[[questions]]\nid = \"2\"\nmarks = 1.5\nrubric = \"1: how.\"\nanswer = \"So.\"\n");
  write(directory / "solutions/questions/06-aft.toml",
        "[[questions]]\nid = \"1\"\nmarks = 4\nrubric = \"2: where.\"\nanswer = \"Here.\"\n");
  hand_in("ann", "double.py", "def twice(x): return 2 * x\n");
  hand_in("ann", "05-sima.ipynb",
          R"({"cells": [{"metadata": {"tags": ["answer-1"]}, "source": "*Your answer to question 1:*"},)"
          R"({"metadata": {"tags": ["x", "answer-2"]}, "source": "*Your answer to question 2:*\n\nThus,\nso.\n"}]})");
  hand_in("ann", "06-aft.ipynb",
          R"({"cells": [{"metadata": {"tags": ["answer-1"]}, "source": ["It is\n", "local."]}]})");
  grade();
  check_contains(feedback("ann", "feedback.txt"),
                 {"\n----\n\n05-sima: answers, marked by a person: ____ of 3.5 marks\n"
                  "\nquestion 1: ____ of 2 marks\n  answer\n    none\n  rubric\n    1: why.\n  model answer\n"
                  "    Since it is.\n"
                  "\nquestion 2: ____ of 1.5 marks\n  answer\n    Thus,\n    so.\n  rubric\n    1: how.\n"
                  "  model answer\n    So.\n"
                  "\n----\n\n06-aft: answers, marked by a person: ____ of 4 marks\n"
                  "\nquestion 1: ____ of 4 marks\n  answer\n    It is\n    local.\n  rubric\n    2: where.\n"
                  "  model answer\n    Here.\n"});
  hand_in("ann", "05-sima.ipynb",
          R"({"cells": [{"metadata": {"tags": ["answer-1"]}, "source": "*Your answer to question 1:* It must be."},)"
          R"({"metadata": {"tags": ["answer-1"]}, "source": ["It: is.\n", "So *there*."]},)"
          R"({"metadata": {"tags": ["answer-2"]}, "source": "*Your answer to question 2: thus*"},)"
          R"({"metadata": {"tags": ["answer-2"]}, "source": "*Your answer to question 2:*"}]})");
  hand_in("ann", "06-aft.ipynb",
          R"({"cells": [{"metadata": {"tags": ["answer-1"]}, "source": "*Your answer: the report.*\nText."}]})");
  grade();
  check_contains(feedback("ann", "feedback.txt"),
                 {"  answer\n    It must be.\n\n    It: is.\n    So *there*.\n  rubric",
                  "  answer\n    thus*\n  rubric", "  answer\n    Text.\n  rubric"});
}

// Markdown cells that students add or change are shown, too, such as all answers of a notebook without tags. A class
// may hand in notebooks alone.
BOOST_FIXTURE_TEST_CASE(text_in_other_cells, Classroom) {
  write(directory / "solutions/questions/05-sima.toml",
        "[[questions]]\nid = \"1\"\nmarks = 2\nrubric = \"1: why.\"\nanswer = \"Since it is.\"\n");
  const auto cells = [](const std::string& tags, const std::string& answer, const std::string& more) {
    return R"({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["**Question 1.**\n", "Why?"]},)"
           R"({"cell_type": "markdown", "metadata": {)" +
           tags + R"(}, "source": "*Your answer to question 1:*)" + answer +
           R"("}, {"cell_type": "code", "metadata": {}, "source": "1"})" + more + "]}";
  };
  const std::string tags = R"("tags": ["answer-1"])";
  write(directory / "05-sima.ipynb", cells(tags, "", ""));
  hand_in("same", "05-sima.ipynb", cells(tags, " It is.", ""));
  hand_in("added", "05-sima.ipynb",
          cells(tags, "", R"(, {"cell_type": "markdown", "metadata": {}, "source": "It must\nbe."})"));
  hand_in("untagged", "05-sima.ipynb", cells("", " It is.", ""));
  hand_in("empty", "05-sima.ipynb", cells("", "", ""));
  grade();
  BOOST_TEST(run.status == 0, run.err);
  const std::string other = "\n  text in another cell\n";
  for (const char* const student : {"same", "empty"})
    BOOST_TEST(feedback(student, "feedback.txt").find(other) == std::string::npos);
  check_contains(feedback("same", "feedback.txt"), {"  answer\n    It is.\n"});
  check_contains(feedback("added", "feedback.txt"),
                 {"  answer\n    none\n", "Since it is.\n" + other + "    It must\n    be.\n"});
  check_contains(feedback("untagged", "feedback.txt"), {other + "    *Your answer to question 1:* It is.\n"});
}

BOOST_AUTO_TEST_SUITE_END()
