// Lanes, their tree sum, and their division among processes.
#include "heed/train/lanes.h"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace heed;

namespace {

/// Returns the tree over lanes as a formula.
std::string formula(LaneRange lanes) {
  return tree_sum(
      lanes, [](Index lane) { return std::to_string(lane); },
      [](const std::string& a, const std::string& b) { return "(" + a + "+" + b + ")"; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_lanes)

BOOST_AUTO_TEST_CASE(the_tree_is_that_of_halves) {
  BOOST_TEST(formula({0, 1}) == "0");
  BOOST_TEST(formula({0, 3}) == "(0+(1+2))");
  BOOST_TEST(formula({0, 8}) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
  BOOST_TEST(formula({0, 5}) == "((0+1)+(2+(3+4)))");
}

// If processes own subtrees, the tree sum over processes equals that of one process.
BOOST_AUTO_TEST_CASE(processes_own_subtrees) {
  for (Index count = 8; count <= 16; ++count) {
    const Lanes lanes{count, 1, count};
    for (const int ranks : {1, 2, 4, 8}) {
      std::vector<std::string> sums;
      Index next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const LaneRange own = lanes.of_process(rank, ranks);
        BOOST_TEST(own.first == next);
        BOOST_REQUIRE(own.last > own.first);
        sums.push_back(formula(own));
        next = own.last;
      }
      BOOST_TEST(next == count);
      for (; sums.size() > 1; sums.resize(sums.size() / 2))
        for (std::size_t i = 0; i < sums.size() / 2; ++i) sums[i] = "(" + sums[2 * i] + "+" + sums[2 * i + 1] + ")";
      BOOST_TEST(sums[0] == formula({0, count}), count << " lanes, " << ranks << " processes");
    }
  }
}

BOOST_AUTO_TEST_CASE(every_model_has_eight_lanes_where_there_are_eight_microbatches) {
  for (const Index weights : {1, 1 << 22, (1 << 22) + 1, 1 << 30})
    for (const Index examples : {1, 7, 63, 64, 65, 128, 1000}) {
      const Lanes lanes = lanes_of(examples, 8, weights);
      BOOST_TEST(lanes.microbatches() == (examples + 7) / 8);
      BOOST_TEST(lanes.count >= std::min<Index>(8, lanes.microbatches()));
      BOOST_TEST(lanes.count <= lanes.microbatches());
      Index covered = 0;
      for (Index microbatch = 0; microbatch < lanes.microbatches(); ++microbatch) {
        BOOST_TEST(lanes.microbatch_at(microbatch).first == covered);
        covered += lanes.microbatch_at(microbatch).count;
      }
      BOOST_TEST(covered == examples);
      BOOST_TEST(lanes.first_microbatch(0) == 0);
      for (Index lane = 0; lane < lanes.count; ++lane)
        BOOST_TEST(lanes.first_microbatch(lane) < lanes.first_microbatch(lane + 1));
      BOOST_TEST(lanes.first_microbatch(lanes.count) == lanes.microbatches());
    }
}

// Gradients of sixteen lanes of 2^22 floats take 0.25 GB; lanes in parallel take at most 1 GB, 2^28 floats.
BOOST_AUTO_TEST_CASE(lanes_of_large_models) {
  constexpr Index most = 1 << 22;
  for (const bool undivided : {false, true}) {
    BOOST_TEST(lanes_of(1000, 8, most, undivided).count == 16);
    BOOST_TEST(lanes_of(1000, 8, most + 1, undivided).count == 8);
  }
  BOOST_TEST(!streams_lanes(1 << 25, 8));
  BOOST_TEST(streams_lanes((1 << 25) + 1, 8));
}

// If examples depend on each other, a larger batch has at least as many lanes, and lengths of lanes differ by at most
// one example.
BOOST_AUTO_TEST_CASE(whole_lanes_are_even) {
  for (const Index microbatch : {1, 3, 8}) {
    Index lanes_before = 0;
    for (Index examples = 1; examples <= 300; ++examples) {
      const Lanes lanes = lanes_of(examples, microbatch, 1, true);
      BOOST_TEST(lanes.count == std::min<Index>(16, (examples + microbatch - 1) / microbatch));
      BOOST_TEST(lanes.microbatches() == lanes.count);
      BOOST_TEST(lanes.count >= lanes_before);
      lanes_before = lanes.count;
      Index covered = 0;
      for (Index lane = 0; lane < lanes.count; ++lane) {
        const ExampleRange own = lanes.microbatch_at(lane), by_range = lanes.examples_of({lane, lane + 1});
        BOOST_TEST(own.first == covered);
        BOOST_TEST((own.count == examples / lanes.count || own.count == (examples + lanes.count - 1) / lanes.count));
        BOOST_TEST(by_range.first == own.first);
        BOOST_TEST(by_range.count == own.count);
        covered += own.count;
      }
      BOOST_TEST(covered == examples);
    }
  }
}

// sums_at_once() is the largest number of sums of lanes and subtrees that exist at once in a sequential tree sum.
BOOST_AUTO_TEST_CASE(a_logarithm_of_sums_is_enough) {
  for (Index lanes = 1; lanes <= 70; ++lanes) {
    Index now = 0, most = 0;
    tree_sum(
        LaneRange{0, lanes},
        [&](Index) {
          most = std::max(most, ++now);
          return 0;
        },
        [&](int, int) {
          --now;
          return 0;
        });
    BOOST_TEST(now == 1);
    BOOST_TEST(most == sums_at_once(lanes), lanes << " lanes");
  }
}

BOOST_AUTO_TEST_SUITE_END()
