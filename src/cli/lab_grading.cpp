#include "lab_grading.h"

#include "plugin_build.h"
#include "plugin_compile.h"

#include "heed/base/suggest.h"
#include "heed/config/installed.h"
#include "heed/io/file.h"
#include "heed/labs/answer_marks.h"
#include "heed/labs/object_symbols.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <regex>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

constexpr Index megabyte = 1 << 20;

/// What a submission says, fit for a terminal: one line, not too long.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text.substr(0, 600);
}

/// The path of a program that is called by name.
std::string path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::absolute(program);
  const char* const path = std::getenv("PATH");
  std::string places = path ? path : "/usr/bin:/bin";
  for (std::size_t at = 0; at <= places.size();) {
    const std::size_t end = std::min(places.find(':', at), places.size());
    const fs::path file = fs::path(places.substr(at, end - at)) / program;
    if (access(file.c_str(), X_OK) == 0) return fs::absolute(file);
    at = end + 1;
  }
  fail("grade: the compiler {} is not installed; expected the one that heed was made with, or one named in CXX",
       in_quotes(program));
}

/// The compiler as it is called for submissions: at -O1, which takes half the time, and by itself: what ccache would
/// keep lies where submissions must not write.
std::vector<std::string> compiler_words(const std::string& include) {
  std::vector<std::string> words = plugin_words(include);
  if (fs::path(words[0]).filename() == "ccache" && words.size() > 1) words.erase(words.begin());
  words[0] = path_of(words[0]);
  words.emplace_back("-O1");
  return words;
}

Confinement for_compiler(const std::string& directory, std::vector<std::string> readable) {
  return {.seconds = 60,
          .memory = 3000 * megabyte,
          .file = 64 * megabyte,
          .programs = true,
          .directory = directory,
          .readable = std::move(readable)};
}

std::string own_program() { return fs::read_symlink("/proc/self/exe"); }

/// What heed prints, as JSON; asked once for all fields of it.
const Json& printed(const std::vector<std::string>& arguments, const std::string& where) {
  static std::map<std::vector<std::string>, Json> known;
  const auto [at, is_new] = known.try_emplace(arguments);
  if (!is_new) return at->second;
  const PrivateDirectory place;
  std::vector<std::string> words{own_program()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = run_to_files(words, place / "out", place / "err");
  require(status == 0, "{}: heed {}: ends with status {}: {}", where, fmt::join(arguments, " "), status,
          one_line(read_file(place / "err")));
  at->second = Json::parse(read_file(place / "out"));
  return at->second;
}

double field_of(const LabValue& value, const std::string& where) {
  const Json* at = &printed(value.heed, where);
  try {
    std::string rest = value.field;
    while (!rest.empty()) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      const std::string key = rest.substr(0, slash);
      const bool place_in_list = !key.empty() &&
                                 std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isdigit(c); }) &&
                                 key.size() < 7;
      at = place_in_list ? &at->items().at(std::stoul(key)) : &at->at(key);
      rest = rest.substr(std::min(slash + 1, rest.size()));
    }
    return at->number();
  } catch (const std::exception& error) {
    fail("{}: heed {}: has no number at {}: {}", where, fmt::join(value.heed, " "), in_quotes(value.field),
         error.what());
  }
}

/// What would answer for the student, or count for the counter.
void require_own_work(const std::string& object) {
  constexpr const char* theirs[] = {"make_mechanism", "find_mechanism", "10mechanismsE",  "15mechanism_entry",
                                    "5tallyE",        "dlopen",         "dlmopen",        "dlsym",
                                    "dlvsym",         "dladdr",         "dl_iterate_phdr"};
  for (const std::string& name : undefined_symbols(object))
    for (const char* const word : theirs)
      require(name.find(word) == std::string::npos,
              "it uses {}, which a submission may not: it must do the work itself", in_quotes(name));
}

void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (const std::string& word : forbidden)
    for (std::size_t at = 0; (at = source.find(word, at)) != std::string::npos; ++at)
      require((at > 0 && in_word(static_cast<unsigned char>(source[at - 1]))) ||
                  (at + word.size() < source.size() && in_word(static_cast<unsigned char>(source[at + word.size()]))),
              "it uses {}, which this lab asks for", in_quotes(word));
}

/// Compiles a submission's header where nothing but that can happen.
void compile_submission(const std::string& header, const std::string& shown, const PrivateDirectory& place,
                        const std::string& object, const SharedHeaders* shared) {
  const std::string include = headers_of_program(), unit = place / "unit.cpp";
  std::vector<std::string> words = compiler_words(include), readable{include};
  write_file(unit, plugin_unit(header, mechanism_classes(header)));
  if (shared) {
    readable.push_back(shared->directory());
    for (const std::string& word : {std::string("-include"), shared->header()}) words.push_back(word);
  }
  for (const std::string& word : {std::string("-shared"), std::string("-o"), object, unit}) words.push_back(word);
  int status = 0;
  try {
    status = Confined(words, for_compiler(place.path(), readable)).wait();
  } catch (const Error& error) {
    fail("{}: the compiler was stopped: {}", shown, error.what());
  }
  if (status != 0) fail("{}", first_error(read_file(place / "log"), header, shown));
}

/// Throws Error unless processes can be confined here.
void require_confinement() {
  const PrivateDirectory place;
  Confined({"/bin/true"}, {.directory = place.path()}).wait();
}

}  // namespace

std::string labs_place() {
  for (const char* const place : {"notebooks/labs", "labs"})
    if (fs::is_directory(place)) return place;
  return find_installed("notebooks/labs");
}

std::vector<Lab> labs_in(const std::string& place) {
  std::vector<std::string> names;
  require(fs::is_directory(place), "{}: there is no such directory; expected one of labs", place);
  for (const fs::directory_entry& entry : fs::directory_iterator(place))
    if (fs::exists(entry.path() / "lab.toml")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::vector<Lab> labs;
  for (const std::string& name : names) labs.push_back(load_lab(place + "/" + name));
  return labs;
}

Lab find_lab(const std::string& name) {
  if (fs::exists(fs::path(name) / "lab.toml")) return load_lab(name);
  const std::string place = labs_place();
  if (is_plain_name(name) && fs::exists(fs::path(place) / name / "lab.toml")) return load_lab(place + "/" + name);
  std::vector<std::string> known;
  if (fs::is_directory(place))
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) known.push_back(entry.path().filename());
  std::sort(known.begin(), known.end());
  fail("lab: there is no lab {}{}", in_quotes(name), suggestion(name, known));
}

std::string read_submission(const std::string& file) {
  const int opened = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  require(opened >= 0 || errno != ELOOP, "it is a symbolic link; expected a file");
  require(opened >= 0, "it cannot be read: {}", std::strerror(errno));
  struct stat info {};
  const bool regular = fstat(opened, &info) == 0 && S_ISREG(info.st_mode);
  std::string text;
  if (regular && info.st_size <= megabyte) {
    text.resize(static_cast<std::size_t>(info.st_size));
    const ssize_t got = read(opened, text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  close(opened);
  require(regular, "it is no regular file");
  require(info.st_size <= megabyte, "it has {} bytes; expected at most {}", info.st_size, megabyte);
  return text;
}

SharedHeaders::SharedHeaders() {
  const std::string include = headers_of_program();
  write_file(header(),
             "#include \"heed/attention/mechanism_base.h\"\n#include \"heed/attention/plugin.h\"\n"
             "#include \"heed/kernels/gemm.h\"\n#include <cmath>\n#include <vector>\n");
  std::vector<std::string> words = compiler_words(include);
  for (const std::string& word :
       {std::string("-x"), std::string("c++-header"), std::string("-o"), header() + ".gch", header()})
    words.push_back(word);
  Confinement confinement = for_compiler(directory(), {include});
  confinement.file = 512 * megabyte;
  const int status = Confined(words, confinement).wait();
  require(status == 0, "grade: heed's headers cannot be compiled: {}",
          first_error(read_file(place_ / "log"), header(), "heed.h"));
}

double LabResult::sum(const Lab& lab) const {
  double sum = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) sum += marks[i].right ? lab.points[i].marks : 0;
  return sum;
}

Json json_of(const Lab& lab, const LabResult& result) {
  constexpr const char* kinds[] = {"mechanism", "python", "answers", "personal"};
  Json points = Json::list();
  for (std::size_t i = 0; i < lab.points.size(); ++i) {
    const LabPoint& point = lab.points[i];
    const Mark mark = i < result.marks.size() ? result.marks[i] : Mark{};
    std::vector<std::string> says = mark.says;
    const bool begun = says != std::vector<std::string>{"not yet"};
    if (!mark.right && begun && !point.hint.empty() && result.problem.empty()) says.push_back(point.hint);
    points.push_back(Json::object({{"name", point.name},
                                   {"right", mark.right},
                                   {"marks", mark.right ? point.marks : 0.0},
                                   {"of", point.marks},
                                   {"says", says}}));
  }
  return Json::object({{"lab", lab.name},
                       {"title", lab.title},
                       {"kind", kinds[static_cast<std::size_t>(lab.kind)]},
                       {"marks", result.sum(lab)},
                       {"of", lab.marks()},
                       {"problem", result.problem},
                       {"points", points}});
}

std::string text_of(const Lab& lab, const LabResult& result) {
  std::string text = fmt::format("{}: {}\n{:g} of {:g} marks\n", lab.name, lab.title, result.sum(lab), lab.marks());
  if (!result.problem.empty()) return text + fmt::format("\n{}\n", result.problem);
  const Json json = json_of(lab, result);
  for (const Json& point : json.at("points").items()) {
    const bool right = point.at("marks").number() > 0;
    text += fmt::format("\n{}  {}: {:g} of {:g}\n", right ? "right" : "wrong", point.at("name").text(),
                        point.at("marks").number(), point.at("of").number());
    for (const Json& line : point.at("says").items()) text += fmt::format("       {}\n", line.text());
  }
  return text;
}

LabGrader::LabGrader(Lab lab, std::uint64_t seed, const SharedHeaders* shared)
    : lab_(std::make_unique<const Lab>(std::move(lab))), seed_(seed), shared_(shared) {
  const std::string where = lab_->directory + "/lab.toml";
  const RandomStream random = RandomStream(seed).derive(lab_->name);
  if (lab_->kind == LabKind::mechanism || lab_->kind == LabKind::personal) {
    compiler_words(headers_of_program());  // no student's fault if there is none
    const bool has_reference = lab_->kind == LabKind::personal || !lab_->reference.empty();
    for (const LabPoint& point : lab_->points) try {
        check_mechanism_point(point.name, has_reference);
      } catch (const Error& error) {
        fail("{}: {}", where, error.what());
      }
  }
  require_confinement();
  if (lab_->kind == LabKind::mechanism) {
    if (!lab_->reference.empty()) reference_ = make_mechanism(lab_->reference, lab_->reference_options);
    cases_ = draw_cases(reference_.get(), false, random);
  }
  if (lab_->kind == LabKind::python) python_.emplace(*lab_, random.bits(0) >> 1);
  if (lab_->kind == LabKind::answers) {
    for (const auto& [name, value] : lab_->values)
      values_[name] = value.number ? *value.number : field_of(value, where);
    for (const LabPoint& point : lab_->points)
      if (!point.formula.empty()) formula_value(point.formula, values_);
  }
}

LabResult LabGrader::grade(const std::string& file, const std::string& student) const {
  LabResult result;
  try {
    const std::string source = read_submission(file);
    switch (lab_->kind) {
      case LabKind::python:
        result.marks = python_->marks(source);
        break;
      case LabKind::answers:
        result = grade_answers(source);
        break;
      default:
        result = grade_mechanism(source, student);
    }
  } catch (const Error& error) {
    result.problem = error.what();
  } catch (const Refused& refusal) {
    result.problem = refusal.what();
  }
  result.problem = one_line(result.problem);
  for (Mark& mark : result.marks)
    for (std::string& line : mark.says) line = one_line(line);
  return result;
}

LabResult LabGrader::grade_answers(const std::string& source) const {
  const std::map<std::string, Answer> answers = read_answers(source, lab_->file());
  LabResult result;
  for (const LabPoint& point : lab_->points) {
    const auto answer = answers.find(point.name);
    result.marks.push_back(
        mark_answer(lab_->name, point, answer == answers.end() ? nullptr : &answer->second, values_));
  }
  return result;
}

LabResult LabGrader::grade_mechanism(const std::string& source, const std::string& student) const {
  MechanismTask task{.name = lab_->mechanism,
                     .options = lab_->options,
                     .reference = reference_.get(),
                     .slack = lab_->slack,
                     .cases = cases_};
  std::unique_ptr<const Mechanism> own;
  if (lab_->kind == LabKind::personal) {
    own = mechanism_of(definition_of(student, lab_->repair ? PersonalTask::repair : PersonalTask::write));
    task.name = personal_name;
    task.reference = own.get();
    task.cases = draw_cases(own.get(), true, RandomStream(seed_).derive(lab_->name).derive(student));
  }
  require_no_forbidden_word(source, lab_->forbidden);
  const PrivateDirectory place;
  const std::string header = place / lab_->file(), object = place / "submission.so";
  write_file(header, source);
  compile_submission(header, lab_->file(), place, object, shared_);
  require_own_work(read_file(object));
  return {"", mark_plugin(task, source, place, object)};
}

std::vector<Mark> LabGrader::mark_plugin(const MechanismTask& task, const std::string& source,
                                         const PrivateDirectory& place, const std::string& object) const {
  const StartProcess start = [&](const Message& question) {
    Message message;
    message.put(object);
    message.put(question.bytes());
    auto process = std::make_unique<Confined>(std::vector<std::string>{own_program(), "lab", "serve"},
                                              Confinement{.directory = place.path()});
    process->send(message);
    return process;
  };
  std::vector<std::string> points;
  for (const LabPoint& point : lab_->points) points.push_back(point.name);
  return mark_mechanism(points, task, source, start);
}

}  // namespace heed::cli
