// Every kernel with a fast float version, within the error bound of its contract.
#include "support/fast_kernel.h"

#include "heed/io/file.h"

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

std::vector<FastKernel> fast_kernels() {
  std::vector<FastKernel> all;
  for (const auto& part :
       {fast_kernels_of_rows(), fast_kernels_of_features(), fast_kernels_of_pairs(), fast_kernels_of_windows()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Returns the functions that a header declares for builds with SIMD.
std::set<std::string> declared_fast(const std::string& header) {
  std::set<std::string> names;
  std::istringstream text(read_file(header));
  static const std::regex function("^\\w+ (\\w+)\\(.*");
  bool fast = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "#ifndef HEED_NO_SIMD") fast = true;
    if (line.starts_with("#endif")) fast = false;
    if (std::smatch match; fast && std::regex_match(line, match, function)) names.insert(match[1]);
  }
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fast_kernel)

BOOST_AUTO_TEST_CASE(all_keep_their_contracts) {
  for (const FastKernel& kernel : fast_kernels()) hold_against_plain(kernel);
}

BOOST_AUTO_TEST_CASE(none_is_left_out) {
  std::set<std::string> declared, held;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("include/heed/kernels"))
    if (entry.is_regular_file()) declared.merge(declared_fast(entry.path().string()));
  for (const FastKernel& kernel : fast_kernels()) held.insert(kernel.name.substr(0, kernel.name.find(' ')));
  BOOST_TEST(declared.size() > 20u);
  BOOST_TEST(declared == held, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
