// Every initial or discovered fuzzer input is read or rejected, within five seconds of CPU time.
#include "readers.h"

#include "heed/io/file.h"

#include <boost/test/unit_test.hpp>

#include <ctime>
#include <filesystem>

using namespace heed::test;

BOOST_AUTO_TEST_SUITE(fuzz)

BOOST_AUTO_TEST_CASE(files_of_the_corpus_are_read_or_refused) {
  for (const Reader& reader : readers()) {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::string("tests/fuzz/corpus/") + reader.name)) {
      const std::clock_t start = std::clock();
      BOOST_CHECK_NO_THROW(read_bytes(reader, heed::read_file(file.path())));
      BOOST_TEST((std::clock() - start) / CLOCKS_PER_SEC < 5, file.path());
      ++files;
    }
    BOOST_TEST(files > 0, reader.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
