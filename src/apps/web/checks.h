// Gradient checks of the page.
#pragma once

#include "reply.h"

#include <string>

namespace heed::web {

/// Returns a mechanism's cases: settings of its options that reach every branch of its code, each in the first
/// supported one of a few small shapes. A list of {"setting", "surrogate", "inputs": [{"name", "shape", "axes"}]}; the
/// surrogate is empty if the gradient is the derivative.
Json check_cases(const std::string& mechanism);

/// Runs gradcheck() on a case by its index in that list. Returns a list of {"tensor", "elements", "relative",
/// "passed"}.
Json check_rows(const std::string& mechanism, Index number);

/// Checks one element of a case's input, changed by `change`. Replies with {"x", "analytic", "numeric", "step"} and, as
/// arrays of 81 elements, "offsets" around it and "values" of the differentiated function there.
void check_element_of(const std::string& mechanism, Index number, Index input, Index element, double change,
                      Reply& reply);

/// Replies with the surrogate derivatives of |u|, u = w - x, computed by adder layers, as arrays of equal length: "u",
/// and "input_sign", "input_hardtanh", "weight_sign", "weight_hardtanh", "weight_full", the gradients of -|u| with
/// respect to x and w.
void surrogate_gradients(Reply& reply);

}  // namespace heed::web
