// Marks for a mechanism: what a submission's process returns for hidden inputs, held against a reference.
#pragma once

#include "heed/checks/attention_case.h"
#include "src/apps/grading/sandbox/confined.h"
#include "mark.h"

#include <functional>

namespace heed {

/// A shape, and the seed of its inputs, that submissions do not know beforehand.
struct HiddenCase {
  AttentionCaseShape shape;
  std::uint64_t seed;
};

/// A question to the process of a mechanism. Each goes to a separate process, so that a crash leaves the other answers.
enum class Question : Index { memory, output, gradients, differences, costs };

/// A lab whose answer is a mechanism.
struct MechanismTask {
  std::string name;            ///< mechanism_name of the submission's
  OptionValues options;        ///< the mechanism's options
  const Mechanism* reference;  ///< null if there is none
  double slack = 2;            ///< limit of executed operations, as a multiple of the reference's
  std::vector<HiddenCase> cases{};
};

/// Cases for a reference, which accepts their shapes and has no kink near their inputs, as a `smooth` one has nowhere;
/// without a reference, all shapes.
std::vector<HiddenCase> draw_cases(const Mechanism* reference, bool smooth, const RandomStream& random);

/// Throws Error unless a point of such a lab may have this name.
void check_mechanism_point(const std::string& name, bool has_reference);

/// Nothing of a submission can be marked, and why.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Starts the process that answers the message, once it has said what it has loaded: 1 and the names of mechanisms, or
/// 0 and why there are none.
using StartProcess = std::function<std::unique_ptr<Confined>(const Message&)>;

/// Marks by point: right or wrong, and what is wrong. `source` is the text of the submission, in which steps of the
/// backward pass are described. Throws Refused.
std::vector<Mark> mark_mechanism(const std::vector<std::string>& points, const MechanismTask& task,
                                 const std::string& source, const StartProcess& start);

/// The other side: answers the question of a message with one message for each of its cases, on file descriptor 3.
/// Mechanisms are those of the list.
void answer_question(Message question);

}  // namespace heed
