// The questions of notebooks, which a person marks: students' answers beside rubric and model answer.
#pragma once

#include "heed/config/lab.h"

#include <string>
#include <vector>

namespace heed::cli {

struct QuestionSheet {
  std::string notebook;  ///< 05-sima
  std::vector<NotebookQuestion> questions;

  std::string file() const { return notebook + ".ipynb"; }
};

/// All NOTEBOOK.toml in a directory, by name; none without the directory.
std::vector<QuestionSheet> questions_in(const std::string& directory);

/// A section of a student's feedback: for each question a place for marks, the answer in the notebook `file`, rubric,
/// and model answer.
std::string answers_to_mark(const QuestionSheet& questions, const std::string& file);

}  // namespace heed::cli
