// heed lab: single labs of a course, for students and instructors. heed grade grades a whole class.
#include "src/apps/cli/shared/commands.h"
#include "lab_grading.h"
#include "plain_text.h"
#include "src/apps/cli/plugins/plugin_compile.h"
#include "src/apps/cli/plugins/plugins.h"

#include "heed/base/suggest.h"
#include "heed/io/file.h"
#include "src/apps/grading/marks/answer_marks.h"

#include <filesystem>
#include <iostream>
#include <random>
#include <regex>
#include <set>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// File in a personal lab's directory that contains the student's identity.
constexpr const char* identity_file = "student.txt";

struct CheckOptions {
  std::string lab, file, student;
  Index seed = -1;
  bool json = false;
};

/// Throws Error if an identity is given for a lab that is not personal, or if the identity is not valid.
void require_personal(const Lab& lab, const std::string& student) {
  require(lab.kind == LabKind::personal || student.empty(), "lab: --student is for personal labs; {} is none",
          lab.name);
  require(student.empty() || !plain_identity(student).empty(), "lab: --student {}: is blank; expected an identity",
          in_quotes(student));
}

std::string identity_of(const Lab& lab, const std::string& given) {
  require_personal(lab, given);
  if (lab.kind != LabKind::personal || !given.empty()) return given;
  const fs::path file = fs::path(lab.directory) / identity_file;
  require(fs::exists(file), "lab: {} is a personal lab; expected --student ID, or a directory made by `heed lab new`",
          lab.name);
  const std::string identity = plain_identity(plain_text(read_file(file, 1000)));
  require(!identity.empty(), "{}: is empty; expected the student's identity", file.string());
  return identity;
}

int check_command(const CheckOptions& options) {
  const Lab lab = find_lab(options.lab);
  const std::string student = identity_of(lab, options.student);
  const std::string file = options.file.empty() ? lab.directory + "/" + lab.file() : options.file;
  require(fs::is_regular_file(file), "{}: the file does not exist; expected the file to check", file);
  use_threads(1);
  const std::uint64_t seed = options.seed >= 0 ? static_cast<std::uint64_t>(options.seed) : std::random_device{}();
  const LabGrader grader(lab, seed, nullptr);
  const LabResult result = grader.grade(file, student);
  std::cout << (options.json ? json_of(lab, result).dump(2) + "\n" : text_of(lab, result));
  return result.sum(lab) == lab.marks() ? ok : check_failed;
}

int new_command(const std::string& name, const std::string& student, const std::string& output) {
  const Lab lab = find_lab(name);
  const fs::path place = fs::path(output) / lab.name, file = place / lab.file();
  const bool personal = lab.kind == LabKind::personal;
  require(!personal || !student.empty(), "lab: {} is a personal lab; expected --student ID", lab.name);
  require_personal(lab, student);
  require(student.find('\n') == std::string::npos, "lab: --student has more than one line");
  const std::string text = personal ? file_for(lab, student) : read_file(lab.directory + "/" + lab.file());
  fs::create_directories(place);
  require(!fs::exists(file), "{}: already exists; left unchanged", file.string());
  write_file(file, text);
  for (const char* const part : {"lab.toml", "judge.py", "calls.py"})
    if (fs::exists(fs::path(lab.directory) / part) && !fs::exists(place / part))
      write_file(place / part, read_file(lab.directory + "/" + part));
  if (personal) write_file(place / identity_file, student + "\n");
  std::cout << fmt::format("{}\nnext: {} lab check {}\n", file.string(), program_name(), shell_word(place.string()));
  return ok;
}

/// Page for students in the directory of notebooks; in a bundle, it replaces the instructor's README.md.
constexpr const char* student_page = "for-students.md";

/// Copies a file and makes the copy writable for its owner, as an installed file may be read-only.
void copy_writable(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to);
  fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
}

/// Copies a directory for students: without solutions, files named in `pages`, hidden files, links, and files written
/// by running the notebooks. Names the links on stderr.
void copy_for_students(const fs::path& from, const fs::path& to, const std::set<std::string>& pages = {}) {
  if (!fs::is_directory(from)) return;
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename();
    if (name[0] == '.' || name == "solutions" || name == "runs" || name == "__pycache__" || pages.contains(name))
      continue;
    if (entry.is_symlink()) {
      std::cerr << fmt::format("heed: {}: left out: it is a symbolic link\n", entry.path().string());
      continue;
    }
    if (entry.is_directory()) copy_for_students(entry.path(), to / name, pages);
    if (entry.is_regular_file()) copy_writable(entry.path(), to / name);
  }
}

/// Returns the files outside a directory that its notebooks and pages link to, such as src/attention/softmax.cpp.
std::set<std::string> linked_files(const fs::path& pages) {
  static const std::regex link("\\]\\(\\.\\./([^)#.][^)#]*)");
  std::set<std::string> files;
  if (!fs::is_directory(pages)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(pages)) {
    if (entry.path().extension() != ".ipynb" && entry.path().extension() != ".md") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) files.insert((*at)[1]);
  }
  return files;
}

/// Replaces links to files that are not in the bundle by their text, on all pages of a directory.
void drop_dead_links(const fs::path& pages) {
  static const std::regex link("!?\\[([^\\]]+)\\]\\((?!https?:)([^)#, ]+[./][^)#, ]+)(#[^)]*)?\\)");
  if (!fs::is_directory(pages)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(pages)) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = read_file(entry.path());
    std::string kept, rest = text;
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      kept += at->prefix().str() + (fs::exists(pages / at->str(2)) ? at->str() : at->str(1));
      rest = at->suffix();
    }
    write_file(entry.path(), kept + rest);
  }
}

/// Copies the notebooks with their labs, the documentation, the models, and the other files that the notebooks and the
/// documentation link to.
void copy_course(const fs::path& notebooks, const fs::path& to) {
  const fs::path above = notebooks / "..";
  copy_for_students(notebooks, to / "notebooks", {"README.md", student_page});  // README.md is for the instructor
  for (const char* const part : {"docs", "models"}) copy_for_students(above / part, to / part);
  if (fs::exists(notebooks / student_page)) copy_writable(notebooks / student_page, to / "notebooks/README.md");
  std::set<std::string> linked = linked_files(notebooks);
  linked.merge(linked_files(above / "docs"));
  for (const std::string& file : linked) {
    if (!fs::is_regular_file(above / file) || file.starts_with("notebooks/")) continue;
    fs::create_directories((to / file).parent_path());
    if (!fs::exists(to / file)) copy_writable(above / file, to / file);
  }
  for (const char* const pages : {"docs", "notebooks"}) drop_dead_links(to / pages);
}

int bundle_command(const std::string& output) {
  const fs::path place = fs::path(labs_place()).parent_path();
  require(fs::is_directory(place / "labs") || labs_place() == "labs", "lab: no labs found");
  const fs::path notebooks = place.empty() ? fs::path(".") : place;
  const bool archive = output.ends_with(".tar.gz");
  for (const char* const other : {".zip", ".tar", ".tgz", ".tar.bz2", ".tar.xz"})
    require(!output.ends_with(other), "-o {}: expected a file that ends in .tar.gz, or a directory", in_quotes(output));
  require(!fs::exists(output) || (archive && fs::is_regular_file(output)), "{}: already exists", output);
  const fs::path target = fs::weakly_canonical(fs::current_path() / output);
  for (const fs::path& copied : {notebooks, notebooks / "../docs", notebooks / "../models"}) {
    const fs::path source = fs::weakly_canonical(fs::current_path() / copied);
    require(*target.lexically_relative(source).begin() == "..",
            "-o {}: lies in {}, which is copied; expected a path outside it", in_quotes(output), source.string());
  }
  if (!archive) {
    copy_course(notebooks, output);
  } else {
    const PrivateDirectory work;
    const std::string file = work / "labs.tar.gz", course = work / "course";
    copy_course(notebooks, course);
    std::vector<std::string> words{
        "tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX",
        "-C",  course,        "-czf",      file};
    std::set<std::string> parts;
    for (const fs::directory_entry& entry : fs::directory_iterator(course)) parts.insert(entry.path().filename());
    words.insert(words.end(), parts.begin(), parts.end());
    const int status = run_to_files(words, work / "out", work / "err");
    require(status == 0, "lab: tar exits with status {}: {}", status, read_file(work / "err"));
    write_file(output, read_file(file));
  }
  std::cout << fmt::format("{}: notebooks and labs, without solutions\n", output);
  return ok;
}

int hint_command(const std::string& name, Index number) {
  const Lab lab = find_lab(name);
  require(number <= std::ssize(lab.hints), "lab: {} has {}, numbered from 1; found number {}", lab.name,
          counted(std::ssize(lab.hints), "hint"), number);
  std::cout << lab.hints[static_cast<std::size_t>(number - 1)] << "\n";
  if (number < std::ssize(lab.hints))
    std::cout << fmt::format("\nif this does not help: {} lab hint {} {}\n", program_name(), shell_word(name),
                             number + 1);
  return ok;
}

int hash_command(const std::string& name, const std::string& point, const std::string& text, Index digits) {
  const Lab lab = find_lab(name);
  const auto found = std::ranges::find(lab.points, point, &LabPoint::name);
  require(found != lab.points.end(), "lab: {} has no point {}", lab.name, in_quotes(point));
  const std::optional<double> number = number_in(text);
  const Answer answer = number ? Answer(*number) : Answer(text);
  std::cout << fmt::format("hash = \"{}\"\n",
                           answer_hash(lab.name, point, answer, digits > 0 ? digits : found->digits));
  return ok;
}

/// Reads the path of a compiled submission and a question about it from standard input, loads the submission in this
/// process, and answers the question.
int serve_command() {
  Message message = read_message(0);
  const std::string plugin = message.text();
  Message question(message.text(1 << 20));
  use_threads(1);
  Message loaded;
  try {
    const std::vector<std::string> names = load_plugin(plugin, "the submission");
    loaded.put(Index{1});
    loaded.put(static_cast<Index>(names.size()));
    for (const std::string& name : names) loaded.put(name);
  } catch (const Error& error) {
    loaded = {};
    loaded.put(Index{0});
    loaded.put(beginning(error.what(), 1000));
  }
  write_message(3, loaded);
  answer_question(std::move(question));
  return ok;
}

void add_check(Command lab) {
  static CheckOptions options;
  Command command = lab.command("check", "Check a lab's file: what is right, what is wrong");
  command.option("LAB", &options.lab, "name of a lab, or its directory", {.required = true});
  command.option("--file", &options.file, "the file to check; default: the one in the lab's directory",
                 {.value = "FILE"});
  command.option("--student", &options.student, "identity of the student, for a personal lab", {.value = "ID"});
  command.option("--seed", &options.seed, "random seed of the hidden inputs; default: a new one in each run",
                 {.value = "N", .range = {{0, 9e15}}});
  command.option("--json", &options.json, "print the result as JSON");
  command.footer("The exit status is 0 if everything is right, 1 if something is wrong (docs/lab-format.md).");
  command.action([] { return check_command(options); });
}

}  // namespace

void add_lab(Command program) {
  Command lab = program.command("lab", "Labs of a course: check one, make a personal one, bundle them for students");
  add_check(lab);
  {
    static std::string name, student, output = ".";
    Command command = lab.command("new", "Create the directory of a lab, or of a personal lab for a student");
    command.option("LAB", &name, "name of a lab", {.required = true});
    command.option("--student", &student, "the identity that a personal lab is derived from", {.value = "ID"});
    command.option("-o,--output", &output, "the directory to create it in; default: .", {.value = "DIR"});
    command.action([] { return new_command(name, student, output); });
  }
  {
    static std::string output;
    Command command = lab.command("bundle", "Write notebooks and labs for students, without solutions");
    command.option("-o,--output", &output, "a file that ends in .tar.gz, or a directory",
                   {.value = "PLACE", .required = true});
    command.action([] { return bundle_command(output); });
  }
  {
    static std::string name;
    static Index number = 1;
    Command command = lab.command("hint", "Print a hint for a lab; later hints are more detailed");
    command.option("LAB", &name, "name of a lab, or its directory", {.required = true});
    command.option("N", &number, "number of the hint; default: 1", {.range = {{1, 100}}});
    command.action([] { return hint_command(name, number); });
  }
  {
    static std::string name, point, answer;
    static Index digits = 0;
    Command command = lab.command("hash", "Print the hash of an answer, for lab.toml");
    command.option("LAB", &name, "name of a lab", {.required = true});
    command.option("POINT", &point, "the name of the point", {.required = true});
    command.option("ANSWER", &answer, "a word, or a number", {.required = true});
    command.option("--digits", &digits, "significant digits of a number; default: the point's digits in lab.toml",
                   {.value = "N", .range = {{1, 15}}});
    command.action([] { return hash_command(name, point, answer, digits); });
  }
  lab.command("serve", "Run a submission: started by heed grade, with messages as input").action(serve_command);
}

}  // namespace heed::cli
