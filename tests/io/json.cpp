#include "heed/io/json.h"

#include "support/temporary.h"

#include "support/compare.h"

#include <limits>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(io_json)

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  Json json = Json::object({{"text", "a \"b\"\n"}, {"whole", 3}, {"part", 0.1}, {"yes", true}, {"nothing", Json()}});
  json["list"].push_back(1);
  json["list"].push_back("two");
  json["inner"]["z"] = 1;
  json["inner"]["a"] = 2;
  const std::string text =
      R"({"text":"a \"b\"\n","whole":3,"part":0.1,"yes":true,"nothing":null,"list":[1,"two"],"inner":{"z":1,"a":2}})";
  BOOST_TEST(Json::parse(text).dump() == text);
}

BOOST_AUTO_TEST_CASE(numbers_keep_every_digit) {
  for (const double x : {0.1, 1.0 / 3, 1e300, 5e-324, -2.0, 9007199254740993.0})
    BOOST_TEST(Json::parse(Json(x).dump()).number() == x);
  constexpr Index largest = std::numeric_limits<Index>::max();
  BOOST_TEST(Json::parse(Json(largest).dump()).integer() == largest);
  BOOST_TEST(Json::parse("18446744073709551615").number() == 18446744073709551615.0);
  BOOST_TEST(Json::parse("-9007199254740993").integer() == -9007199254740993);
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_no_result) {
  for (const double x : {NAN, INFINITY, -INFINITY}) {
    Json json;
    json["energy"].push_back(x);
    BOOST_CHECK_EXCEPTION(json.dump(), Error, [](const Error& error) {
      return std::string(error.what()).find("energy") != std::string::npos;
    });
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_replaced) { BOOST_TEST(Json("a\xff").dump() == "\"a\xEF\xBF\xBD\""); }

BOOST_AUTO_TEST_CASE(other_kinds_and_missing_keys_are_errors) {
  const Json json = Json::parse(R"({"a": [1], "b": "c"})");
  BOOST_CHECK_THROW(json.at("c"), Error);
  BOOST_CHECK_THROW(json.at("a").number(), Error);
  BOOST_CHECK_THROW(json.at("b").integer(), Error);
  BOOST_CHECK_THROW(json.at("b").at("x"), Error);
  BOOST_TEST(!json.at("b").contains("c"));
  for (const char* text : {"", "{", "[1,]", "{\"a\":1} x", "nan"}) BOOST_CHECK_THROW(Json::parse(text), Error);
  BOOST_CHECK_THROW(Json::parse(std::string(100'000, '[')), Error);
}

BOOST_AUTO_TEST_CASE(errors_name_the_kind_and_the_key) {
  const Json json = Json::parse(R"({"list": [7], "text": "c", "half": 0.5})");
  const auto expected = [](const std::string& kind) { return "JSON: expected " + kind + ", found something else"; };
  BOOST_TEST(error_of([&] { json.at("list").number(); }) == expected("a number"));
  BOOST_TEST(error_of([&] { json.at("half").integer(); }) == expected("an integer"));
  BOOST_TEST(error_of([&] { json.at("list").text(); }) == expected("a text"));
  BOOST_TEST(error_of([&] { json.at("text").items(); }) == expected("a list"));
  BOOST_TEST(error_of([&] { json.at("text").entries(); }) == expected("an object"));
  BOOST_TEST(error_of([&] { json.at("none"); }) == "JSON: an object lacks 'none'");
  Json text = json.at("text");
  BOOST_TEST(error_of([&] { text.push_back(1); }) == expected("a list"));
  BOOST_TEST(error_of([&] { text["a"] = 1; }) == expected("an object"));
  BOOST_TEST(json.at("list").items()[0].number() == 7);
  BOOST_TEST(json.contains("half"));
  BOOST_TEST(!json.contains("none"));
  const Json infinite =
      Json::object({{"outer", Json::object({{"a", 1}, {"inner", Json::list({2, Json::list({INFINITY})})}, {"b", 3}})}});
  BOOST_TEST(error_of([&] { infinite.dump(); }) == "'inner' is inf; expected a finite number");
}

BOOST_AUTO_TEST_CASE(values_are_created_and_replaced) {
  Json json;
  json["a"] = 1, json["b"] = std::optional<double>(), json["a"] = std::optional<double>(2.5);
  json["c"] = std::vector<std::string>{"x", "y"};
  BOOST_TEST(json.dump() == R"({"a":2.5,"b":null,"c":["x","y"]})");
  BOOST_TEST(Json::object({{"a", Json::list({1, true})}}).dump(1) == "{\n \"a\": [\n  1,\n  true\n ]\n}");
}

BOOST_AUTO_TEST_CASE(what_is_read_is_bounded) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      Json::parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  BOOST_TEST(error_of(R"({"a": 1, "b": {"a": 2}, "c": 3})") == "");
  BOOST_TEST(error_of(R"([{"a": 1, "b": 2, "a": 3}])") == "an object has the key 'a' twice");
  BOOST_TEST(error_of(std::string(101, '[') + std::string(101, ']')) == "values are nested more than 100 levels deep");
  BOOST_TEST(error_of(std::string(100, '[') + std::string(100, ']')) == "");
  std::string many = "[";
  for (int i = 0; i < 10'000'000; ++i) many += "1,";
  BOOST_TEST(error_of(many + "1]") == "more than 10000000 values");
  // Reading takes time linear in the number of keys: comparing each pair would take minutes.
  std::string object = "{";
  for (int i = 0; i < 300'000; ++i) object += fmt::format("\"{}\":1,", i);
  BOOST_TEST(error_of(object + "\"x\":1}") == "");
}

BOOST_AUTO_TEST_CASE(errors_in_a_file_name_it) {
  const TemporaryDirectory directory;
  const std::string file = directory / "a.json";
  const auto error_of = [&](const std::string& text) -> std::string {
    write_file(file, text);
    try {
      take_json(file, [](const Json& json) { return json.at("a").integer(); });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  BOOST_TEST(error_of("{\"a\": 1}") == "");
  for (const char* text : {"", "null", "{}", "{\"a\": \"x\"}"})
    BOOST_TEST(error_of(text).starts_with(file + ": "), error_of(text));
}

BOOST_AUTO_TEST_SUITE_END()
