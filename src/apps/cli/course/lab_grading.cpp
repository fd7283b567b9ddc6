#include "lab_grading.h"

#include "src/apps/cli/plugins/plugin_compile.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/config/installed.h"
#include "heed/io/file.h"
#include "src/apps/grading/marks/answer_marks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// Returns a submission's message as one line of limited length.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return std::string(beginning(text, 600));
}

/// Runs heed and returns its output as JSON; runs each command line only once.
const Json& printed(const std::vector<std::string>& arguments, const std::string& where) {
  static std::map<std::vector<std::string>, Json> known;
  const auto [at, is_new] = known.try_emplace(arguments);
  if (!is_new) return at->second;
  const PrivateDirectory place;
  std::vector<std::string> words{program_file()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = run_to_files(words, place / "out", place / "err");
  require(status == 0, "{}: heed {}: exit status {}: {}", where, fmt::join(arguments, " "), status,
          one_line(read_file(place / "err")));
  at->second = Json::parse(read_file(place / "out"));
  return at->second;
}

double field_of(const LabValue& value, const std::string& where) {
  const Json* at = &printed(value.heed, where);
  try {
    for (const std::string& key : split(value.field, '/')) {
      const bool place_in_list =
          !key.empty() && std::ranges::all_of(key, [](unsigned char c) { return std::isdigit(c); }) && key.size() < 7;
      at = place_in_list ? &at->items().at(std::stoul(key)) : &at->at(key);
    }
    return at->number();
  } catch (const std::exception& error) {
    fail("{}: heed {}: no number at {}: {}", where, fmt::join(value.heed, " "), in_quotes(value.field), error.what());
  }
}

/// A mechanism's point: "gradient q", or "gradient q, score_grad=hardtanh", which is marked with that option.
struct PointParts {
  std::string what;
  OptionValues options;
};

PointParts parts_of(const std::string& point) {
  PointParts parts;
  std::size_t end = std::min(point.find(", "), point.size());
  parts.what = point.substr(0, end);
  while (end < point.size()) {
    const std::size_t from = end + 2, equal = point.find('=', from);
    end = std::min(point.find(", ", from), point.size());
    require(equal < end, "point {}: expected an option KEY=VALUE after the comma", in_quotes(point));
    parts.options[point.substr(from, equal - from)] = point.substr(equal + 1, end - equal - 1);
  }
  return parts;
}

/// Returns `options`, overridden by those of `own`.
OptionValues joined(OptionValues options, const OptionValues& own) {
  for (const auto& [key, value] : own) options[key] = value;
  return options;
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
  require(fs::is_directory(place), "{}: the directory does not exist; expected a directory of labs", place);
  for (const fs::directory_entry& entry : fs::directory_iterator(place))
    if (fs::exists(entry.path() / "lab.toml")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
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
  std::ranges::sort(known);
  fail("lab: unknown lab {}{}", in_quotes(name), suggestion(name, known));
}

namespace {

/// Returns the mechanism that a student's personal lab defines.
Definition definition_for(const Lab& lab, const std::string& student) {
  return definition_of(student, lab.repair ? PersonalTask::repair : PersonalTask::write);
}

}  // namespace

std::string file_for(const Lab& lab, const std::string& student) {
  if (lab.kind == LabKind::personal) {
    const Definition definition = definition_for(lab, student);
    return lab.repair ? header_of(definition, personal_name, bugs_of(student)) : stub_of(definition, personal_name);
  }
  const std::string file = lab.directory + "/" + lab.file();
  return fs::exists(file) ? read_file(file) : "";
}

double LabResult::sum(const Lab& lab) const {
  double sum = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) sum += marks[i].right ? lab.points[i].marks : 0;
  return sum;
}

Json json_of(const Lab& lab, const LabResult& result) {
  constexpr const char* kinds[] = {"mechanism", "python", "answers", "personal"};
  Table points;
  points.data({"name", "right", "marks", "of", "says"});
  for (std::size_t i = 0; i < lab.points.size(); ++i) {
    const LabPoint& point = lab.points[i];
    const Mark mark = i < result.marks.size() ? result.marks[i] : Mark{};
    std::vector<std::string> says = mark.says;
    const bool begun = says != std::vector<std::string>{"not yet"};
    if (!mark.right && begun && !point.hint.empty() && result.problem.empty()) says.push_back(point.hint);
    points.add({point.name, mark.right, mark.right ? point.marks : 0.0, point.marks, says});
  }
  return Json::object({{"lab", lab.name},
                       {"title", lab.title},
                       {"kind", kinds[static_cast<std::size_t>(lab.kind)]},
                       {"marks", result.sum(lab)},
                       {"of", lab.marks()},
                       {"problem", result.problem},
                       {"points", points.json()}});
}

std::string text_of(const Lab& lab, const LabResult& result) {
  std::string text = fmt::format("{}: {}\n{:g} of {:g} marks\n", lab.name, lab.title, result.sum(lab), lab.marks());
  if (!result.problem.empty()) return text + fmt::format("\n{}\n", result.problem);
  const Json json = json_of(lab, result);
  std::map<std::string, std::string> said;  // for each line, the first point that has it; later points refer to it
  for (const Json& point : json.at("points").items()) {
    const bool right = point.at("marks").number() > 0;
    text += fmt::format("\n{}  {}: {:g} of {:g}\n", right ? "right" : "wrong", point.at("name").text(),
                        point.at("marks").number(), point.at("of").number());
    for (const Json& line : point.at("says").items()) {
      const auto [at, is_new] = said.try_emplace(line.text(), point.at("name").text());
      text += is_new || line.text() == "not yet" ? fmt::format("       {}\n", line.text())
                                                 : fmt::format("       the same as for {}\n", at->second);
    }
  }
  return text;
}

LabGrader::LabGrader(Lab lab, std::uint64_t seed, const SharedHeaders* shared)
    : lab_(std::make_unique<const Lab>(std::move(lab))), seed_(seed), shared_(shared) {
  const std::string where = lab_->directory + "/lab.toml";
  const RandomStream random = RandomStream(seed).derive(lab_->name);
  if (lab_->is_compiled()) {
    require_compiler();  // neither a missing compiler nor a noexec mount is a submission's error
    require_execution(fs::temp_directory_path());
    try {
      make_settings(random);
    } catch (const Error& error) {
      fail("{}: {}", where, error.what());
    }
  }
  require_confinement();
  if (lab_->kind == LabKind::python) python_.emplace(*lab_, random.bits(0) >> 1);
  if (lab_->kind == LabKind::answers) {
    for (const auto& [name, value] : lab_->values)
      values_[name] = value.number ? *value.number : field_of(value, where);
    for (const LabPoint& point : lab_->points)
      if (!point.formula.empty()) formula_value(point.formula, values_);
  }
}

void LabGrader::make_settings(const RandomStream& random) {
  const bool personal = lab_->kind == LabKind::personal;
  for (std::size_t i = 0; i < lab_->points.size(); ++i) {
    const PointParts parts = parts_of(lab_->points[i].name);
    check_mechanism_point(parts.what, personal || !lab_->reference.empty());
    require(parts.options.empty() || !personal, "a personal mechanism has no options");
    auto setting = std::ranges::find(settings_, parts.options, &Setting::own);
    if (setting == settings_.end()) {
      setting = settings_.insert(setting, Setting{.own = parts.options});
      if (personal)
        setting->reference = mechanism_of(definition_of("", PersonalTask::write));  // all definitions have its tensors
      else if (!lab_->reference.empty())
        setting->reference = make_mechanism(lab_->reference, joined(lab_->reference_options, parts.options));
      setting->cases = draw_cases(setting->reference.get(), personal, random);
    }
    if (setting->reference) check_tensor_of_point(parts.what, *setting->reference, setting->cases);
    setting->points.push_back(parts.what);
    setting->indices.push_back(i);
  }
}

std::string LabGrader::material() const {
  std::string all;
  for (const char* const part : {"lab.toml", "judge.py", "calls.py"})
    if (const std::string file = lab_->directory + "/" + part; fs::exists(file)) all += read_file(file);
  if (lab_->kind == LabKind::mechanism) all += handed_out("");
  for (const auto& [name, value] : values_) all += fmt::format("{} {}\n", name, value);
  return all;
}

LabResult LabGrader::grade(const std::string& file, const std::string& student) const {
  LabResult result;
  try {
    const std::string source = read_submission(file);
    if (lab_->kind == LabKind::python)
      result.marks = python_->marks(source, result.refused);
    else if (lab_->kind == LabKind::answers)
      result.marks = marks_of_answers(source);
    else
      grade_mechanism(source, student, result);
  } catch (const Error& error) {
    result.problem = error.what();
  } catch (const Refused& refusal) {
    result.problem = refusal.what();
  }
  if (!result.problem.empty()) result.marks.clear();
  result.problem = one_line(result.problem);
  for (Mark& mark : result.marks)
    for (std::string& line : mark.says) line = one_line(line);
  return result;
}

std::vector<Mark> LabGrader::marks_of_answers(const std::string& source) const {
  const std::map<std::string, Answer> answers = read_answers(source, lab_->file());
  std::vector<Mark> marks;
  for (const LabPoint& point : lab_->points) {
    const auto answer = answers.find(point.name);
    marks.push_back(mark_answer(lab_->name, point, answer == answers.end() ? nullptr : &answer->second, values_));
  }
  return marks;
}

/// Returns the text whose includes determine the headers that a submission may use: the file handed out or, for a
/// personal lab, its stub. Empty if the lab has no reference: a submission may use all of heed.
std::string LabGrader::handed_out(const std::string& student) const {
  if (lab_->kind == LabKind::personal) return stub_of(definition_for(*lab_, student), personal_name);
  return lab_->reference.empty() ? "" : file_for(*lab_, student);
}

void LabGrader::grade_mechanism(const std::string& source, const std::string& student, LabResult& result) const {
  require_no_forbidden_word(source, lab_->forbidden);
  const PrivateDirectory place;
  const std::string header = place / lab_->file(), object = place / "submission.so";
  write_file(header, source);
  const std::string stub = handed_out(student);
  compile_submission(header, lab_->file(), stub, place, object, shared_);
  const std::string compiled = read_file(object);
  result.calls = system_calls_in(compiled);
  require_own_work(compiled, stub);
  const StartProcess start = [&](const Message& question) {
    Message message;
    message.put(object);
    message.put(question.bytes());
    auto process = std::make_unique<Confined>(std::vector<std::string>{program_file(), "lab", "serve"},
                                              Confinement{.directory = place.path(), .refused = &result.refused});
    process->send(message);
    return process;
  };
  const bool personal = lab_->kind == LabKind::personal;
  const auto own = personal ? mechanism_of(definition_for(*lab_, student)) : nullptr;
  result.marks.resize(lab_->points.size());
  for (const Setting& setting : settings_) {
    MechanismTask task{.name = lab_->mechanism,
                       .options = joined(lab_->options, setting.own),
                       .reference = setting.reference.get(),
                       .slack = lab_->slack,
                       .cases = setting.cases};
    if (personal) {  // the student's definition replaces the setting's, which was needed only for its tensors
      task.name = personal_name, task.reference = own.get();
      task.cases = draw_cases(own.get(), true, RandomStream(seed_).derive(lab_->name).derive(student));
    }
    const std::vector<Mark> marks = mark_mechanism(setting.points, task, source, start);
    for (std::size_t i = 0; i < marks.size(); ++i) result.marks[setting.indices[i]] = marks[i];
  }
}

}  // namespace heed::cli
