#include "questions.h"

#include "submission.h"

#include "heed/base/split.h"
#include "heed/io/json.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

/// Returns the text of a cell's source, which is a string or a list of lines that include their line breaks.
std::string source_text(const Json& source) {
  return source.visit([](const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    std::string text;
    if constexpr (std::is_same_v<Value, std::string>) text = value;
    if constexpr (std::is_same_v<Value, Json::List>)
      for (const Json& line : value) text += line.text();
    return text;
  });
}

/// Returns an answer without the prompt "*Your answer to question 1:*", and without spaces around it. The answer may
/// begin on the prompt's line, before or after its last asterisk.
std::string without_prompt(std::string text) {
  static const std::regex prompt("\\*Your answer[^*:\n]{0,40}:?( the report\\.)?\\*?");
  std::smatch match;
  if (std::regex_search(text, match, prompt, std::regex_constants::match_continuous)) text = match.suffix();
  text.erase(0, std::min(text.find_first_not_of(" \r\n"), text.size()));
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text;
}

/// Returns the answers by id, from the cells with the tag answer-ID. If a cell is split, Jupyter copies the tag to both
/// parts, and their texts are joined here.
std::map<std::string, std::string> answers_of(const Json& notebook) {
  std::map<std::string, std::string> answers;
  for (const Json& cell : notebook.at("cells").items()) {
    const Json& metadata = cell.at("metadata");
    if (!metadata.contains("tags")) continue;
    for (const Json& tag : metadata.at("tags").items())
      if (tag.text().starts_with("answer-")) {
        std::string& answer = answers[tag.text().substr(7)];
        const std::string part = without_prompt(source_text(cell.at("source")));
        answer += (answer.empty() || part.empty() ? "" : "\n\n") + part;
      }
  }
  return answers;
}

/// Returns a title and, below it, the lines of a text, indented; control characters become spaces.
std::string paragraph(const std::string& title, std::string text) {
  std::string lines = "  " + title + "\n";
  while (text.ends_with('\n')) text.pop_back();
  for (std::string line : split(text, '\n')) {
    std::ranges::replace_if(
        line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    lines += line.empty() ? "\n" : "    " + line + "\n";
  }
  return lines;
}

}  // namespace

std::vector<QuestionSheet> questions_in(const std::string& directory) {
  std::vector<QuestionSheet> all;
  if (!fs::is_directory(directory)) return all;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".toml") all.push_back({entry.path().stem(), load_questions(entry.path())});
  std::ranges::sort(all, {}, &QuestionSheet::notebook);
  return all;
}

std::string answers_to_mark(const QuestionSheet& questions, const std::string& file) {
  double marks = 0;
  for (const NotebookQuestion& question : questions.questions) marks += question.marks;
  std::string text = fmt::format("{}: answers, marked by a person: ____ of {:g} marks\n", questions.notebook, marks);
  std::map<std::string, std::string> answers;
  try {
    answers = answers_of(Json::parse(read_submission(file, largest_notebook)));
  } catch (const Error& error) {
    return text + paragraph("it cannot be read", error.what());
  }
  for (const NotebookQuestion& question : questions.questions) {
    const std::string& answer = answers[question.id];
    text += fmt::format("\nquestion {}: ____ of {:g} marks\n", question.id, question.marks);
    text += paragraph("answer", answer.empty() ? "none" : answer);
    text += paragraph("rubric", question.rubric) + paragraph("model answer", question.answer);
  }
  return text;
}

}  // namespace heed::cli
