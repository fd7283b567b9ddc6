// The program where there is little memory: it works or says in one line that it cannot, and does not wait.
#include "support/command.h"

using namespace heed::test;

namespace {

/// A verb with so many kilobytes of addresses.
CommandResult limited(int kilobytes, const std::string& arguments) {
  return run_command("ulimit -v " + std::to_string(kilobytes) + " && timeout 10 " + heed_program() + " " + arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_memory)

// OpenBLAS would take 128 MB for each thread, and without them ask for ever.
BOOST_AUTO_TEST_CASE(what_needs_no_blas_works_without_memory_for_it) {
  for (const int kilobytes : {70'000, 100'000, 150'000}) {
    BOOST_TEST(limited(kilobytes, "list").status == 0);
    BOOST_TEST(limited(kilobytes, "cost models/vit-micro.toml").status == 0);
  }
}

BOOST_AUTO_TEST_CASE(what_needs_blas_says_that_memory_is_lacking) {
  for (const int kilobytes : {70'000, 100'000, 150'000, 200'000}) {
    const CommandResult result = limited(kilobytes, "gradcheck softmax");
    if (result.status == 0) continue;  // built without BLAS
    BOOST_TEST(result.status == 2);
    BOOST_TEST(is_line_with(result.errors, "heed: not enough memory"), result.errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()
