// First and last operations of token-sequence models, and operations that treat each sequence separately.
#include "cases.h"

#include "heed/ops/dropout.h"
#include "heed/ops/linear.h"
#include "heed/ops/sequences.h"

#include <algorithm>
#include <array>

namespace heed {

namespace {

/// Eight rows: sequences of 4, 1 and 3 rows, or two sequences of 4.
struct CheckedSequences {
  static constexpr Index vocab = 7, width = 3, rows = 8, count = 3, longest = 4;
  static constexpr Index starts[] = {0, 4, 5, 8};
  /// Tokens repeat within and across sequences, and do not cover the vocabulary.
  static constexpr int tokens[] = {4, 1, 4, 0, 3, 1, 1, 6};
  static constexpr std::array<TokenRows, 3> differing{{{tokens, 0, 4}, {tokens + 4, 4, 1}, {tokens + 5, 5, 3}}};
  static constexpr std::array<TokenRows, 2> alike{{{tokens, 0, 4}, {tokens + 4, 4, 4}}};

  template <class T>
  static void divide(Tape<T>& tape) {
    tape.divide_rows({starts, 0, longest});
  }

  static CheckInput input() { return {"x", {1, rows, width}}; }
};

void add_embeddings(CheckCases& cases) {
  using Given = CheckedSequences;
  const CheckInput weight{"weight", {Given::vocab, Given::width}}, front{"front", {1, 1, Given::width}},
      position{"position", {1, Given::longest + 1, Given::width}};
  // embed_sequences() does not count accumulation into the embedding rows.
  const auto add_case = [&](const std::string& name, std::vector<CheckInput> inputs, Index looked_up, const auto& f) {
    cases.add("embed_sequences" + name, std::move(inputs), f);
    cases.back().unstated.backward.add = looked_up * Given::width;
  };
  for (const bool has_position : {true, false})
    for (const bool has_front : {false, true}) {
      std::vector<CheckInput> inputs{weight};
      if (has_front) inputs.push_back(front);
      if (has_position) inputs.push_back(position);
      const std::string name =
          std::string(has_front ? ", start or class token" : "") + (has_position ? "" : ", no position");
      add_case(name, inputs, Given::rows - (has_front ? Given::count : 0), [=](auto& tape, const auto& v) {
        using Variable = std::decay_t<decltype(v[0])>;
        Given::divide(tape);
        return embed_sequences(std::span<const TokenRows>(Given::differing), v[0], has_front ? v[1] : Variable{},
                               has_position ? v.back() : Variable{});
      });
    }
  // The gradient of a weight shared with the head is the sum of both uses' gradients.
  add_case(", tied to the head", {weight, position}, Given::rows, [](auto&, const auto& v) {
    return linear(embed_sequences(std::span<const TokenRows>(Given::alike), v[0], {}, v[1]), v[0]);
  });
}

void add_pools(CheckCases& cases) {
  for (const auto& [name, pool] : {std::pair{"first", SequencePool::first}, std::pair{"last", SequencePool::last},
                                   std::pair{"mean", SequencePool::mean}})
    cases.add(fmt::format("pool_sequences, {}", name), {CheckedSequences::input()},
              [pool = pool](auto& tape, const auto& v) {
                CheckedSequences::divide(tape);
                return pool_sequences(v[0], pool);
              });
}

void add_drops(CheckCases& cases) {
  cases.add("dropout, sequences", {CheckedSequences::input()}, [](auto& tape, const auto& v) {
    CheckedSequences::divide(tape);
    return dropout(v[0], 0.4, 1);
  });
  cases.add("stochastic_depth, sequences", {CheckedSequences::input()}, [](auto& tape, const auto& v) {
    CheckedSequences::divide(tape);
    return stochastic_depth(v[0], 0.4, 1);
  });
}

void add_label_losses(CheckCases& cases) {
  static constexpr int all[] = {4, 0, 2, 2, 3, 1}, some[] = {4, -1, 2, 2, -1, 1};
  const CheckInput logits{"logits", {2, 3, 5}, -3, 3};
  const auto loss = [](const int* labels) {
    return [=](auto&, const auto& v) { return label_cross_entropy(v[0], labels, 7); };
  };
  cases.add("label_cross_entropy", {logits}, loss(all));
  cases.add("label_cross_entropy, rows left out", {logits}, loss(some));
  // The stated cost assumes a label for every row.
  const Index left_out = std::count(std::begin(some), std::end(some), -1);
  cases.back().unstated.forward = -left_out * Counts{.add = 3, .log = 1};
  cases.back().unstated.backward = -left_out * Counts{.add = 1};
}

}  // namespace

void add_sequence_cases(CheckCases& cases) {
  add_embeddings(cases);
  add_pools(cases);
  cases.add("pair_features, products", {{"x", {4, 3}}}, [](auto&, const auto& v) { return pair_features(v[0], true); });
  cases.add("pair_features, no products", {{"x", {4, 3}}},
            [](auto&, const auto& v) { return pair_features(v[0], false); });
  add_label_losses(cases);
  add_drops(cases);
}

}  // namespace heed
