// heed grade: grades a class's submissions, each in a separate process.
#include "src/apps/cli/shared/children.h"
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/output_file.h"
#include "grade_tables.h"
#include "src/apps/cli/shared/progress_line.h"

#include "heed/io/checksum.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/bench/timing.h"
#include "heed/io/file.h"
#include "heed/io/utf8.h"
#include "heed/train/processes/core_count.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <random>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

struct GradeOptions {
  std::string directory, output, labs, roster, due, student;
  std::vector<std::string> only;
  int jobs = 0;
  Index seed = -1;
};

/// Reads a table. Throws Error if its text is not UTF-8.
std::string read_utf8(const std::string& file) {
  std::string text = read_text_file(file);
  require(is_utf8(text), "{}: is not UTF-8; convert it with `iconv -f WINDOWS-1252 -t UTF-8 OLD >NEW`", file);
  return text;
}

class Class {
 public:
  explicit Class(const GradeOptions& options) : options_(options) {
    require(fs::is_directory(options.directory),
            "{}: the directory does not exist; expected a directory of submissions", options.directory);
    std::error_code missing;
    require(!fs::exists(options.output, missing) || fs::is_regular_file(options.output),
            "-o {}: expected a file for the table of marks", in_quotes(options.output));
    const auto [gradebook, roster, summary] = book_files(options.output);
    for (const std::string& file : {options.output, gradebook, roster, summary})
      require_own_file({"the table", file}, {{"--roster", options.roster}, {"--due", options.due}});
    const fs::path within = fs::weakly_canonical(fs::absolute(options.output).parent_path())
                                .lexically_relative(fs::canonical(options.directory));
    require(*within.begin() == "..", "-o {}: lies in {}, whose entries are students; expected a file elsewhere",
            in_quotes(options.output), options.directory);
    feedback_ = beside(options.output, ".feedback");
    const std::string place = options.labs.empty() ? labs_place() : options.labs;
    all_labs_ = labs_in(place);
    questions_ = questions_of(fs::path(place).parent_path());
    std::vector<ExpectedFile> expected;
    for (const Lab& lab : all_labs_) expected.push_back({lab.name, lab.file()});
    for (const QuestionSheet& one : questions_) expected.push_back({one.notebook, one.file()});
    intake_.emplace(options.directory, std::move(expected));
    students_ = intake_->students();
    student_ = intake_->student_of(options.student);
    if (!options.roster.empty()) roster_ = read_csv(read_utf8(options.roster));
    if (!options.due.empty()) due_ = read_csv(read_utf8(options.due));
    require(options.due.empty() || !due_.empty(), "{}: has no due dates; expected lines LAB,2026-11-30 18:00",
            options.due);
    require_due(due_, lab_names());
    require(options.roster.empty() || roster_.size() > 1,
            "{}: has no students; expected a CSV file with a header of column names", options.roster);
    const auto others = [](const std::string& text) {
      return std::ranges::count_if(text, [](char c) { return c == ';' || c == '\t'; });
    };
    require(roster_.empty() || others(fmt::format("{}", fmt::join(roster_[0], ""))) < std::ssize(roster_[0]),
            "{}: its columns are separated by semicolons or tabs; expected commas", options.roster);
    require(options.student.empty() || std::ranges::find(students_, student_) != students_.end(),
            "grade: {} has no student {}{}", options.directory, in_quotes(options.student),
            suggestion(options.student, students_));
    intake_->list_not_recognised(std::cerr, "heed: not recognised: ");
    require(!students_.empty(), "{}: has no directories of students", options.directory);
    find_labs(place);
    find_roster_rows();
    std::set<std::string> without_identity;
    for (const Lab& lab : labs_)
      for (std::size_t i = 0; i < students_.size(); ++i)
        if (lab.kind == LabKind::personal && !intake_->file_of(students_[i], lab.name).empty()) {
          require_composed(identity_of(i));
          if (!roster_.empty() && roster_identity(i).empty()) without_identity.insert(students_[i]);
        }
    if (!without_identity.empty())
      std::cerr << fmt::format(
          "heed: {} gives no identity for {} (columns {}); their personal labs are graded for "
          "the names of their submissions\n",
          options.roster, printable(fmt::format("{}", fmt::join(without_identity, ", "))), identity_column_names());
  }

  int operator()() {
    fs::create_directories(feedback_);
    const DirectoryLock lock(feedback_);
    choose_seed();
    prepare();
    find_submissions();
    if (!grade_all()) return interrupted;
    const std::size_t failed = write_tables(
        {options_.output, feedback_, *intake_, labs_, submissions_, questions_, roster_, due_, roster_rows_});
    return failed == 0 ? ok : check_failed;
  }

 private:
  /// Returns true if the student handed in at least one file for the lab, even if it is unclear which one counts.
  bool has(const std::string& student, const Lab& lab) const {
    return !intake_->file_of(student, lab.name).empty() ||
           std::ranges::any_of(intake_->not_recognised(),
                               [&](const NotRecognised& one) { return one.student == student && one.lab == lab.name; });
  }

  std::vector<std::string> lab_names() const {
    std::vector<std::string> names;
    for (const Lab& lab : all_labs_) names.push_back(lab.name);
    return names;
  }

  /// Selects the labs of --lab; without it, all labs that were handed in.
  void find_labs(const std::string& place) {
    const std::vector<std::string> known = lab_names();
    std::string file = "LAB.h";
    for (const Lab& lab : all_labs_) {
      file = lab.file();
      const bool asked = std::ranges::find(options_.only, lab.name) != options_.only.end();
      const bool handed_in =
          std::ranges::any_of(students_, [&](const std::string& student) { return has(student, lab); });
      if (asked || (options_.only.empty() && handed_in)) labs_.push_back(lab);
    }
    for (const std::string& name : options_.only)
      require(std::ranges::find(known, name) != known.end(), "grade: {} has no lab {}{}", place, in_quotes(name),
              suggestion(name, known));
    const bool answers = std::ranges::any_of(questions_, [&](const QuestionSheet& one) {
      return std::ranges::any_of(
          students_, [&](const std::string& student) { return !intake_->file_of(student, one.notebook).empty(); });
    });
    require(!labs_.empty() || answers, "{}: no submission for a lab in {}; expected DIR/STUDENT/{}", options_.directory,
            place, file);
  }

  /// Sets the seed to --seed, to that of an earlier run with this output, or to a random one.
  void choose_seed() {
    const std::string file = feedback_ / "run.json";
    if (options_.seed >= 0)
      seed_ = static_cast<std::uint64_t>(options_.seed);
    else if (fs::exists(file))
      seed_ = static_cast<std::uint64_t>(take_json(file, [](const Json& json) { return json.at("seed").integer(); }));
    else
      seed_ = (static_cast<std::uint64_t>(std::random_device{}()) << 20) ^ std::random_device{}();
    write_file(file, Json::object({{"seed", static_cast<Index>(seed_)}, {"version", HEED_VERSION}}).dump(2) + "\n");
  }

  void prepare() {
    use_threads(1);  // fork() copies only the calling thread
    if (!has_landlock())
      std::cerr << "heed: this kernel has no Landlock: submissions can read other files, but not write them\n";
    if (!Confined({"/bin/true"}, {.directory = work_.path()}).is_recorded())
      std::cerr << "heed: this kernel does not report refused system calls: the flags cannot name them\n";
    if (std::ranges::any_of(labs_, &Lab::is_compiled)) headers_ = std::make_unique<SharedHeaders>();
    for (const Lab& lab : labs_) {
      graders_.push_back(std::make_unique<LabGrader>(lab, seed_, headers_.get()));
      lab_marks_.push_back(fmt::format("{} {} {}", HEED_VERSION, seed_, checksum(graders_.back()->material())));
    }
  }

  void find_submissions() {
    for (std::size_t index = 0; index < students_.size(); ++index) {
      const std::string &student = students_[index], identity = identity_of(index);
      for (std::size_t i = 0; i < labs_.size(); ++i) {
        const std::string file = intake_->file_of(student, labs_[i].name);
        if (file.empty()) continue;
        Submission one{student, file, identity, graders_[i].get(), feedback_ / student / labs_[i].name, ""};
        one.mark = lab_marks_[i] + " " + one.identity + " " + checksum(one.text());
        submissions_.push_back(std::move(one));
      }
    }
  }

  /// Finds the students' rows in the roster. Prints the students without a row on stderr.
  void find_roster_rows() {
    if (roster_.empty()) return;
    std::vector<PlatformName> names;
    for (const std::string& student : students_) names.push_back({student, intake_->numbers_of(student)});
    roster_rows_ = roster_rows(roster_, names);
    for (std::size_t i = 0; i < students_.size(); ++i)
      if (const std::string& problem = roster_rows_[i].problem; !problem.empty())
        std::cerr << fmt::format("heed: {}: {} in {}; no marks are filled in\n", printable(students_[i]), problem,
                                 options_.roster);
  }

  /// Returns a student's identity in the roster; the student's name if the roster gives no identity.
  std::string identity_of(std::size_t student) const {
    const std::string identity = roster_identity(student);
    return identity.empty() ? students_[student] : identity;
  }

  /// Returns a student's identity in the roster; empty if the roster gives none.
  std::string roster_identity(std::size_t student) const {
    const std::size_t row = roster_.empty() ? 0 : roster_rows_[student].row;
    return row > 0 ? identity_in(roster_, row) : "";
  }

  /// Grades a submission; runs in a child process.
  int grade_one(const Submission& one) const {
    end_with_confined();
    setenv("TMPDIR", work_.path().c_str(), 1);  // the parent removes the directory even if this process is killed
    const LabResult result = one.grader->grade(one.file, one.identity);
    const Lab& lab = one.grader->lab();
    Json json = json_of(lab, result);
    json["student"] = one.student;
    json["calls"] = result.calls;
    json["refused"] = std::vector<std::string>(result.refused.begin(), result.refused.end());
    json["graded"] = one.mark;
    fs::create_directories(feedback_ / one.student);
    write_file(one.place + ".txt", text_of(lab, result));
    write_file(one.place + ".json", json.dump(2) + "\n");
    return ok;
  }

  bool grade_all() {
    std::vector<const Submission*> waiting;
    for (const Submission& one : submissions_)
      if (options_.student.empty() ? !one.result() : one.student == student_) waiting.push_back(&one);
    if (waiting.size() < submissions_.size() && options_.student.empty())
      std::cerr << fmt::format("{} of {} submissions are already graded\n", submissions_.size() - waiting.size(),
                               submissions_.size());
    const std::size_t jobs = static_cast<std::size_t>(options_.jobs > 0 ? options_.jobs : default_threads().count);
    Children children;
    std::map<pid_t, const Submission*> running;
    const bench::Clock::time_point start = bench::Clock::now();
    for (std::size_t next = 0, done = 0; children.any() || (next < waiting.size() && !children.interrupted());) {
      while (running.size() < jobs && next < waiting.size() && !children.interrupted()) {
        const Submission* const one = waiting[next++];
        running[children.start([this, one] { return grade_one(*one); })] = one;
      }
      for (const Children::Ended& ended : children.wait()) {
        const Submission& one = *running[ended.process];
        running.erase(ended.process);
        ++done;
        if (!children.interrupted()) say(one, done, waiting.size(), bench::seconds_since(start));
      }
    }
    return !children.interrupted();
  }

  void say(const Submission& one, std::size_t done, std::size_t all, double seconds) {
    std::string result = "not graded: see above";
    if (const std::optional<Json> json = one.result())
      result = fmt::format("{:g} of {:g} marks", json->at("marks").number(), json->at("of").number());
    const double left = seconds / static_cast<double>(done) * static_cast<double>(all - done);
    std::cerr << fmt::format("[{}/{}] {} {}: {}{}\n", done, all, one.student, one.grader->lab().name, result,
                             done < all ? fmt::format(", {} left", duration(left)) : "");
  }

  const GradeOptions& options_;
  std::string student_;  ///< name of --student, as the submissions spell it
  fs::path feedback_;
  std::vector<Lab> all_labs_, labs_;
  std::vector<QuestionSheet> questions_;
  std::optional<Intake> intake_;
  CsvRows roster_, due_;
  std::vector<RosterRow> roster_rows_;  ///< by index in students_; empty without --roster
  std::vector<std::string> students_;
  std::uint64_t seed_ = 0;
  PrivateDirectory work_;
  std::unique_ptr<SharedHeaders> headers_;
  std::vector<std::unique_ptr<LabGrader>> graders_;  ///< by index in labs_
  std::vector<std::string> lab_marks_;
  std::vector<Submission> submissions_;
};

}  // namespace

void add_grade(Command program) {
  static GradeOptions options;
  Command command = program.command("grade", "Grade a class's lab submissions");
  command.option("DIR", &options.directory, "submissions: DIR/STUDENT/LAB.h, or DIR/STUDENT/LAB/LAB.h",
                 {.required = true});
  command.option("-o,--output", &options.output, "the table of marks; feedback is written beside it, to NAME.feedback",
                 {.value = "FILE", .required = true});
  command.option("--lab", &options.only, "a lab to grade; repeatable; default: all labs with submissions",
                 {.value = "NAME", .one_each = true});
  command.option("--labs", &options.labs, "the directory of labs; default: notebooks/labs", {.value = "DIR"});
  command.option(
      "--roster", &options.roster,
      "gradebook of Moodle or Canvas (CSV), from which identities are read; NAME.roster.csv is a copy with the marks",
      {.value = "FILE"});
  command.option("--due", &options.due, "due dates for counting late days, in lines LAB,2026-11-30 18:00; LAB may be *",
                 {.value = "FILE"});
  command.option("--student", &options.student, "regrade only this student", {.value = "NAME"});
  command.option("--jobs", &options.jobs, "submissions graded at the same time; default: the number of cores",
                 {.value = "N", .range = {{1, 256}}});
  command.option("--seed", &options.seed,
                 "random seed of the hidden inputs; default: the seed already used here, or a new one",
                 {.value = "N", .range = {{0, 9e15}}});
  command.footer(
      "Each submission runs in separate processes with limits. Graded submissions are not graded again. The exit "
      "status is 0 if all submissions were graded, whatever their marks (docs/grading.md).");
  command.action([] { return Class(options)(); });
}

}  // namespace heed::cli
