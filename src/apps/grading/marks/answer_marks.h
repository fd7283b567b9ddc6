// Marking of answers that are numbers or words.
#pragma once

#include "heed/config/lab.h"
#include "mark.h"

#include <optional>

namespace heed {

/// Returns the value of a formula of numbers, names, + - * / ^, parentheses and sqrt exp log abs min max. Throws an
/// Error that quotes the formula if it is invalid or its value is not finite.
double formula_value(const std::string& formula, const std::map<std::string, double>& values);

/// Returns the text's number if the whole text is one; otherwise none.
std::optional<double> number_in(const std::string& text);

/// Returns the hash of a point's answer, which lab.toml stores: words ignore case and spaces, numbers are rounded to
/// `digits` significant digits, and inf, -inf and nan are words. The hash hides the answer from readers, but not from
/// systematic guessing.
std::string answer_hash(const std::string& lab, const std::string& point, const Answer& answer, Index digits);

/// Marks an answer, or a missing one if `answer` is null. `values` are the values of the names in the lab's formulas.
Mark mark_answer(const std::string& lab, const LabPoint& point, const Answer* answer,
                 const std::map<std::string, double>& values);

}  // namespace heed
