#include "mechanism_marks.h"

#include "mechanism_messages.h"

#include "heed/attention/capabilities/preparation.h"
#include "heed/base/suggest.h"
#include "heed/checks/backward_steps.h"
#include "heed/checks/costcheck.h"
#include "heed/cost/energy.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// Maximum relative error of an output: sums in different orders differ far less.
constexpr double output_tolerance = 1e-6;

/// Maximum errors of a gradient, relative to the tensor's largest element: one for double and Counted, one for float.
/// The rounding errors of analytic derivatives are smaller, the errors of finite differences larger.
constexpr double double_precision = 1e-11, float_precision = 2e-5;

/// Problem reported for a process that sends anything but answers.
constexpr const char* unreadable = "its results cannot be read; it must not write to file descriptor 3";

/// Answers of a submission's process to one question, one for each case until the process ended.
struct Answers {
  std::vector<Message> of_cases;
  std::string problem;  ///< reason for missing answers
};

/// Throws Refused unless the submission was loaded and has the mechanism.
void require_loaded(Message loaded, const std::string& name) {
  if (loaded.integer(0, 1) == 0) {
    const std::string reason = loaded.text();
    throw Refused(reason.empty() ? unreadable : reason);
  }
  std::vector<std::string> names;
  for (Index left = loaded.integer(0, 64); left > 0; --left) names.push_back(loaded.text());
  if (std::ranges::find(names, name) == names.end())
    throw Refused(fmt::format("it has no mechanism called '{}'; found {}", name, quoted_list(names)));
}

Answers ask(const StartProcess& start, const MechanismTask& task, Question question) {
  Answers answers;
  try {
    Message message;
    put_question(message, {question, task.name, task.options, task.cases});
    const std::unique_ptr<Confined> process = start(message);
    require_loaded(process->receive(), task.name);
    while (answers.of_cases.size() < task.cases.size()) answers.of_cases.push_back(process->receive());
  } catch (const MessageError&) {
    answers.problem = unreadable;
  } catch (const Error& error) {
    answers.problem = error.what();
  }
  return answers;
}

std::string sizes_text(const CheckCase& c) {
  std::string text;
  for (const auto& [letter, size] : c.sizes) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", letter, size);
  return text;
}

/// Compares a submission's answers with the reference, case by case.
class Marker {
 public:
  Marker(const MechanismTask& task, const std::string& source, const StartProcess& start)
      : task_(task), source_(source), start_(start) {}

  Mark mark(const std::string& point) {
    if (point == "memory")
      return mark_cases(Question::memory, [&](Mark& mark, Message& answer, std::size_t) {
        for (Index left = answer.integer(0, 1000); left > 0; --left) say(mark, answer.text());
      });
    if (point == "output")
      return mark_cases(Question::output,
                        [&](Mark& mark, Message& answer, std::size_t i) { compare_output(mark, answer, i); });
    if (point.starts_with(gradient_prefix)) return mark_gradient(point.substr(gradient_prefix.size()));
    return mark_costs(point.substr(5));
  }

 private:
  Answers& answers(Question question) {
    const auto [at, is_new] = answers_.try_emplace(question);
    if (is_new) at->second = ask(start_, task_, question);
    return at->second;
  }

  static void say(Mark& mark, const std::string& what) {
    mark.right = false;
    if (std::ranges::find(mark.says, what) == mark.says.end()) mark.says.push_back(what);
  }

  /// Marks a point as right unless an answer is missing, is an error or rejects a shape of the reference, `compare`
  /// finds an error in an answer, or all answers reject their shapes.
  template <class Compare>
  Mark mark_cases(Question question, const Compare& compare) {
    const Answers& given = answers(question);
    Mark mark{.right = true};
    Index compared = 0;
    for (std::size_t i = 0; i < given.of_cases.size(); ++i) {
      Message answer = given.of_cases[i];  // a copy: each point reads the answer from its beginning
      try {
        if (answer.integer(0, 1) == 0) {
          say(mark, answer.text());
        } else if (answer.integer(0, 1) == 1) {
          compare(mark, answer, i);
          ++compared;
        } else if (task_.reference) {
          say(mark, fmt::format("it rejects a shape that {} accepts", task_.reference->name()));
        }
      } catch (const MessageError&) {
        say(mark, unreadable);
      } catch (const Error& error) {
        say(mark, error.what());
      }
    }
    if (!given.problem.empty()) say(mark, given.problem);
    if (mark.says.empty() && compared == 0) say(mark, "it accepts none of the shapes that it is checked with");
    return mark;
  }

  /// Returns the case of the reference or, without one, a case with only a name and sizes.
  CheckCase reference(std::size_t i) const {
    const HiddenCase& hidden = task_.cases[i];
    if (task_.reference) return *attention_case(task_.name, *task_.reference, hidden.shape);
    const AttentionCaseShape& s = hidden.shape;
    CheckCase c;
    c.name = c.setting = task_.name;
    c.sizes = {{'B', s.images}, {'H', s.heads}, {'N', s.queries}, {'M', s.keys}, {'d', s.dim / s.heads}};
    return c;
  }

  void say_wrong(Mark& mark, const Diagnosis& d, const std::vector<std::string>& axes, const CheckCase& c) {
    if (!mark.says.empty()) return;  // only the first wrong case is described
    say(mark, fmt::format("it is wrong in {} of {} elements where {}: looks {}", d.wrong, d.elements, sizes_text(c),
                          d.looks));
    if (!d.right.empty()) say(mark, "it is right " + d.right);
    if (!d.worst.empty()) say(mark, "it is worst at " + place_text(axes, d.worst));
  }

  static std::vector<std::string> head_axes() { return {"image", "head", "token", "channel"}; }

  void compare_output(Mark& mark, Message& answer, std::size_t i) {
    const CheckCase c = reference(i);
    const Tensor<double> got = answer.tensor(), expected = case_output(c, task_.cases[i].seed);
    if (got.shape() != expected.shape())
      return say(mark, fmt::format("it has shape {}; expected {}", got.shape(), expected.shape()));
    const std::vector<std::string> axes = head_axes();
    const Diagnosis d = diagnose(std::as_const(got).view(), std::as_const(expected).view(), axes,
                                 {output_tolerance, std::max(1e-3 * largest_magnitude(expected), 1e-9)});
    if (d.wrong > 0) say_wrong(mark, d, axes, c);
  }

  /// Returns central differences of the submission's own output, for labs without a reference.
  ExpectedGradients own_differences(std::size_t i, const std::string& tensor) {
    Answers& given = answers(Question::differences);
    require(i < given.of_cases.size(), "{}", given.problem);
    Message answer = given.of_cases[i];
    if (answer.integer(0, 1) == 0) fail("{}", answer.text());
    require(answer.integer(0, 1) == 1, "its output cannot be computed");
    const Tensor<double> noise = answer.tensor();
    require(noise.size() == 1, "the noise of its output is missing");
    for (Index left = answer.integer(0, 100); left > 0; --left) {
      const std::string name = answer.text();
      Tensor<double> expected = answer.tensor();
      if (name == tensor) return {{std::move(expected)}, noise[0]};
    }
    fail("its output does not depend on {}", tensor);
  }

  Mark mark_gradient(const std::string& tensor) {
    Mark mark = mark_cases(Question::gradients,
                           [&](Mark& m, Message& answer, std::size_t i) { compare_gradient(m, answer, i, tensor); });
    if (!mark.right && !mark.says.empty() && mark.says[0].starts_with("it is wrong"))
      for (const BackwardStep& step : backward_steps(source_, tensor))
        say(mark, fmt::format("see undoing {}: {}", step.number, step.text));
    return mark;
  }

  /// Gradient of one tensor of a submission: in double, and computed in the other number types.
  struct Gradient : CaseResults {
    Tensor<double> in_float, in_counted;
  };

  /// Returns an answer's gradient of a tensor; empty if the tensor is missing.
  static Gradient gradient_in(Message& answer, const std::string& tensor) {
    Gradient gradient;
    gradient.gradients.resize(1), gradient.added.resize(1);
    for (Index left = answer.integer(0, 100); left > 0; --left) {
      const std::string name = answer.text();
      Tensor<double> alone = answer.tensor(), added = answer.tensor(), in_float = answer.tensor(),
                     in_counted = answer.tensor();
      if (name != tensor) continue;
      gradient.gradients[0] = std::move(alone), gradient.added[0] = std::move(added);
      gradient.in_float = std::move(in_float), gradient.in_counted = std::move(in_counted);
    }
    return gradient;
  }

  void compare_gradient(Mark& mark, Message& answer, std::size_t i, const std::string& tensor) {
    CheckCase c = reference(i);
    const std::uint64_t seed = task_.cases[i].seed;
    if (!task_.reference) {
      c.inputs = {{.name = tensor, .shape = {}}};
      const ExpectedGradients expected = own_differences(i, tensor);
      if (expected.gradients[0].shape().rank() == 4) c.inputs[0].axes = head_axes();
      return compare_tensor(mark, c, seed, gradient_in(answer, tensor), expected);
    }
    const auto input = std::ranges::find(c.inputs, tensor, &CheckInput::name);
    if (input == c.inputs.end()) return;  // only other shapes have this tensor
    const std::size_t k = static_cast<std::size_t>(input - c.inputs.begin());
    // The reference's own gradients, computed once for the points of all tensors.
    const auto [at, is_new] = expected_.try_emplace(i);
    if (is_new) at->second = case_results(c, seed).gradients;
    const ExpectedGradients expected{{at->second[k]}, largest_noise(c, seed)};
    c.inputs = {CheckInput(*input)};
    const Gradient got = gradient_in(answer, tensor);
    compare_tensor(mark, c, seed, got, expected);
    if (mark.says.empty()) hold(mark, got.gradients[0], expected.gradients[0], double_precision, "in double");
  }

  /// Marks a gradient as wrong if its error exceeds `precision`.
  static void hold(Mark& mark, const Tensor<double>& got, const Tensor<double>& expected, double precision,
                   const char* where) {
    const auto said = [where](const std::string& line) { return line.starts_with(where); };
    if (std::ranges::any_of(mark.says, said)) return;  // only the first wrong case is described
    if (got.shape() != expected.shape()) return say(mark, fmt::format("{} it has the wrong shape", where));
    const double largest = std::max(largest_magnitude(expected), 0.01);
    double error = 0;
    for (Index i = 0; i < got.size(); ++i) {
      const double e = std::abs(got[i] - expected[i]) / largest;
      if (!(e <= error)) error = e;
      if (std::isnan(error)) break;  // the next element would overwrite the NaN
    }
    if (error <= precision) return;
    say(mark, fmt::format("{} its error is {:.1g} of the tensor's largest element; expected at most {:.0g}: write the "
                          "exact derivative, the same for all number types",
                          where, error, precision));
  }

  void compare_tensor(Mark& mark, const CheckCase& c, std::uint64_t seed, const Gradient& got,
                      const ExpectedGradients& expected) {
    const Shape &shape = expected.gradients[0].shape(), &found = got.gradients[0].shape();
    if (got.gradients[0].size() == 0 && shape.elements() > 0)
      return say(mark, fmt::format("it has no tensor {}", in_quotes(c.inputs[0].name)));
    if (found != shape || got.added[0].shape() != shape)
      return say(mark, fmt::format("it has shape {}; expected {}", found, shape));
    const CheckRow row = compare_gradients(c, seed, got, expected)[0];
    if (!row.passed) return say_wrong(mark, row.diagnosis, row.axes, c);
    hold(mark, got.in_float, got.gradients[0], float_precision, "in float");
    hold(mark, got.in_counted, got.gradients[0], double_precision, "with the number type that counts operations");
  }

  static Counts executed_in(Message& answer) {
    Counts counts;
    for (const CountKind& kind : count_kinds) counts.*kind.member = answer.integer(0, Index{1} << 40);
    return counts;
  }

  /// Reads stated counts, which may be any numbers, and clamps them, so that differences do not overflow.
  static Counts stated_in(Message& answer) {
    constexpr Index most = Index{1} << 60;
    Counts counts;
    for (const CountKind& kind : count_kinds) counts.*kind.member = std::clamp(answer.integer(), -most, most);
    return counts;
  }

  static Index total(const Counts& counts) {
    Index sum = 0;
    for (const CountKind& kind : count_kinds) sum += counts.*kind.member;
    return sum;
  }

  Mark mark_costs(const std::string& pass) {
    const bool forward = pass == "forward";
    std::vector<CheckedCost> rows;
    Mark mark = mark_cases(Question::costs, [&](Mark& m, Message& answer, std::size_t i) {
      const CheckCase c = reference(i);
      CheckedCost row{.operation = c.name,
                      .setting = c.setting,
                      .pass = forward ? "forward" : "backward",
                      .stated = {},
                      .executed = {},
                      .sizes = c.sizes};
      row.stated = stated_in(answer), row.executed = executed_in(answer);
      if (!forward) row.stated = stated_in(answer), row.executed = executed_in(answer);
      rows.push_back(row);
      if (task_.reference) compare_total(m, total(row.executed), c, task_.cases[i].shape, forward);
    });
    for (const CostError& e : cost_errors(rows)) {
      say(mark, fmt::format("{} is stated as {}, but {} are executed: {} too {}", e.count, e.stated, e.executed,
                            std::abs(e.executed - e.stated), e.executed > e.stated ? "few" : "many"));
      if (!e.difference.empty())
        say(mark, fmt::format("for {}, executed - stated = {} for all shapes", e.count, e.difference));
    }
    return mark;
  }

  /// Marks a number of executed operations as wrong if it is too large, or too small to compute the result.
  void compare_total(Mark& mark, Index executed, const CheckCase& c, const AttentionCaseShape& s, bool forward) const {
    const AttentionShape shape =
        task_.reference->layout(s.dim, s.heads)
            .among(s.queries, s.keys,
                   {.grid_height = s.grid_height, .grid_width = s.grid_width, .class_token = s.class_token});
    const Cost cost = s.images * task_.reference->cost(shape) + preparation_cost(*task_.reference, shape);
    const Counts all = forward ? cost.forward : cost.backward,
                 contractions = forward ? cost.forward_contractions : cost.backward_contractions;
    const Index most = static_cast<Index>(task_.slack * static_cast<double>(total(all)));
    if (!mark.says.empty() || (executed <= most && 2 * executed >= total(contractions))) return;
    say(mark,
        executed > most
            ? fmt::format("it executes {} operations for {}; expected at most {}", executed, sizes_text(c), most)
            : fmt::format("it executes {} operations for {}: too few to compute the result", executed, sizes_text(c)));
  }

  const MechanismTask& task_;
  const std::string& source_;
  const StartProcess& start_;
  std::map<Question, Answers> answers_;
  std::map<std::size_t, std::vector<Tensor<double>>> expected_;  ///< the reference's gradients, by index of the case
};

}  // namespace

std::vector<Mark> mark_mechanism(const std::vector<std::string>& points, const MechanismTask& task,
                                 const std::string& source, const StartProcess& start) {
  Marker marker(task, source, start);
  std::vector<Mark> marks;
  for (const std::string& point : points) marks.push_back(marker.mark(point));
  return marks;
}

}  // namespace heed
