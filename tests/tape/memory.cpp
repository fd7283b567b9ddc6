// Memory of a pass, and the time of its operations.
#include "heed/tape/arena.h"
#include "heed/tape/profile.h"
#include "heed/tape/tape.h"

#include "heed/ops/elementary/arithmetic.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace heed;

namespace {

/// Returns the time some seconds ago.
Profile::Clock::time_point ago(int seconds) { return Profile::Clock::now() - std::chrono::seconds(seconds); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tape_memory)

// Two allocations fit the caller's memory, which begins off a cache line; the third is in a block of 64 KiB.
BOOST_AUTO_TEST_CASE(memory_of_the_caller_comes_first) {
  alignas(alignment) std::byte memory[256];
  Arena arena(std::span(memory + 1, 200));  // 137 of the bytes are after the next cache line boundary
  BOOST_TEST(arena.allocate_bytes(60) == memory + 64);
  BOOST_TEST(arena.allocate<std::int32_t>(16) == static_cast<void*>(memory + 128));
  const auto* const outside = static_cast<std::byte*>(arena.allocate_bytes(1));
  BOOST_TEST((outside < memory || outside >= memory + 256));
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(outside) % alignment == 0u);
  BOOST_TEST(arena.largest() == 3 * 64);
  BOOST_TEST(arena.reserved() == 1 << 16);
}

// After a pass in several blocks there is a single block, as large as the largest pass so far, even if smaller passes
// follow.
BOOST_AUTO_TEST_CASE(the_next_pass_has_one_block) {
  Arena arena;
  BOOST_TEST(arena.reserved() == 0);
  arena.allocate_bytes(1 << 16);  // a whole block
  arena.allocate_bytes(1);        // in a second block of twice the size
  BOOST_TEST(arena.reserved() == 3 << 16);
  BOOST_TEST(arena.largest() == (1 << 16) + 64);
  arena.clear();
  BOOST_TEST(arena.reserved() == (1 << 16) + 64);
  void* const first = arena.allocate_bytes(100);
  arena.clear();
  BOOST_TEST(arena.allocate_bytes(100) == first);
  BOOST_TEST(arena.largest() == (1 << 16) + 64);
  arena.reserve(100'000);
  BOOST_TEST(arena.reserved() == 100'000);
  BOOST_TEST(arena.largest() == 100'000);
  arena.reserve(10);
  BOOST_TEST(arena.reserved() == 100'000);
  arena.allocate_bytes(320'000);  // more than twice a block
  BOOST_TEST(arena.reserved() == 100'000 + 320'000);
}

// A tape with the capacity of another runs the same pass without further memory.
BOOST_AUTO_TEST_CASE(capacity_is_reserved_at_once) {
  const std::vector<double> values(5'000, 1.5);
  const auto run = [&](Tape<double>& tape) {
    const Var<double> x = tape.input({values.data(), Shape{5'000}});
    Var<double> y = x;
    for (int i = 0; i < 20; ++i) y = mul(y, x);
    const Tape<double>::Scratch scratch(tape, 77);
    tape.backward(y, {values.data(), Shape{5'000}});
  };
  Tape<double> first, second;
  run(first);
  const Tape<double>::Capacity capacity = first.capacity();
  BOOST_TEST(capacity.bytes >= 8 * 5'000 * 20);
  second.clear_and_reserve(capacity);
  BOOST_TEST(second.reserved() == capacity.bytes);
  run(second);
  BOOST_TEST(second.reserved() == capacity.bytes);
  const Tape<double>::Capacity after = second.capacity();
  BOOST_TEST(after.nodes == capacity.nodes);
  BOOST_TEST(after.backward_steps == capacity.backward_steps);
  BOOST_TEST(after.buffers == capacity.buffers);
}

// Operations are given start times hundreds of seconds ago; the test takes far less than 50 s, so hundreds are exact.
BOOST_AUTO_TEST_CASE(seconds_of_operations) {
  const std::string one = "one", two = "two";
  const auto rows_of_profile = [&](bool by_layer) {
    Profile profile(by_layer), other(by_layer);
    profile.add_forward("mul", &one, ago(800));
    profile.add_forward("mul", &two, ago(400));
    profile.add_backward("mul", &one, ago(200));
    profile.add_backward("add", &one, ago(100));
    // A wait belongs to the operation that ends next, and to no other.
    other.exclude_wait(ago(300));
    other.add_forward("gelu", nullptr, ago(1000));
    other.add_backward("mul", &two, ago(1600));
    profile += other;
    std::vector<std::string> lines;
    for (const Profile::Row& row : profile.rows()) {
      lines.push_back(fmt::format("{} {} {:.0f} {:.0f}", row.operation, row.layer ? *row.layer : "-", row.forward / 100,
                                  row.backward / 100));
      BOOST_TEST(row.total() == row.forward + row.backward);
    }
    return lines;
  };
  const std::vector<std::string> together{"mul - 12 18", "add - 0 1", "gelu - 7 0"},
      apart{"mul one 8 2", "mul two 4 16", "add one 0 1", "gelu - 7 0"};
  BOOST_TEST(rows_of_profile(false) == together, boost::test_tools::per_element());
  BOOST_TEST(rows_of_profile(true) == apart, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
