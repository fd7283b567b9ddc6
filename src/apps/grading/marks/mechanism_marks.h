// Marking of mechanisms: a submission's results for hidden inputs are compared with a reference.
#pragma once

#include "heed/checks/attention_case.h"
#include "src/apps/grading/sandbox/confined.h"
#include "mark.h"

#include <functional>
#include <string_view>

namespace heed {

/// A shape and the seed of its inputs, unknown to submissions.
struct HiddenCase {
  AttentionCaseShape shape;
  std::uint64_t seed;
};

/// A question about a mechanism. A separate process answers each, so that a crash does not affect the other answers.
enum class Question : Index { memory, output, gradients, differences, costs };

/// A lab whose solution is a mechanism.
struct MechanismTask {
  std::string name;            ///< mechanism_name of the submission's mechanism
  OptionValues options;        ///< the mechanism's options
  const Mechanism* reference;  ///< null if there is none
  double slack = 2;            ///< maximum executed operations, as a multiple of the reference's
  std::vector<HiddenCase> cases{};
};

/// Returns cases whose shapes the reference supports and whose inputs, drawn up to 20 times, are not near its kinks (a
/// `smooth` reference has none); without a reference, cases of all shapes.
std::vector<HiddenCase> draw_cases(const Mechanism* reference, bool smooth, const RandomStream& random);

/// Beginning of the name of a point for a gradient; the tensor's name follows.
inline constexpr std::string_view gradient_prefix = "gradient ";

/// Throws Error for an invalid name of a point in a lab of mechanisms.
void check_mechanism_point(const std::string& name, bool has_reference);

/// Throws Error if the point is the gradient of a tensor that the reference has in none of the cases.
void check_tensor_of_point(const std::string& name, const Mechanism& reference, const std::vector<HiddenCase>& cases);

/// Thrown if nothing of a submission can be marked; contains the reason.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Starts a process that answers the question in the message. The process first reports whether the submission could
/// be loaded: 1 and the names of its mechanisms, or 0 and the reason.
using StartProcess = std::function<std::unique_ptr<Confined>(const Message&)>;

/// Marks each point, with its errors. `source` is the submission's text, whose comments describe the steps of the
/// backward pass. Throws Refused.
std::vector<Mark> mark_mechanism(const std::vector<std::string>& points, const MechanismTask& task,
                                 const std::string& source, const StartProcess& start);

/// Answers a question, in the submission's process: writes one message for each case to file descriptor 3. The
/// mechanism is one of mechanisms().
void answer_question(Message question);

}  // namespace heed
