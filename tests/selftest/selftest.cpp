// The self-test covers all keys, mechanisms and families and names the first difference; its hashes depend on neither
// threads nor the location of its files.
#include "heed/selftest/selftest.h"

#include "heed/attention/plugin.h"
#include "heed/base/with_threads.h"
#include "heed/nn/families.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace heed;

namespace {

/// Adds "optim.name=sgd" and similar for keys with fixed values and for booleans: all values if `possible`, otherwise
/// the values in x.
void add_values(std::set<std::string>& all, const Experiment& x, bool possible) {
  tables(x, [&](std::string_view table, const auto& config) {
    if (!uses_table(x, table)) return;
    fields(config, [&](std::string_view key, const auto& member, const Rule& rule, std::string_view) {
      if (!use_of(config, key, rule).known) return;
      const auto add = [&](const std::string& value) {
        if (value == "true" || value == "false" || !rule.choices.empty())
          all.insert(fmt::format("{}.{}={}", table, key, value));
      };
      using Member = std::decay_t<decltype(member)>;
      if (possible) {
        for (const std::string& choice : rule.choices) add(choice);
        if (std::is_same_v<Member, bool>) add("true"), add("false");
      } else if constexpr (std::is_same_v<Member, bool>) {
        add(member ? "true" : "false");
      } else if constexpr (std::is_same_v<Member, std::string>) {
        add(member);
      } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
        for (const std::string& value : member) add(value);
      }
    });
  });
}

struct Place {
  TemporaryDirectory directory;
  std::string path = directory.path().string();
  Place() { prepare_selftest(path); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(selftest, Place)

BOOST_AUTO_TEST_CASE(the_runs_use_every_value_of_every_key) {
  std::set<std::string> left_out = {"train.dtype=f64",
                                    "train.dtype=bf16",  // the hashes are for float
                                    "train.init=matching",
                                    "train.init_head=true",
                                    "train.init_positions=plain",
                                    "train.init_positions=antialias",  // only with --init
                                    "train.log_steps=true",            // rows of metrics.csv
                                    "data.orientation=false",
                                    "data.skip_bad=true",
                                    "data.header=yes",
                                    "data.header=no",   // this and the three above: for certain files only
                                    "data.grey=true"};  // for images in colour, like augment = "grey"
  // Data sets that differ from MNIST only in their files.
  for (const char* name : {"fashion-mnist", "cifar10", "cifar100"})
    left_out.insert({fmt::format("data.name={}", name), fmt::format("data.source={}", name)});
  std::set<std::string> possible, used;
  for (const SelftestRun& run : selftest_runs()) {
    const Experiment x = selftest_experiment(run, path);
    add_values(possible, x, true);
    add_values(used, x, false);
  }
  for (const std::string& value : possible) BOOST_TEST(used.contains(value) != left_out.contains(value), value);
}

BOOST_AUTO_TEST_CASE(the_runs_use_every_mechanism_and_every_family) {
  std::set<std::string> used;
  for (const SelftestRun& run : selftest_runs()) {
    const Experiment x = selftest_experiment(run, path);
    used.insert(x.attention.mechanism.begin(), x.attention.mechanism.end());
    used.insert(x.model.family);
  }
  for (const MechanismEntry& entry : mechanisms())
    BOOST_TEST((used.contains(entry.name) || plugin_of(entry.name)), entry.name);
  for (const ModelFamily& family : model_families()) BOOST_TEST(used.contains(family.name), family.name);
}

BOOST_AUTO_TEST_CASE(each_mechanism_has_a_wide_case) {
  std::string names;
  for (const NamedHash& hash : selftest_hashes("wide", path)) names += hash.name + "\n";
  for (const MechanismEntry& entry : mechanisms())
    BOOST_TEST((plugin_of(entry.name) || names.find(fmt::format("\nresult of {},", entry.name)) != std::string::npos),
               entry.name);
}

// The parts include runs with lanes in lockstep, several crops of an image, and recomputed blocks.
BOOST_AUTO_TEST_CASE(hashes_depend_on_neither_threads_nor_the_place) {
  const Place other;
  for (const char* part : {"data", "cvt", "dino", "vit"}) {
    const auto hashes = [&](int count, const std::string& place) {
      const WithThreads with(count);
      std::string text;
      for (const auto& [name, hash] : selftest_hashes(part, place)) text += fmt::format("{} {:08x}\n", name, hash);
      return text;
    };
    const std::string alone = hashes(1, path);
    BOOST_TEST(hashes(1, other.path) == alone);
    for (const int count : {2, 3}) BOOST_TEST(hashes(count, path) == alone, part << ", " << count << " threads");
  }
}

BOOST_AUTO_TEST_CASE(names_are_unambiguous) {
  for (const char* part : {"dino", "operations", "text", "vit", "wide"}) {
    std::set<std::string> names;
    for (const NamedHash& hash : selftest_hashes(part, path)) BOOST_TEST(names.insert(hash.name).second, hash.name);
  }
}

BOOST_AUTO_TEST_CASE(the_first_difference_is_named) {
  const std::vector<NamedHash> got = selftest_hashes("documents", path);
  std::vector<std::uint32_t> expected;
  for (const NamedHash& hash : got) expected.push_back(hash.hash);
  BOOST_TEST(compare_hashes(got, expected).different.empty());
  BOOST_TEST(compare_hashes(got, expected).equal == got.size());
  const auto at = [&](const std::string& name) { return std::ranges::find(got, name, &NamedHash::name) - got.begin(); };
  const std::string gradient = "step 1: gradient of blocks.0.attn/softmax";
  ++expected.at(static_cast<std::size_t>(at("end: weights")));
  ++expected.at(static_cast<std::size_t>(at(gradient)));
  const HashComparison found = compare_hashes(got, expected);
  BOOST_TEST(found.different.front() == gradient);
  BOOST_TEST(found.different.size() == 2);
  BOOST_TEST(found.equal == got.size() - 2);
  BOOST_TEST(compare_hashes({{"the list of tensors", 1}, {"result", nan_hash}}, {1, 2}).different.at(0) ==
             "result, which has a NaN");
  // A hash for which none is expected counts as different.
  const HashComparison longer = compare_hashes({{"the list of tensors", 1}, {"result", 2}, {"end", 3}}, {1, 2});
  BOOST_TEST(longer.equal == 2u);
  BOOST_TEST(longer.all == 3u);
  BOOST_TEST(longer.different == std::vector<std::string>{"end"}, boost::test_tools::per_element());
  const std::vector<NamedHash> two{{"the list of tensors", 1}, {"result", 2}};
  BOOST_TEST(compare_hashes(two, {2, 2}).different.at(0) ==
             "the list of tensors; the expected hashes belong to another version of heed");
  BOOST_TEST(compare_hashes(two, {}).different.at(0) ==
             "the list of tensors; there are no expected hashes of this part");
}

BOOST_AUTO_TEST_CASE(files_of_hashes) {
  const SelftestHashes hashes{{"data", {0x12345678, 1}}, {"vit", std::vector<std::uint32_t>(30, 7)}};
  BOOST_TEST((parse_hashes(hashes_file(hashes), "file") == hashes));
  for (const std::string text : {"12345678", "vit: 1234567", "vit: 1234567g", "vit: -1234567"})
    BOOST_TEST(error_of([&] { parse_hashes(text, "FILE"); }).starts_with("FILE: '"), text);
}

// If the bits of results change intentionally, `heed selftest --write src/selftest/expected_hashes.inc` must update the
// program's hashes.
#ifndef HEED_NO_SIMD
BOOST_AUTO_TEST_CASE(the_program_has_hashes_of_all_parts) {
  const SelftestHashes expected = expected_hashes();
  const std::vector<std::string> parts = selftest_parts();
  BOOST_TEST(expected.size() == parts.size());
  for (const std::string& part : parts) BOOST_TEST(expected.contains(part), part);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
