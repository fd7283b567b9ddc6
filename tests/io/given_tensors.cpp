// Tensors of a file, checked when they are taken.
#include "heed/io/given_tensors.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace heed;

namespace {

/// A file of tensors of three types, which open() writes and then opens.
struct GivenFile {
  TemporaryDirectory directory;
  std::string path = directory / "given.safetensors";
  std::map<std::string, Tensor<float>> floats;
  std::map<std::string, Tensor<double>> doubles;
  std::map<std::string, Tensor<std::int64_t>> integers;

  GivenTensors open() const {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : floats) writer.add(name, tensor.view());
    for (const auto& [name, tensor] : doubles) writer.add(name, tensor.view());
    for (const auto& [name, tensor] : integers) writer.add(name, tensor.view());
    writer.write(path);
    return GivenTensors(path);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(io_given_tensors, GivenFile)

// Integer tensors do not determine the number type. Files store wider types first.
BOOST_AUTO_TEST_CASE(numbers_have_one_type) {
  const auto refusal = [&] { return error_of([&] { open().in_double(); }, path); };
  integers["labels"] = Tensor<std::int64_t>(Shape{2});
  BOOST_TEST(!open().has_numbers());
  BOOST_TEST(refusal() == ": has no F32 or F64 tensor");
  doubles["q"] = Tensor<double>(Shape{1});
  BOOST_TEST(open().has_numbers());
  BOOST_TEST(open().in_double());
  floats["k"] = Tensor<float>(Shape{1});
  BOOST_TEST(refusal() == ": tensor 'k' is F32, 'q' is F64; expected one number type");
  doubles.clear();
  BOOST_TEST(!open().in_double());
  const std::string header = R"({"half":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})";
  const std::uint64_t length = header.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + "xx");
  BOOST_TEST(error_of([&] { GivenTensors(path).in_double(); }, path) == ": tensor 'half' is F16; expected F32 or F64");
}

BOOST_AUTO_TEST_CASE(tensors_are_checked_when_they_are_taken) {
  floats["q"] = Tensor<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  floats["none"] = Tensor<float>(Shape{0, 2});
  floats["bad"] = Tensor<float>(Shape{2}, {0, std::numeric_limits<float>::infinity()});
  integers["i"] = Tensor<std::int64_t>(Shape{2}, {5, -1});
  GivenTensors file = open();
  BOOST_TEST(file.take<double>("q", 2)[5] == 6);
  BOOST_TEST((file.take<float>("q", Shape{2, 3}).shape() == Shape{2, 3}));
  BOOST_TEST(file.take_if_given<float>("q", Shape{2, 3}).size() == 6);
  BOOST_TEST(file.take_if_given<float>("v", Shape{2, 3}).size() == 0);
  const Tensor<float> whole = file.take_buffer<float>("i", Shape{2}),
                      numbers = file.take_buffer<float>("q", Shape{2, 3});
  BOOST_TEST(whole[0] == 5);
  BOOST_TEST(whole[1] == -1);
  BOOST_TEST(numbers[4] == 5);
  BOOST_TEST(file.take<std::int64_t>("i", 1)[1] == -1);
  const auto refusal = [&](const auto& take) { return error_of(take, path + ": tensor "); };
  BOOST_TEST(refusal([&] { file.take<float>("q", 3); }) == "'q' has shape [2, 3]; expected 3 axes");
  BOOST_TEST(refusal([&] { file.take<float>("q", Shape{3, 2}); }) == "'q' has shape [2, 3]; expected [3, 2]");
  BOOST_TEST(refusal([&] { file.take_if_given<float>("q", Shape{6}); }) == "'q' has shape [2, 3]; expected [6]");
  BOOST_TEST(refusal([&] { file.take_buffer<float>("i", Shape{3}); }) == "'i' has shape [2]; expected [3]");
  BOOST_TEST(refusal([&] { file.take<float>("v", 2); }) == "'v' is missing");
  BOOST_TEST(refusal([&] { file.take_buffer<float>("v", Shape{2}); }) == "'v' is missing");
  BOOST_TEST(refusal([&] { file.take<float>("none", 2); }) == "'none' has shape [0, 2]; expected at least one element");
  BOOST_TEST(refusal([&] { file.take<float>("i", 1); }) == "'i' is I64; expected F32 or F64");
  BOOST_TEST(refusal([&] { file.take<float>("bad", 1); }) ==
             "'bad' has value inf at element 1 of shape [2]; expected finite numbers");
}

BOOST_AUTO_TEST_CASE(all_tensors_are_to_be_taken) {
  for (const char* name : {"a", "b", "c"}) floats[name] = Tensor<float>(Shape{1});
  integers["d"] = Tensor<std::int64_t>(Shape{4});
  GivenTensors file = open();
  BOOST_TEST((file.shapes() ==
              std::map<std::string, Shape>{{"a", Shape{1}}, {"b", Shape{1}}, {"c", Shape{1}}, {"d", Shape{4}}}));
  file.take<float>("b", 1), file.take<float>("a", 1), file.take_buffer<float>("d", Shape{4});
  BOOST_TEST(error_of([&] { file.finish(); }, path) == ": tensor 'c' is not used; expected a, b, d");
  file.take_if_given<float>("c", Shape{1});
  BOOST_CHECK_NO_THROW(file.finish());
}

BOOST_AUTO_TEST_SUITE_END()
