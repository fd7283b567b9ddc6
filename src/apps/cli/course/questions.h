// Questions of notebooks. A person marks the answers, which are printed with the rubric and a model answer.
#pragma once

#include "heed/config/lab.h"

#include <set>
#include <string>
#include <vector>

namespace heed::cli {

struct QuestionSheet {
  std::string notebook;  ///< name without extension: 05-sima
  std::vector<NotebookQuestion> questions;
  std::set<std::string> handed_out;  ///< texts of the notebook's Markdown cells; empty if the notebook is missing

  std::string file() const { return notebook + ".ipynb"; }
};

/// Returns the questions of all files solutions/questions/NOTEBOOK.toml below a directory of notebooks, sorted by name;
/// none if there are no such files.
std::vector<QuestionSheet> questions_of(const std::string& notebooks);

/// Returns a section of a student's feedback: for each question a blank for the marks, the answer in the notebook
/// `file`, the rubric, and the model answer; then the Markdown cells that are neither answers nor handed out.
std::string answers_to_mark(const QuestionSheet& questions, const std::string& file);

}  // namespace heed::cli
