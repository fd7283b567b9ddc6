// Safetensors: round trips, files of other programs, and damaged files.
#include "heed/io/safetensors.h"

#include "heed/base/random.h"
#include "heed/io/checksum.h"
#include "heed/io/file.h"
#include "support/clocks.h"
#include "support/command.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <bit>

using namespace heed;

namespace {

// Returns a file with the given header and data, as from another program.
std::string file_of(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, Index begin, Index end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin, end);
}

// Opens `bytes` as a file and reads every tensor; returns the error without the path.
std::string error_in(const std::string& bytes) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x";
  write_file(path, bytes);
  return error_of(
      [&] {
        const SafetensorsFile file(path);
        for (const std::string& name : file.names()) {
          const DType dtype = file.info(name).dtype;
          if (dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16)
            file.read<double>(name);
          else
            file.read<std::int64_t>(name);
        }
      },
      path + ": ");
}

std::string error_in_header(const std::string& header, const std::string& data = "") {
  return error_in(file_of(header, data));
}

std::string sample(const std::string& path) {
  const Tensor<float> a(Shape{2, 3}, {1, -2, 3.5f, 0, 1e-45f, 1e38f});
  const Tensor<double> b(Shape{}, {0.1});
  const Tensor<std::int64_t> c(Shape{3}, {-1, 0, std::numeric_limits<std::int64_t>::max()});
  const Tensor<float> empty(Shape{0, 4});
  SafetensorsWriter writer;
  writer.add("a", a.view());
  writer.add("empty", empty.view());
  writer.add("b \"quoted\" \n", b.view());
  writer.add("c", c.view());
  writer.metadata("key", "former");
  writer.metadata("key", "text");
  writer.metadata("a", "{\"step\": 3}");
  writer.write(path);
  return read_file(path);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(io_safetensors)

BOOST_AUTO_TEST_CASE(what_is_written_comes_back) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.safetensors";
  const std::string bytes = sample(path);
  BOOST_TEST(sample(path) == bytes);

  const SafetensorsFile file(path);
  BOOST_TEST(file.names() == (std::vector<std::string>{"b \"quoted\" \n", "c", "a", "empty"}),
             boost::test_tools::per_element());
  for (const std::string& name : file.names()) {
    const TensorInfo& info = file.info(name);
    BOOST_TEST(info.offset % size_of(info.dtype) == 0u);
  }
  BOOST_TEST(file.info("b \"quoted\" \n").offset % alignment == 0u);
  BOOST_TEST(file.read<float>("a")[4] == 1e-45f);
  BOOST_TEST(file.read<double>("a")[5] == double(1e38f));
  BOOST_TEST(file.read<double>("b \"quoted\" \n")[0] == 0.1);
  BOOST_TEST(file.read<float>("b \"quoted\" \n")[0] == 0.1f);
  BOOST_TEST(file.read<std::int64_t>("c")[2] == std::numeric_limits<std::int64_t>::max());
  BOOST_TEST((file.read<float>("empty").shape() == Shape{0, 4}));
  file.check();
  std::map<std::string, std::string> metadata = file.metadata();
  BOOST_TEST(metadata.extract(checksum_key).mapped().size() == 8u);
  BOOST_TEST((metadata == std::map<std::string, std::string>{{"key", "text"}, {"a", "{\"step\": 3}"}}));
}

BOOST_AUTO_TEST_CASE(a_checksum_in_another_spelling_is_not_passed_over) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x", bytes = sample(path);
  const std::string digits = SafetensorsFile(path).metadata().at(checksum_key);
  // The header ends in spaces, which leave room for changes.
  const auto refusal = [&](const std::string& before, const std::string& after) {
    std::string changed = bytes;
    const std::size_t place = changed.find(before), pad = changed.find("} ") + 1;
    BOOST_REQUIRE((place < pad && after.size() - before.size() < 9));
    changed.erase(pad, after.size() - before.size()).replace(place, before.size(), after);
    write_file(path, changed);
    return error_of([&] { SafetensorsFile(path).check(); }, path + ": ");
  };
  const std::string unknown = " cannot be verified: the header was not written by heed";
  for (const char* after : {R"("heed.checksum" :")", R"("heed.checksum": ")", R"("heed\u002echecksum":")"})
    BOOST_TEST(refusal(R"("heed.checksum":")", after) == "its checksum '" + digits + "'" + unknown);
  BOOST_TEST(refusal(digits, digits + "0") == "its checksum '" + digits + "0'" + unknown);
  BOOST_TEST(refusal("\"" + digits + "\"", "\"\"" + std::string(8, ' ')) == "its checksum ''" + unknown);
  BOOST_TEST(
      refusal(R"("key":)", R"("key": )").starts_with("the file is damaged: its recorded checksum is '" + digits));
  write_file(path, bytes);
  SafetensorsFile(path).check();
}

// Files are read in blocks of a megabyte: the checksum covers all bytes, and a changed bit is found in each block.
BOOST_AUTO_TEST_CASE(checksums_of_large_files) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x";
  Tensor<float> x(Shape{700'000});
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251);
  SafetensorsWriter writer;
  writer.add("x", std::as_const(x).view());
  writer.metadata("key", "text");
  writer.write(path);
  SafetensorsFile(path).check();
  std::string bytes = read_file(path);
  BOOST_TEST(SafetensorsFile(path).checksum() == checksum(bytes).substr(0, 8));
  for (const std::size_t place : {std::size_t{1'000}, std::size_t{1'500'000}, bytes.size() - 1}) {
    bytes[place] ^= 1;
    write_file(path, bytes);
    BOOST_TEST(error_of([&] { SafetensorsFile(path).check(); }, path).starts_with(": the file is damaged: "));
    bytes[place] ^= 1;
  }
}

BOOST_AUTO_TEST_CASE(a_file_without_tensors) {
  const TemporaryDirectory directory;
  SafetensorsWriter().write(directory / "x");
  BOOST_TEST(SafetensorsFile(directory / "x").names().empty());
}

// Decodes binary16 by its definition, independently of the bits of a float.
BOOST_AUTO_TEST_CASE(every_half_is_read_exactly) {
  std::string data(65536 * 2, '\0');
  for (int i = 0; i < 65536; ++i) {
    data[std::size_t(2 * i)] = static_cast<char>(i & 255);
    data[std::size_t(2 * i + 1)] = static_cast<char>(i >> 8);
  }
  const TemporaryDirectory directory;
  const auto read = [&](const std::string& dtype) {
    write_file(directory / "x", file_of("{" + entry("x", dtype, "[65536]", 0, 131072) + "}", data));
    return SafetensorsFile(directory / "x").read<float>("x");
  };
  const Tensor<float> half = read("F16"), brain = read("BF16");
  for (int i = 0; i < 65536; ++i) {
    const int exponent = (i >> 10) & 31, fraction = i & 1023;
    double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31 && fraction == 0) expected = std::numeric_limits<double>::infinity();
    if (i & 0x8000) expected = -expected;
    if (exponent == 31 && fraction != 0)
      BOOST_REQUIRE(std::isnan(half[i]));
    else
      BOOST_REQUIRE(half[i] == expected && std::signbit(half[i]) == std::signbit(expected));
    BOOST_REQUIRE(std::bit_cast<std::uint32_t>(brain[i]) == std::uint32_t(i) << 16);
  }
}

BOOST_AUTO_TEST_CASE(integers_of_every_width) {
  const TemporaryDirectory directory;
  write_file(directory / "x",
             file_of("{" + entry("i16", "I16", "[1]", 0, 2) + "," + entry("u16", "U16", "[1]", 2, 4) + "," +
                         entry("i8", "I8", "[1]", 4, 5) + "," + entry("u8", "U8", "[1]", 5, 6) + "," +
                         entry("i32", "I32", "[1]", 6, 10) + "," + entry("u32", "U32", "[1]", 10, 14) + "," +
                         entry("b", "BOOL", "[1]", 14, 15) + "}",
                     "\xfe\xff\xfe\xff\xfe\xfe\xfe\xff\xff\xff\xfe\xff\xff\xff\x01"));
  const SafetensorsFile file(directory / "x");
  const auto value = [&](const char* name) { return file.read<std::int64_t>(name)[0]; };
  BOOST_TEST(value("i16") == -2);
  BOOST_TEST(value("u16") == 65534);
  BOOST_TEST(value("i8") == -2);
  BOOST_TEST(value("u8") == 254);
  BOOST_TEST(value("i32") == -2);
  BOOST_TEST(value("u32") == 4294967294);
  BOOST_TEST(value("b") == 1);
}

BOOST_AUTO_TEST_CASE(damaged_files_are_refused) {
  const std::string eight(8, '\0');
  BOOST_TEST(error_in("") == "the file has 0 bytes; a safetensors file has at least 8");
  BOOST_TEST(
      error_in(std::string(8, '\xff')) ==
      "the header claims 18446744073709551615 bytes; at most 100000000 are allowed, so this is not a safetensors file");
  BOOST_TEST(error_in(file_of("{}").substr(0, 9)) ==
             "the header claims 2 bytes, but only 1 follow; the file is truncated");
  BOOST_TEST(error_in_header("") == "the header does not begin with '{'; this is not a safetensors file");
  BOOST_TEST(error_in_header("{} x") == "the header is not valid JSON at byte 4");
  BOOST_TEST(error_in_header("{\"a\":1e999}") == "the header has a number out of range");
  BOOST_TEST(error_in_header("{\"a\":[[[[1]]]]}") == "the header has values nested deeper than a tensor's shape");
  BOOST_TEST(error_in_header("{\"a\":3}") == "tensor 'a': expected an object, found number");
  BOOST_TEST(error_in_header("{\"__metadata__\":{\"a\":3}}") == "__metadata__ 'a' must be a string, found number");
  BOOST_TEST(error_in_header("{\"__metadata__\":3}") == "__metadata__ must be an object, found number");
  BOOST_TEST(error_in_header(R"({"a":{"dtype":3,"shape":[8],"data_offsets":[0,8]}})", eight) ==
             "tensor 'a': dtype must be a string, found number");
  BOOST_TEST(error_in_header("{" + entry("a", "U8", "[8]", 0, 8) + "," + entry("a", "U8", "[8]", 0, 8) + "}", eight) ==
             "the header has the key 'a' twice");
  BOOST_TEST(error_in_header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})", eight) ==
             "the header has the key 'dtype' twice");
  BOOST_TEST(error_in_header(R"({"a":{"dtype":"U8","shape":[8]}})", eight) == "tensor 'a': 'data_offsets' is missing");
  BOOST_TEST(error_in_header(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1}})", eight) ==
             "tensor 'a': unknown key 'x'");
  BOOST_TEST(error_in_header("{\"a\\n\":3}") == "tensor 'a\\x0a': expected an object, found number");
}

// In memory, a list of axes or a member of metadata takes ten times its size in the file.
BOOST_AUTO_TEST_CASE(long_members_of_the_header_are_refused) {
  std::string axes = "1", texts = "\"x\":\"\"";
  for (int i = 0; i < 10'000; ++i) {
    axes += ",1";
    texts += fmt::format(",\"{}\":\"\"", i);
  }
  BOOST_TEST(error_in_header("{" + entry("a", "U8", "[" + axes + "]", 0, 1) + "}", "x") ==
             "the header's member 'a' has a list of more than 10000 items");
  BOOST_TEST(error_in_header("{\"__metadata__\":{" + texts + "}}") ==
             "the header's member '__metadata__' has more than 10000 keys");
}

// Takes a second; a linear search for each name would take minutes.
BOOST_AUTO_TEST_CASE(many_tensors_are_read_in_linear_time, *boost::unit_test::precondition(test::without_sanitizer)) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i) header += (i > 0 ? "," : "") + entry(std::to_string(i), "U8", "[0]", 0, 0);
  BOOST_TEST(test::cpu_seconds([&] { BOOST_TEST(error_in_header(header + "}") == "no error"); }) < 20);
}

BOOST_AUTO_TEST_CASE(more_tensors_than_any_model_has_are_refused) {
  std::string header = "{" + entry("0", "U8", "[0]", 0, 0);
  for (int i = 1; i <= 250'000; ++i) header += "," + entry(std::to_string(i), "U8", "[0]", 0, 0);
  BOOST_TEST(error_in_header(header + "}") == "the header has more than 250000 tensors");
}

BOOST_AUTO_TEST_CASE(many_tensors_are_written_in_linear_time) {
  const TemporaryDirectory directory;
  const Tensor<float> tensor(Shape{1});
  SafetensorsWriter writer;
  for (int i = 0; i < 200'000; ++i) writer.add(std::to_string(i), tensor.view());
  writer.write(directory / "many");
  BOOST_TEST(SafetensorsFile(directory / "many").names().size() == 200'000u);
}

BOOST_AUTO_TEST_CASE(impossible_tensors_are_refused) {
  const std::string eight(8, '\0');
  const auto error = [&](const char* dtype, const char* shape, Index begin, Index end) {
    return error_in_header("{" + entry("a", dtype, shape, begin, end) + "}", eight);
  };
  BOOST_TEST(error("F32", "[2]", 0, 8) == "no error");
  BOOST_TEST(error("F32", "[3]", 0, 8) == "tensor 'a': data_offsets [0, 8] span 8 bytes; F32 [3] takes 12");
  BOOST_TEST(error("F32", "[3]", 0, 12) == "tensor 'a': data_offsets [0, 12] exceed the 8 bytes of data in the file");
  BOOST_TEST(error("F32", "[2]", 8, 0) == "tensor 'a': data_offsets [8, 0] exceed the 8 bytes of data in the file");
  BOOST_TEST(error("F32", "[1]", 4, 8) ==
             "tensor 'a': begins at byte 4 of the data; expected 0, the end of the preceding tensor");
  BOOST_TEST(error("F32", "[1]", 0, 4) == "the tensors end at byte 4 of the data; the file has 4 more bytes");
  BOOST_TEST(error("F32", "[-1]", 0, 8) == "tensor 'a': size '-1' of axis 0 is not a non-negative integer");
  BOOST_TEST(error("F32", "[2.0]", 0, 8) == "tensor 'a': size '2.0' of axis 0 is not a non-negative integer");
  BOOST_TEST(error("F32", "[4294967296,0,4294967296]", 0, 0) ==
             "tensor 'a': shape [4294967296,0,4294967296] has more elements than any file can hold");
  BOOST_TEST(error("F32", "[1,1,1,1,1,1,2]", 0, 8) == "tensor 'a': shape has 7 axes; at most 6 are supported");
  BOOST_TEST(error("F32", "2", 0, 8) == "tensor 'a': shape must be a list, found number");
  BOOST_TEST(error("F32", "[2]", -8, 0) == "tensor 'a': data_offsets must be two non-negative integers");
  BOOST_TEST(error("U64", "[1]", 0, 8).starts_with("tensor 'a': dtype 'U64' is not supported; expected F32, "));
  BOOST_TEST(error_in_header("{" + entry("a", "U8", "[8]", 0, 8) + "," + entry("b", "U8", "[4]", 4, 8) + "}", eight) ==
             "tensor 'b': begins at byte 4 of the data; expected 8, the end of the preceding tensor");
}

BOOST_AUTO_TEST_CASE(reading_what_is_not_there) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x";
  sample(path);
  const SafetensorsFile file(path);
  Tensor<float> out(Shape{3, 2});
  BOOST_TEST(error_of([&] { file.info("d"); }, path) == ": has no tensor 'd'");
  BOOST_TEST(error_of([&] { file.read<float>("c"); }, path) ==
             ": tensor 'c': dtype is I64; expected F16, BF16, F32 or F64");
  BOOST_TEST(error_of([&] { file.read<std::int64_t>("a"); }, path) ==
             ": tensor 'a': dtype is F32; expected an integer type");
  BOOST_TEST(error_of([&] { file.read("a", out.view()); }, path) == ": tensor 'a': shape is [2, 3]; expected [3, 2]");
}

BOOST_AUTO_TEST_CASE(writing_what_cannot_be_written) {
  const TemporaryDirectory directory;
  const Tensor<float> a(Shape{1});
  SafetensorsWriter writer;
  writer.add("a", a.view());
  BOOST_TEST(error_of([&] { writer.add("a", a.view()); }) == "[safetensors] tensor 'a' is added twice");
  BOOST_TEST(error_of([&] { writer.add("__metadata__", a.view()); }) ==
             "[safetensors] '__metadata__' cannot name a tensor");
  writer.metadata("x", "\xff");
  BOOST_TEST(error_of([&] { writer.write(directory / "x"); }, directory / "x") ==
             ": cannot write: a tensor's name or a metadata text is not valid UTF-8");
  BOOST_TEST(!std::filesystem::exists(directory / "x"));
}

BOOST_AUTO_TEST_CASE(non_finite_numbers_are_named) {
  const Tensor<float> x(Shape{2, 2}, {0, 1, std::numeric_limits<float>::infinity(), 0});
  BOOST_TEST(error_of([&] { require_finite("f", "x", x.view()); }) ==
             "f: tensor 'x' has value inf at element 2 of shape [2, 2]; expected finite numbers");
}

// Truncation at any length is an Error. With one to four random bits of the header flipped, reading throws Error or
// succeeds.
BOOST_AUTO_TEST_CASE(random_damage_is_harmless) {
  const TemporaryDirectory directory;
  const std::string good = sample(directory / "good");
  for (std::size_t length = 0; length < good.size(); ++length)
    BOOST_REQUIRE(error_in(good.substr(0, length)) != "no error");

  const std::size_t header = 8 + good.find("  ");
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const RandomStream random = RandomStream(1).derive(std::uint64_t(round));
    std::string bad = good;
    for (Index i = 0; i <= random.below(0, 4); ++i)
      bad[std::size_t(random.below(3 * i + 1, Index(header)))] ^= static_cast<char>(1 << random.below(3 * i + 2, 8));
    const std::string error = error_in(bad);
    refused += error != "no error";
    BOOST_REQUIRE(error.find('\n') == std::string::npos);
  }
  BOOST_TEST(refused > 1000);
}

// The JSON parser would treat a NUL as the end and ignore the rest.
BOOST_AUTO_TEST_CASE(a_nul_in_the_header_is_refused) {
  BOOST_TEST(error_in_header(std::string("{}\0{\"x\":1}", 10)) ==
             "the header has a NUL at byte 2; expected JSON and spaces");
}

BOOST_AUTO_TEST_CASE(other_formats_of_weights_are_called_by_their_names) {
  BOOST_TEST(
      error_in(std::string("PK\3\4\0\0\0\0\0\0", 10)).starts_with("is a zip archive, as written by torch.save, not a"));
  BOOST_TEST(
      error_in(std::string("\x80\2\x8a\nl\xfc\x9c\x46", 8)).starts_with("is a pickle, as written by old versions of"));
  BOOST_TEST(error_in(std::string("\x89HDF\r\n\x1a\n", 8)).starts_with("is an HDF5 file"));
  const std::string other = ", not a safetensors file; ";
  BOOST_TEST(error_in(std::string("GGUF\3\0\0\0", 8)) ==
             "is a GGUF file" + other + "in Python, save a dictionary of tensors with safetensors.torch.save_file");
  const auto is = [&](const std::string& start, const char* what) {
    BOOST_TEST(error_in(start + "0123456789").starts_with(what), start);
  };
  is("PK\3\4____x.npy", "is a NumPy archive");
  is("\x93NUMPY", "is a NumPy array");
  is("\x1f\x8b\x08", "is a gzip file");
  is("{\"metadata\": 1}", "is a JSON file");
  is("version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer");
  is("<!DOCTYPE html>", "is a web page");
  // A header of 0x380 bytes has the first bytes of a pickle.
  BOOST_TEST(error_in("\x80\3" + std::string(6, '\0') + "{" + std::string(895, ' ')).find("pickle") ==
             std::string::npos);
  // A pickle begins with 0x80 and its protocol, 2 to 5.
  for (const char protocol : {'\1', '\2', '\5', '\6'})
    BOOST_TEST(error_in("\x80" + std::string(1, protocol) + std::string(6, '\0')) ==
               (protocol == '\2' || protocol == '\5'
                    ? "is a pickle, as written by old versions of torch.save" + other +
                          "convert it with experiments/scripts/pth-to-safetensors IN OUT"
                    : fmt::format("the header claims {} bytes, but only 0 follow; the file is truncated",
                                  128 + 256 * protocol)));
}

BOOST_AUTO_TEST_SUITE_END()
