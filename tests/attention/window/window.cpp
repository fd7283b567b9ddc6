// Window attention compared with hand-calculated values and its definition, which rolls and partitions the grid like
// Swin. tests/checks/cases.cpp checks gradients, costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

using Sees = std::function<bool(Index, Index)>;

MapDefinition definition(const Sees& sees) {
  return [=](const DefinitionHead& x) {
    SlowMatrix scores(x.N(), x.M());
    for (Index i = 0; i < x.N(); ++i)
      for (Index j = 0; j < x.M(); ++j)
        for (Index c = 0; c < x.d(); ++c) scores(i, j) += x.q(i, c) * x.k(j, c) / std::sqrt(static_cast<double>(x.d()));
    return slow_softmax(scores, sees);
  };
}

/// Position (r, c) moves to ((r - shift) mod height, (c - shift) mod width). There, tokens of the same window attend to
/// each other if, along each axis, both or neither are before the seam, height - shift or width - shift.
Sees of_rolled_cells(Index height, Index width, Index window, Index shift) {
  return [=](Index i, Index j) {
    const auto rolled = [=](Index place, Index extent) { return (place - shift + extent) % extent; };
    const auto together = [=](Index a, Index b, Index extent) {
      return a / window == b / window && (a < extent - shift) == (b < extent - shift);
    };
    return together(rolled(i / width, height), rolled(j / width, height), height) &&
           together(rolled(i % width, width), rolled(j % width, width), width);
  };
}

Tensors operands(Index N, Index M) {
  return {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
          {"k", random_tensor({2, 2, M, 4}, 2, 2)},
          {"v", random_tensor({2, 2, M, 3}, 3)},
          {"dout", random_tensor({2, 2, N, 3}, 4)}};
}

Index pairs(const char* window, const char* dims, const char* shift, const AttentionShape& shape) {
  const auto mechanism = make_mechanism("window", {{"window", window}, {"dims", dims}, {"shift", shift}});
  return mechanism->cost(shape).attention_exp;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(window)

// With equal scores, a token's output is the mean over the tokens it attends to: with window=2, itself and its
// neighbours.
BOOST_AUTO_TEST_CASE(neighbours_by_hand) {
  const Tensors x{
      {"q", tokens(4, 1, {0, 0, 0, 0})}, {"k", tokens(4, 1, {5, 6, 7, 8})}, {"v", tokens(4, 1, {6, 12, 0, 30})}};
  const Tensors r = run_mechanism<double>("window", {{"window", "2"}}, x);
  check_near(r.at("out"), {9, 6, 14, 15});
  check_near(r.at("map"), {0.5, 0.5, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0, 0.5, 0.5});
  check_near(r.at("dv"), {5.0 / 6, 7.0 / 6, 7.0 / 6, 5.0 / 6});
  // dS = A (v - out), dq = dS k: for the first, (-3/2, 3/2) (5, 6).
  check_near(r.at("dq"), {1.5, (0 * 5 + 6 * 6 - 6 * 7) / 3.0, (-2 * 6 - 14 * 7 + 16 * 8) / 3.0, 7.5});
  check_near(run_mechanism<double>("window", {{"window", "1"}}, x).at("out"), {6, 12, 0, 30});
}

// A grid of 2 x 4: cells of 2 x 2 are (0 1 4 5) and (2 3 6 7). Shifted by one, each border row and column is separate:
// the middle cells (1 2) and (5 6), and single tokens in the corners.
BOOST_AUTO_TEST_CASE(cells_by_hand) {
  const AttentionShape grid{.grid_height = 2, .grid_width = 4};
  const Tensors x{{"q", tokens(8, 1, std::vector<double>(8))},
                  {"k", tokens(8, 1, {1, 2, 3, 4, 5, 6, 7, 8})},
                  {"v", tokens(8, 1, {1, 3, 10, 20, 5, 11, 30, 60})}};
  const auto out = [&](const char* shift) {
    return run_mechanism<double>("window", {{"window", "2"}, {"dims", "2"}, {"shift", shift}}, x, grid).at("out");
  };
  check_near(out("0"), {5, 5, 30, 30, 5, 5, 30, 30});
  check_near(out("1"), {1, 6.5, 6.5, 20, 5, 20.5, 20.5, 60});
}

// Windows narrower and wider than a block of queries, and than the sequence.
BOOST_AUTO_TEST_CASE(bands_by_definition) {
  struct Sizes {
    Index N, M, window;
  };
  for (const auto& [N, M, window] : {Sizes{1, 1, 1},
                                     {50, 50, 1},
                                     {50, 50, 2},
                                     {100, 100, 8},
                                     {150, 150, 33},
                                     {150, 150, 100},
                                     {40, 40, 40},
                                     {40, 40, 1000},
                                     {33, 60, 5},
                                     {60, 33, 28},
                                     {60, 33, 200}}) {
    const Index w = window;
    check_definition("window", {{"window", std::to_string(w)}}, operands(N, M),
                     definition([=](Index t, Index s) { return std::abs(t - s) < w; }));
  }
}

BOOST_AUTO_TEST_CASE(cells_by_definition) {
  struct Sizes {
    Index height, width, window, shift;
  };
  for (const auto& [height, width, window, shift] : {Sizes{1, 1, 1, 0},
                                                     {4, 6, 2, 0},
                                                     {4, 6, 2, 1},
                                                     {6, 9, 3, 1},
                                                     {6, 9, 3, 2},
                                                     {4, 4, 4, 0},
                                                     {4, 4, 4, 3},
                                                     {10, 20, 10, 0},
                                                     {10, 20, 10, 4}})
    check_definition("window", {{"window", std::to_string(window)}, {"dims", "2"}, {"shift", std::to_string(shift)}},
                     operands(height * width, height * width),
                     definition(of_rolled_cells(height, width, window, shift)),
                     {.grid_height = height, .grid_width = width});
}

BOOST_AUTO_TEST_CASE(visible_pairs) {
  AttentionShape shape{
      .heads = 3, .queries = 64, .keys = 64, .width = 4, .value_width = 4, .grid_height = 8, .grid_width = 8};
  BOOST_TEST(pairs("8", "1", "0", shape) == 3 * (64 * 15 - 2 * (7 * 8 / 2)));
  BOOST_TEST(pairs("1000000000000", "1", "0", shape) == 3 * 64 * 64);
  BOOST_TEST(pairs("4", "2", "0", shape) == 3 * 64 * 16);
  // Shifted windows divide each axis into strips of 1, 4 and 3: 1 + 16 + 9 pairs of rows.
  BOOST_TEST(pairs("4", "2", "1", shape) == 3 * 26 * 26);
  const Cost cost = make_mechanism("window", {{"window", "4"}, {"dims", "2"}})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 64 * 16 * 2 * 4);
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const AttentionShape shape{
      .heads = 1, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16, .grid_height = 64, .grid_width = 64};
  for (const char* dims : {"1", "2"}) {
    const AttentionMemorySize size = make_mechanism("window", {{"window", "8"}, {"dims", dims}})->memory(shape);
    BOOST_TEST(size.saved == 2 * 4096);
    BOOST_TEST(size.scratch <= 2 * 64 * 64 + 7 * 64 * 16);
  }
}

BOOST_AUTO_TEST_CASE(bad_options) {
  const AttentionShape grid{
      .heads = 1, .queries = 24, .keys = 24, .width = 2, .value_width = 2, .grid_height = 4, .grid_width = 6};
  const auto refused = [&](const OptionValues& options) { return refusal("window", options, grid); };
  BOOST_TEST(refused({}) == "[window] window is not set; expected 1 or more");
  BOOST_TEST(refused({{"window", "0"}}) == "[window] window is 0; expected 1 or more");
  BOOST_TEST(refused({{"window", "2"}, {"dims", "0"}}) == "[window] dims is 0; expected 1 or 2");
  BOOST_TEST(refused({{"window", "2"}, {"dims", "3"}}) == "[window] dims is 3; expected 1 or 2");
  BOOST_TEST(refused({{"window", "2"}, {"shift", "1"}}) ==
             "[window] shift is 1; expected 0; only windows of a grid, dims=2, are shifted");
  BOOST_TEST(refused({{"window", "4"}, {"dims", "2"}}) ==
             "[window] window is 4; it must divide both sides of the image grid, 4 x 6");
  BOOST_TEST(refused({{"window", "8"}, {"dims", "2"}}) ==
             "[window] window is 8; it must divide both sides of the image grid, 4 x 6");
  for (const char* shift : {"-1", "2"})
    BOOST_TEST(refused({{"window", "2"}, {"dims", "2"}, {"shift", shift}}) ==
               std::string("[window] shift is ") + shift + "; expected 0 to 1, less than window");
  BOOST_TEST(refusal("window", {{"window", "1"}, {"dims", "2"}},
                     {.queries = 5, .keys = 5, .grid_height = 2, .grid_width = 2, .class_token = true}) ==
             "[window] dims is 2; a class token or register has no position on the image grid: expected dims=1");
  BOOST_TEST(refusal("window", {{"window", "1"}, {"dims", "2"}}, {.queries = 4, .keys = 4}) ==
             "[window] dims is 2; 4 queries and 4 keys do not form an image grid of 0 x 0");
  BOOST_TEST(refusal("window", {{"window", "2"}}, {.queries = 7, .keys = 5}) ==
             "[window] window is 2; the last of 7 queries sees none of the 5 keys: expected 3 or more");
  BOOST_TEST(refusal("window", {{"window", "3"}}, {.queries = 7, .keys = 5}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
