// Messages for questions about a mechanism.
#pragma once

#include "mechanism_marks.h"

namespace heed {

struct MechanismQuestion {
  Question question;
  std::string name;
  OptionValues options;
  std::vector<HiddenCase> cases;
};

inline void put_question(Message& message, const MechanismQuestion& asked) {
  message.put(static_cast<Index>(asked.question));
  message.put(asked.name);
  message.put(static_cast<Index>(asked.options.size()));
  for (const auto& [option, value] : asked.options) message.put(option), message.put(value);
  message.put(static_cast<Index>(asked.cases.size()));
  for (const auto& [s, seed] : asked.cases) {
    message.put(s.label);
    for (const Index size :
         {s.images, s.heads, s.queries, s.keys, s.dim, s.grid_height, s.grid_width, s.class_token})
      message.put(size);
    message.put(static_cast<Index>(seed));
  }
}

inline MechanismQuestion get_question(Message& message) {
  MechanismQuestion asked;
  asked.question = static_cast<Question>(message.integer(0, 4));
  asked.name = message.text();
  for (Index left = message.integer(0, 100); left > 0; --left) {
    const std::string option = message.text();
    asked.options[option] = message.text();
  }
  for (Index left = message.integer(0, 100); left > 0; --left) {
    HiddenCase& hidden = asked.cases.emplace_back();
    AttentionCaseShape& s = hidden.shape;
    s.label = message.text();
    for (Index* const size : {&s.images, &s.heads, &s.queries, &s.keys, &s.dim, &s.grid_height, &s.grid_width})
      *size = message.integer(0, 1000);
    s.class_token = message.integer(0, 1) == 1;
    hidden.seed = static_cast<std::uint64_t>(message.integer());
  }
  return asked;
}

}  // namespace heed
