// Every kernel with a fast float version, within the error bound of its contract, and with the same bits on every
// processor.
#include "support/fast_kernel.h"

#include "heed/base/random.h"
#include "heed/io/file.h"

#include <filesystem>
#include <map>
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

/// Hashes of the kernels' results with AVX2, AVX-512 and NEON. They change only in a commit that says why.
const std::map<std::string, std::uint64_t> known_bits = {
    {"adamw", 0x05fe3d7e843e11eau},
    {"addmm", 0x94b2d0821e42c865u},
    {"attention_softmax", 0xf112da787d525cf4u},
    {"attention_softmax_again", 0x416c63a1e0d0c416u},
    {"attention_softmax_backward", 0xf5f50c43f86b8e4bu},
    {"attention_softmax_backward_from_sums", 0x0678a8cc73870aa8u},
    {"column_sums", 0xed4446026f0c45a8u},
    {"depthwise", 0x4ce5489e54402903u},
    {"depthwise_backward", 0xf58e548c46d173e1u},
    {"depthwise_weight_gradient", 0xc94a0a8cd2a4818bu},
    {"exp_of_columns", 0x622a44694f6d3c4au},
    {"exp_of_row", 0x5d420d91eba31970u},
    {"exp_sums_at_key", 0xe1e83281d58f7aceu},
    {"exp_sums_of", 0xe47b267c4c18c181u},
    {"favor_features", 0xf32e7ddbd0da5598u},
    {"favor_features_backward", 0xff969740163064ccu},
    {"favor_maxima", 0xec70020fb75b4076u},
    {"gate_backward", 0xdd7e294a94183f74u},
    {"gate_forward", 0x71beaa2a243de577u},
    {"gaussian_backward", 0x6912269154a985e7u},
    {"gelu_backward", 0x8cae873596895d46u},
    {"gelu_forward", 0x2b1de68e63f0fd84u},
    {"gemm", 0x82ef54e6cfb533ccu},
    {"hash_rows", 0x2f005cc06c9c742eu},
    {"layer_norm_again", 0x06701b2541ab0f6du},
    {"layer_norm_backward", 0x7fe92fcd5b71d3c7u},
    {"layer_norm_forward", 0xf0b6a262c1814551u},
    {"layer_norm_parameter_gradients", 0xce6a6c669e03604fu},
    {"negative_l1", 0xdc6c5cbf0661b79du},
    {"negative_l1_by_maxima", 0x2e2e3fcbd5d51afdu},
    {"negative_l1_gradient", 0x616b98d7e6f9780cu},
    {"neighbourhood_sums", 0xa73ef95a95ed3682u},
    {"row_dots", 0xad87305f4aa89a81u},
    {"row_dots_of_differences", 0x81ad5450443a8402u},
    {"softmax_columns", 0x7fe5b2f1649671b2u},
    {"softmax_columns_backward", 0xcbb64316bd9dca0au},
    {"softmax_rows", 0x935011ea936e4ba6u},
    {"squared_distances", 0xd9d4d869f6a0165cu},
    {"undo_newton_steps", 0x301d040fbff2506du},
    {"weighted_rows", 0x9be6d9f04bb119afu},
};

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

BOOST_AUTO_TEST_CASE(all_keep_their_contracts_with_the_same_bits) {
  std::map<std::string, std::uint64_t> bits;
  for (const FastKernel& kernel : fast_kernels()) {
    std::uint64_t& hash = bits[kernel.name.substr(0, kernel.name.find(' '))];
    hash = mix_bits(hash ^ hold_against_plain(kernel));
  }
#ifndef HEED_NO_SIMD
  for (const auto& [name, hash] : bits) {
    const auto known = known_bits.find(name);
    BOOST_TEST((known != known_bits.end() && known->second == hash),
               fmt::format("the bits are {{\"{}\", {:#018x}u}},", name, hash));
  }
#endif
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
