// Vector widths of OpenBLAS's kernels, by the names in its driver/others/dynamic.c.
#include "heed/bench/instructions.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(bench_instructions)

BOOST_AUTO_TEST_CASE(widths_of_openblas_kernels) {
  for (const char* const core : {"SkylakeX", "Cooperlake", "SapphireRapids"})
    BOOST_TEST(bench::bits_of_blas(core) == 512, core);
  for (const char* const core : {"Haswell", "Zen"}) BOOST_TEST(bench::bits_of_blas(core) == 256, core);
  BOOST_TEST(bench::bits_of_blas("Nehalem") == 128);
}

BOOST_AUTO_TEST_SUITE_END()
