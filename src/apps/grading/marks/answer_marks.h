// Marks for numbers and words.
#pragma once

#include "heed/config/lab.h"
#include "mark.h"

namespace heed {

/// The value of a formula of numbers, names, + - * / ^, parentheses and sqrt exp log abs min max. Throws Error, which
/// quotes it, if it is none, or its value is not finite.
double formula_value(const std::string& formula, const std::map<std::string, double>& values);

/// A point's answer as lab.toml may have it where it is not to be read: words without regard to case and spaces,
/// numbers to so many digits. It withstands a look, not somebody who tries many answers.
std::string answer_hash(const std::string& lab, const std::string& point, const Answer& answer, Index digits);

/// `answer` is null if there is none. `values` are those of the lab.
Mark mark_answer(const std::string& lab, const LabPoint& point, const Answer* answer,
                 const std::map<std::string, double>& values);

}  // namespace heed
