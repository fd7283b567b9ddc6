// Construction of the list of check cases, which is divided among several files.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"

namespace heed {

/// A list of cases.
struct CheckCases : std::vector<CheckCase> {
  /// Adds a case; see check_case().
  template <class F>
  CheckCase& add(std::string name, std::vector<CheckInput> inputs, F f, bool training = true) {
    return emplace_back(check_case(std::move(name), std::move(inputs), std::move(f), training));
  }
};

/// Returns a tensor filled by a rule, in the arena of a tape, for targets of a loss or running statistics.
template <class T, class F>
View<T> filled(Tape<T>& tape, const Shape& shape, const F& rule) {
  T* const data = tape.memory(shape.elements());
  for (Index i = 0; i < shape.elements(); ++i) data[i] = T(rule(i));
  return {data, shape};
}

/// Adds the cases of elementary operations.
void add_elementary_cases(CheckCases& cases);

/// Adds the cases of adder layers and adder attention. Each choice of gradient (sign, hardtanh, full) is compared with
/// finite differences of the function that it is the derivative of; for sign, this function is the operation itself.
void add_adder_cases(CheckCases& cases);

/// Adds the cases of the first and last operations of sequence models, on sequences of different lengths.
void add_sequence_cases(CheckCases& cases);

/// Adds the cases of a mechanism: each variant, in each shape that it accepts.
void add_mechanism_cases(CheckCases& cases, const MechanismEntry& entry);

}  // namespace heed
