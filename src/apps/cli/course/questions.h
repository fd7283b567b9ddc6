// Questions of notebooks. A person marks the answers, which are printed with the rubric and a model answer.
#pragma once

#include "heed/config/lab.h"

#include <string>
#include <vector>

namespace heed::cli {

struct QuestionSheet {
  std::string notebook;  ///< name without extension: 05-sima
  std::vector<NotebookQuestion> questions;

  std::string file() const { return notebook + ".ipynb"; }
};

/// Returns the questions of all files NOTEBOOK.toml in a directory, sorted by name; none if the directory is missing.
std::vector<QuestionSheet> questions_in(const std::string& directory);

/// Returns a section of a student's feedback: for each question a blank for the marks, the answer in the notebook
/// `file`, the rubric, and the model answer.
std::string answers_to_mark(const QuestionSheet& questions, const std::string& file);

}  // namespace heed::cli
