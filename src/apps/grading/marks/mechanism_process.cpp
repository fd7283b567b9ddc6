// Process of a submission: answers the grader's questions about a mechanism.
#include "mechanism_marks.h"

#include "mechanism_messages.h"

#include "heed/base/suggest.h"
#include "heed/checks/costcheck.h"
#include "heed/cost/energy.h"

namespace heed {

namespace {

void put(Message& answer, const Counts& counts) {
  for (const CountKind& kind : count_kinds) answer.put(counts.*kind.member);
}

void put_memory(Message& answer, const CheckCase& c, std::uint64_t) {
  const std::vector<std::string> faults = c.memory_faults();
  answer.put(static_cast<Index>(faults.size()));
  for (const std::string& fault : faults) answer.put(fault);
}

void put_output(Message& answer, const CheckCase& c, std::uint64_t seed) { answer.put(case_output(c, seed)); }

void put_gradients(Message& answer, const CheckCase& c, std::uint64_t seed) {
  const CaseResults results = case_results(c, seed);
  const std::vector<Tensor<double>> in_float = gradients_in<float>(c, seed),
                                    in_counted = gradients_in<Counted>(c, seed);
  answer.put(static_cast<Index>(c.inputs.size()));
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    answer.put(c.inputs[k].name);
    answer.put(results.gradients[k]);
    answer.put(results.added[k]);
    answer.put(in_float[k]);
    answer.put(in_counted[k]);
  }
}

void put_differences(Message& answer, const CheckCase& c, std::uint64_t seed) {
  const ExpectedGradients expected = expected_gradients(c, seed);
  answer.put(Tensor<double>({1}, {largest_noise(c, seed)}));
  answer.put(static_cast<Index>(c.inputs.size()));
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    answer.put(c.inputs[k].name);
    answer.put(expected.gradients[k]);
  }
}

void put_costs(Message& answer, const CheckCase& c, std::uint64_t) {
  const std::vector<CheckedCost> rows = costcheck(c);
  for (const CheckedCost& pass : std::span(rows).first(2)) put(answer, pass.stated), put(answer, pass.executed);
}

using Put = void (*)(Message&, const CheckCase&, std::uint64_t);
constexpr Put puts[] = {put_memory, put_output, put_gradients, put_differences, put_costs};

/// Returns the answer that `make` computes, or its error.
template <class Make>
Message answer_of(const Make& make) {
  std::string problem = "it throws a value that is not a std::exception";
  try {
    Message answer;
    answer.put(Index{1});
    make(answer);
    return answer;
  } catch (const std::bad_alloc&) {
    problem = "it exceeds the memory limit";
  } catch (const std::exception& error) {
    problem = error.what();
  } catch (...) {
  }
  Message answer;
  answer.put(Index{0});
  answer.put(beginning(problem, 500));
  return answer;
}

}  // namespace

void answer_question(Message message) {
  const MechanismQuestion asked = get_question(message);
  for (const HiddenCase& hidden : asked.cases)
    write_message(3, answer_of([&](Message& answer) {
                    const auto mechanism = make_mechanism(asked.name, asked.options);
                    const auto c = attention_case(asked.name, *mechanism, hidden.shape);
                    answer.put(Index{c.has_value()});
                    if (c) puts[static_cast<std::size_t>(asked.question)](answer, *c, hidden.seed);
                  }));
}

}  // namespace heed
