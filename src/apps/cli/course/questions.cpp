#include "questions.h"

#include "submission.h"

#include "heed/base/split.h"
#include "heed/io/file.h"
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

/// Texts in a notebook's cells.
struct CellTexts {
  std::map<std::string, std::string> answers;  ///< by id, without prompts
  std::vector<std::string> others;  ///< of Markdown cells without a tag answer-ID that have more than a prompt
};

/// Returns the texts of a notebook. The answers are in the cells with the tag answer-ID. If a cell is split, Jupyter
/// copies the tag to both parts, and their texts are joined here.
CellTexts texts_of(const Json& notebook) {
  CellTexts texts;
  for (const Json& cell : notebook.at("cells").items()) {
    const Json& metadata = cell.at("metadata");
    const std::string text = source_text(cell.at("source")), part = without_prompt(text);
    bool is_answer = false;
    if (metadata.contains("tags"))
      for (const Json& tag : metadata.at("tags").items())
        if (tag.text().starts_with("answer-")) {
          std::string& answer = texts.answers[tag.text().substr(7)];
          answer += (answer.empty() || part.empty() ? "" : "\n\n") + part;
          is_answer = true;
        }
    const bool markdown = cell.contains("cell_type") && cell.at("cell_type").text() == "markdown";
    if (markdown && !is_answer && !part.empty()) texts.others.push_back(text);
  }
  return texts;
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

std::vector<QuestionSheet> questions_of(const std::string& notebooks) {
  std::vector<QuestionSheet> all;
  const fs::path directory = fs::path(notebooks) / "solutions/questions";
  if (!fs::is_directory(directory)) return all;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".toml") continue;
    QuestionSheet& one = all.emplace_back(QuestionSheet{entry.path().stem(), load_questions(entry.path()), {}});
    const fs::path notebook = fs::path(notebooks) / one.file();
    if (!fs::exists(notebook)) continue;
    const std::vector<std::string> texts = texts_of(Json::parse(read_file(notebook))).others;
    one.handed_out.insert(texts.begin(), texts.end());
  }
  std::ranges::sort(all, {}, &QuestionSheet::notebook);
  return all;
}

std::string answers_to_mark(const QuestionSheet& questions, const std::string& file) {
  double marks = 0;
  for (const NotebookQuestion& question : questions.questions) marks += question.marks;
  std::string text = fmt::format("{}: answers, marked by a person: ____ of {:g} marks\n", questions.notebook, marks);
  CellTexts texts;
  try {
    texts = texts_of(Json::parse(read_submission(file, largest_notebook)));
  } catch (const Error& error) {
    return text + paragraph("it cannot be read", error.what());
  }
  for (const NotebookQuestion& question : questions.questions) {
    const std::string& answer = texts.answers[question.id];
    text += fmt::format("\nquestion {}: ____ of {:g} marks\n", question.id, question.marks);
    text += paragraph("answer", answer.empty() ? "none" : answer);
    text += paragraph("rubric", question.rubric) + paragraph("model answer", question.answer);
  }
  for (const std::string& other : texts.others)
    if (!questions.handed_out.empty() && !questions.handed_out.contains(other))
      text += "\n" + paragraph("text in another cell", other);
  return text;
}

}  // namespace heed::cli
