// Parsing and listing of mechanism options.
#include "heed/attention/options.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

enum class Fruit { apple, pear, plum };

struct Basket {
  Fruit fruit = Fruit::pear;
  bool washed = false;
  Index pieces = 1;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("fruit", fruit, {"apple", "pear", "plum"}, "what lies in it");
    visit("washed", washed, "is it clean");
    visit("pieces", pieces, "how many it is cut into");
  }
};

Basket read(const OptionValues& values) {
  Basket basket;
  OptionReader reader("basket", values);
  basket.options(reader);
  reader.finish();
  return basket;
}

void check_refused(const OptionValues& values, const std::string& message) {
  BOOST_CHECK_EXCEPTION(read(values), Error, [&](const Error& error) {
    BOOST_TEST(error.what() == message);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

BOOST_AUTO_TEST_CASE(a_named_choice_is_read_by_name) {
  BOOST_CHECK(read({}).fruit == Fruit::pear);
  BOOST_CHECK(read({{"fruit", "apple"}}).fruit == Fruit::apple);
  BOOST_CHECK(read({{"fruit", "plum"}, {"washed", "true"}}).fruit == Fruit::plum);
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_refused_with_the_nearest) {
  check_refused({{"fruit", "pera"}}, "[basket] fruit is 'pera'; did you mean 'pear'?");
  check_refused({{"fruit", "lemon"}}, "[basket] fruit is 'lemon'; expected one of apple, pear, plum");
  check_refused({{"fruits", "plum"}}, "[basket] has no option 'fruits'; did you mean 'fruit'?");
  check_refused({{"fruit", ""}}, "[basket] fruit is ''; expected one of apple, pear, plum");
}

BOOST_AUTO_TEST_CASE(whole_numbers_leave_room_for_sums) {
  BOOST_TEST(read({{"pieces", "1000000000000"}}).pieces == 1'000'000'000'000);
  BOOST_TEST(read({{"pieces", "-1000000000000"}}).pieces == -1'000'000'000'000);
  for (const std::string text :
       {"1000000000001", "-1000000000001", "9223372036854775807", "9223372036854775808", "1.5", "many", ""})
    check_refused({{"pieces", text}},
                  "[basket] pieces is '" + text + "'; expected a whole number of at most 1000000000000");
}

BOOST_AUTO_TEST_CASE(numbers_that_no_float_holds_are_refused) {
  const auto refusal = [](const char* text) {
    double share = 0.5;
    return error_of([&] { OptionReader("basket", {{"share", text}})("share", share, ""); });
  };
  for (const std::string text : {"1e-320", "-1e-46", "1e39", "-1e300"})
    BOOST_TEST(refusal(text.c_str()) ==
               "[basket] share is '" + text + "'; expected a number that float32 rounds neither to 0 nor to infinity");
  for (const char* text : {"0", "1e-45", "-3.4e38"}) BOOST_TEST(refusal(text) == "no error");
}

// An optional number: unset, parsed, listed with and without a value, and rejected like any other number.
BOOST_AUTO_TEST_CASE(an_optional_number) {
  const auto read_limit = [](const OptionValues& values) {
    std::optional<double> limit;
    OptionReader reader("basket", values);
    reader("limit", limit, "");
    reader.finish();
    return limit;
  };
  BOOST_TEST(!read_limit({}).has_value());
  BOOST_TEST(read_limit({{"limit", "0.25"}}).value() == 0.25);
  BOOST_TEST(read_limit({{"limit", "0"}}).value() == 0);
  for (const std::string text : {"", "many", "0.5kg", "not set"})
    BOOST_TEST(error_of([&] {
                 read_limit({{"limit", text}});
               }) == "[basket] limit is '" + text + "'; expected a number");
  BOOST_TEST(error_of([&] {
               read_limit({{"limit", "1e39"}});
             }).starts_with("[basket] limit is '1e39'; expected a num"));
  BOOST_TEST(error_of([&] {
               read_limit({{"limits", "1"}});
             }) == "[basket] has no option 'limits'; did you mean 'limit'?");
  std::optional<double> unset, set = 0.5;
  OptionLister lister;
  lister("unset", unset, "one meaning");
  lister("set", set, "another");
  BOOST_REQUIRE(lister.found.size() == 2u);
  BOOST_TEST(lister.found[0].fallback == "not set");
  BOOST_TEST(lister.found[1].fallback == "0.5");
}

BOOST_AUTO_TEST_CASE(causal_is_false_where_it_is_no_option) {
  BOOST_CHECK(!read({{"causal", "false"}}).washed);
  check_refused({{"causal", "true"}},
                "[basket] causal is 'true'; expected false, since the mechanism has no causal form");
}

BOOST_AUTO_TEST_CASE(a_list_of_options_shows_default_and_choices) {
  Basket basket;
  OptionLister lister;
  basket.options(lister);
  BOOST_REQUIRE(lister.found.size() == 3u);
  BOOST_TEST(lister.found[0].fallback == "pear");
  BOOST_TEST(lister.found[0].choices == (std::vector<std::string>{"apple", "pear", "plum"}),
             boost::test_tools::per_element());
  BOOST_TEST(lister.found[1].choices.empty());
}

BOOST_AUTO_TEST_SUITE_END()
