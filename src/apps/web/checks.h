// Gradients to be checked in the page.
#pragma once

#include "reply.h"

#include <string>

namespace heed::web {

/// The cases of a mechanism: settings of its options that reach every branch of its code, each in the first of a few
/// small shapes that it accepts. A list of {"setting", "surrogate", "inputs": [{"name", "shape", "axes"}]}, the
/// surrogate empty where the gradient is the derivative.
Json check_cases(const std::string& mechanism);

/// gradcheck() of a case of that list, by its number: a list of {"tensor", "elements", "relative", "passed"}.
Json check_rows(const std::string& mechanism, Index number);

/// One element of an input of a case, moved by `change`: {"x", "analytic", "numeric", "step"} and, as arrays of 81
/// numbers, "offsets" around it and "values" there of what is differentiated.
void check_element_of(const std::string& mechanism, Index number, Index input, Index element, double change,
                      Reply& reply);

/// Returns the surrogate derivatives of |u|, u = w - x, computed by adder layers, as arrays of equal length: "u", and
/// "input_sign", "input_hardtanh", "weight_sign", "weight_hardtanh", "weight_full", the gradients of -|u| by x and by
/// w.
void surrogate_gradients(Reply& reply);

}  // namespace heed::web
