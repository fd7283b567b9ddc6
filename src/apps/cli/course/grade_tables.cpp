#include "grade_tables.h"

#include "likeness.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <iostream>
#include <map>
#include <sstream>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// Returns the text, prefixed with an apostrophe if a spreadsheet would take it for a formula.
std::string no_formula(const std::string& text) { return (text.find_first_of("=+-@") == 0 ? "'" : "") + text; }

/// Writer of a class's tables, feedback and page of similar submissions.
class Writer {
 public:
  explicit Writer(const GradedClass& graded) : class_(graded) {}

  /// Writes all files; the table of marks has a row for each student and lab. Returns the number of submissions that
  /// are not graded.
  std::size_t write_table() {
    find_flags();
    ClassResults results{class_.labs, {}};
    Table table;
    table.data({"student", "lab", "marks", "of", "state", "points", "flags"});
    std::size_t next = 0;
    for (const std::string& student : class_.intake.students()) {
      const std::size_t index = results.students.size();
      results.students.push_back({student, class_.roster.empty() ? 0 : class_.roster_rows[index].row, {}});
      for (std::size_t i = 0; i < class_.labs.size(); ++i) {
        const bool handed_in = next < class_.submissions.size() && class_.submissions[next].student == student &&
                               class_.submissions[next].grader->lab().name == class_.labs[i].name;
        std::string marks = "0", state = "missing", points, flags;
        LabRow& row = results.students.back().rows.emplace_back();
        if (handed_in) {
          flags = flags_[&class_.submissions[next]];
          read_row(class_.submissions[next++], row, marks, state, points);
        } else {
          read_missing(student, class_.labs[i].name, state, points);
        }
        row.state = points.empty() || handed_in ? state : state + "; " + points;
        table.add({no_formula(student), class_.labs[i].name, marks, fmt::format("{:g}", class_.labs[i].marks()), state,
                   no_formula(points), no_formula(flags)});
      }
    }
    write_file(class_.output, table.csv());
    write_books(results);
    std::ostringstream list;
    class_.intake.list_not_recognised(list, "");
    write_file(class_.feedback / "not-recognised.txt", list.str());
    std::cout << fmt::format("{}: {}, {}; feedback in {}\n", class_.output,
                             counted(std::ssize(class_.intake.students()), "student"),
                             counted(std::ssize(class_.submissions), "submission"), class_.feedback.string());
    return failed_;
  }

 private:
  /// Flags suspicious words, system calls and similar submissions; writes the page of similar pairs.
  void find_flags() {
    std::string page;
    for (std::size_t i = 0; i < class_.labs.size(); ++i) {
      const Lab& lab = class_.labs[i];
      std::vector<const Submission*> works;
      std::vector<std::string> texts, stubs;
      for (const Submission& one : class_.submissions)
        if (one.grader->lab().name == lab.name)
          works.push_back(&one), texts.push_back(one.text()), stubs.push_back(file_for(lab, one.identity));
      for (std::size_t w = 0; w < works.size(); ++w)
        if (const std::string words = suspicious_words(texts[w], stubs[w], lab.kind); !words.empty())
          add_flag(*works[w], "uses " + words);
      for (const Submission* const work : works)
        for (const auto& [key, verb] : {std::pair{"calls", "calls "}, std::pair{"refused", "was refused "}})
          if (const std::string names = listed(*work, key); !names.empty()) add_flag(*work, verb + names);
      for (const SimilarPair& pair : similar_pairs(texts, stubs, lab.kind)) {
        const Submission &first = *works[pair.first], &second = *works[pair.second];
        const bool identical = texts[pair.first] == texts[pair.second];
        const std::string alike = identical ? "identical" : fmt::format("{:.0f} % alike", 100 * pair.alike);
        add_flag(first, fmt::format("{}: {}", alike, second.student));
        add_flag(second, fmt::format("{}: {}", alike, first.student));
        page += pair_section(fmt::format("{}: {} and {}, {}", lab.name, first.student, second.student, alike),
                             texts[pair.first], texts[pair.second]);
      }
    }
    if (page.empty()) page = "<p>No two submissions are similar.</p>\n";
    write_file(class_.feedback / "pairs.html",
               "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Similar submissions</title>\n" + page);
  }

  static std::string listed(const Submission& one, const std::string& key) {
    std::string names;
    const std::optional<Json> result = one.result();
    if (!result || !result->contains(key)) return names;
    for (const Json& name : result->at(key).items()) names += (names.empty() ? "" : ", ") + printable(name.text());
    return names;
  }

  void add_flag(const Submission& one, const std::string& flag) {
    std::string& flags = flags_[&one];
    flags += (flags.empty() ? "" : "; ") + flag;
  }

  /// Writes the gradebook, the filled-in roster (if one is given), the summary, and a feedback file for each student.
  void write_books(const ClassResults& results) const {
    const auto [gradebook_file, roster_file, summary_file] = book_files(class_.output);
    CsvRows book = gradebook(results);
    for (std::vector<std::string>& row : book) row[0] = no_formula(row[0]);
    write_file(gradebook_file, csv_of(book));
    if (!class_.roster.empty()) write_file(roster_file, csv_of(filled_roster(results, class_.roster)));
    write_file(summary_file, summary_of(results));
    for (const ClassResults::Student& student : results.students) {
      fs::create_directories(class_.feedback / student.name);
      write_file(class_.feedback / student.name / "feedback.txt",
                 feedback_for(results, student) + answers_of(student.name));
    }
  }

  /// Returns the answers to questions in the student's notebooks.
  std::string answers_of(const std::string& student) const {
    std::string text;
    for (const QuestionSheet& one : class_.questions) {
      const std::string file = class_.intake.file_of(student, one.notebook);
      if (!file.empty()) text += "\n----\n\n" + answers_to_mark(one, file);
    }
    return text;
  }

  /// Describes a lab without a recognised file, naming the student's files that may belong to it.
  void read_missing(const std::string& student, const std::string& lab, std::string& state, std::string& points) {
    for (const NotRecognised& one : class_.intake.not_recognised()) {
      if (one.student != student || (!one.lab.empty() && one.lab != lab)) continue;
      if (!one.lab.empty()) state = "not recognised";
      points += fmt::format("{}not recognised: {}", points.empty() ? "" : "; ", one.file);
    }
  }

  /// Describes a submission: `row` is for the gradebook, feedback and summary, the other arguments for the table of
  /// marks.
  void read_row(const Submission& one, LabRow& row, std::string& marks, std::string& state, std::string& points) {
    const std::optional<Json> json = one.result();
    if (!json) {
      ++failed_;
      marks = "", state = "not graded";
      return;
    }
    row.marks = json->at("marks").number();
    row.feedback = read_file(one.place + ".txt");
    marks = fmt::format("{:g}", *row.marks);
    state = json->at("problem").text().empty() ? "graded" : "refused";
    for (const Json& point : json->at("points").items()) {
      const std::string name = point.at("name").text();
      const double got = point.at("marks").number();
      row.points.emplace_back(name, got > 0);
      points += fmt::format("{}{} {:g}/{:g}", points.empty() ? "" : "; ", name, got, point.at("of").number());
    }
    struct stat info {};
    if (lstat(one.file.c_str(), &info) == 0) row.late = late_days(class_.due, one.grader->lab().name, info.st_mtime);
  }

  const GradedClass& class_;
  std::map<const Submission*, std::string> flags_;
  std::size_t failed_ = 0;
};

}  // namespace

std::string Submission::text() const {
  try {
    return read_submission(file);
  } catch (const Error& error) {
    return error.what();
  }
}

std::optional<Json> Submission::result() const {
  try {
    Json result = take_json(place + ".json", std::identity());
    if (result.at("graded").text() == mark) return result;
  } catch (const Error&) {
  }
  return {};
}

fs::path beside(fs::path output, const char* ending) {
  if (output.extension() == ".csv") output.replace_extension();
  return output += ending;
}

BookFiles book_files(const fs::path& output) {
  return {beside(output, ".gradebook.csv"), beside(output, ".roster.csv"), beside(output, ".summary.txt")};
}

std::size_t write_tables(const GradedClass& graded) { return Writer(graded).write_table(); }

}  // namespace heed::cli
