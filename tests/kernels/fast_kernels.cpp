// Every kernel with a fast float version: within the error bound of its contract, and with the same bits on every CPU.
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

/// Hashes of the kernels' results with AVX2, AVX-512 and NEON. A commit that changes them must say why.
const std::map<std::string, std::uint64_t> known_bits = {
    {"adamw", 0xca84a13fdd7f2f9bu},
    {"addmm", 0xc94b1ca94b848820u},
    {"attention_softmax", 0x467afb2467dd3fcfu},
    {"attention_softmax_part", 0xdc501f1694ff75c3u},
    {"attention_softmax_again", 0xaab8d5cef362b815u},
    {"attention_softmax_backward", 0x1d64be11473876f5u},
    {"attention_softmax_backward_from_sums", 0x663485c897e1cf6fu},
    {"column_sums", 0xe3e7a3a0864dd1a6u},
    {"depthwise", 0x67a93fc04b489e67u},
    {"depthwise_backward", 0xe5e2873f36d0673fu},
    {"depthwise_weight_gradient", 0x67c38dbd58d44902u},
    {"exp_of_columns", 0xb0424ae235f425cau},
    {"exp_of_row", 0xf8f197f5db68c02eu},
    {"exp_sums_at_key", 0x3c31d6b12d00b079u},
    {"exp_sums_of", 0x7160a062c69a6b91u},
    {"favor_features", 0x6ebb04e2ce1d991du},
    {"favor_features_backward", 0x0c66497a5c22f3c6u},
    {"favor_maxima", 0x1901f9cc9622743du},
    {"gate_backward", 0x9c700b10a06092d4u},
    {"gate_forward", 0xeb0aba2cfd2a8a0au},
    {"gaussian_backward", 0x4a6f05539cd286c7u},
    {"gelu_backward", 0xa35f7e6dc39242ddu},
    {"gelu_forward", 0x318eacbee5ef1c9au},
    {"gemm", 0x4f71f280d8824049u},
    {"hash_rows", 0x0c19174f7894acddu},
    {"layer_norm_again", 0xc6e5a9ebeef687b0u},
    {"layer_norm_backward", 0x4e659cb39326783cu},
    {"layer_norm_forward", 0x4e0828e63241f6fdu},
    {"layer_norm_parameter_gradients", 0x0225e5d6bc28bae7u},
    {"negative_l1", 0xe2f31cc81b6041c3u},
    {"negative_l1_by_maxima", 0x38c8a13c6ae4f2e0u},
    {"negative_l1_gradient", 0xaa547cc4d48f6ba8u},
    {"neighbourhood_sums", 0x123d7a8de3ad2392u},
    {"row_dots", 0xab881665f8150cc7u},
    {"row_dots_of_differences", 0xcac0ad883ca1a738u},
    {"softmax_columns", 0x7c388d7cb14609a1u},
    {"softmax_columns_backward", 0x6a28f5551344f671u},
    {"softmax_rows", 0xa797bcaa24bda7d8u},
    {"squared_distances", 0x5ffcb1eb9bc77fcbu},
    {"undo_newton_steps", 0xe527e590fe192339u},
    {"weighted_rows", 0x0287838d311bddc7u},
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
