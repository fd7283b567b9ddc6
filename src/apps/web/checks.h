// Gradient checks of the page.
#pragma once

#include "reply.h"

#include <string>

namespace heed::web {

/// Returns a mechanism's cases: settings of its options that reach every branch of its code, each with the first of a
/// few small shapes that the setting supports. The result is a list of {"setting", "surrogate", "inputs": [{"name",
/// "shape", "axes"}]}; "surrogate" is empty if the gradient is the derivative.
Json check_cases(const std::string& mechanism);

/// Runs gradcheck() on a case, by its index in check_cases(). Returns a list of {"tensor", "elements", "relative",
/// "passed"}.
Json check_rows(const std::string& mechanism, Index number);

/// Checks one element of a case's input, changed by `change`. Replies with {"x", "analytic", "numeric", "step"} and, as
/// arrays of 81 elements, "offsets" from the element and "values" of the differentiated function there.
void check_element_of(const std::string& mechanism, Index number, Index input, Index element, double change,
                      Reply& reply);

/// Replies with the gradients of -|u|, u = w - x, that adder layers compute, as arrays of equal length: "u"; with
/// respect to x, "input_sign" and "input_hardtanh"; with respect to w, "weight_sign", "weight_hardtanh" and
/// "weight_full".
void surrogate_gradients(Reply& reply);

}  // namespace heed::web
