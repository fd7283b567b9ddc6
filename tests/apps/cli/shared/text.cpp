// Numbers, durations, tables and the progress line. Includes the tested source files.
#include "src/apps/cli/shared/number_text.cpp"
#include "src/apps/cli/shared/progress_line.cpp"
#include "src/apps/cli/shared/table.cpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

using namespace heed;

BOOST_AUTO_TEST_SUITE(cli_text)

// Numbers below, at and above those at which another digit or prefix begins.
BOOST_AUTO_TEST_CASE(numbers_have_their_digits_and_units) {
  for (const auto& [value, text] : {std::pair(0.0, "0"),
                                    {7.0, "7"},
                                    {999.0, "999"},
                                    {999.6, "1,000"},
                                    {54000.0, "54,000"},
                                    {123456.0, "123,456"},
                                    {-123.0, "-123"},
                                    {-1234.0, "-1,234"},
                                    {-123456.0, "-123,456"},
                                    {1234567.0, "1,234,567"},
                                    {1e9, "1,000,000,000"}})
    BOOST_TEST(cli::grouped(value) == text);
  for (const auto& [value, text] : {std::pair(0.0, "0"),
                                    {12.0, "12"},
                                    {999.0, "999"},
                                    {9.5, "9.500"},
                                    {9.9994, "9.999"},
                                    {9.9996, "10.00"},
                                    {99.994, "99.99"},
                                    {99.996, "100.0"},
                                    {999.94, "999.9"},
                                    {999.96, "1.000 k"},
                                    {1000.0, "1.000 k"},
                                    {12344.0, "12.34 k"},
                                    {123.42e6, "123.4 M"},
                                    {1254e6, "1.254 G"},
                                    {3e12, "3.000 T"},
                                    {4e15, "4.000 P"},
                                    {5e18, "5.000 E"},
                                    {6e21, "6000.0 E"}})
    BOOST_TEST(cli::si(value) == text);
  for (const auto& [pj, text] : {std::pair(5.0, "5 pJ"),
                                 {2.5, "2.500 pJ"},
                                 {1000.0, "1.000 nJ"},
                                 {108.6e6, "108.6 uJ"},
                                 {2.5e9, "2.500 mJ"},
                                 {7e12, "7.000 J"},
                                 {36e15, "36.00 kJ"},
                                 {1.5e18, "1.500 MJ"}})
    BOOST_TEST(cli::joules(pj) == text);
  for (const auto& [value, text] : {std::pair(0.0, "0.00"),
                                    {1.25, "1.25"},
                                    {9.994, "9.99"},
                                    {9.996, "10.0"},
                                    {12.5, "12.5"},
                                    {99.94, "99.9"},
                                    {99.96, "100"},
                                    {1250.0, "1250"}})
    BOOST_TEST(cli::digits(value) == text);
  BOOST_TEST(cli::percent(0.754) == "75 %");
  BOOST_TEST(cli::fixed(1, " %")(12.54) == "12.5 %");
  BOOST_TEST(cli::significant(4)(0.00123456) == "0.001235");
  BOOST_TEST(cli::significant(4)(1.2e-7) == "1.2e-07");
}

BOOST_AUTO_TEST_CASE(durations_have_minutes_and_hours) {
  for (const auto& [seconds, text] : {std::pair(0.0, "0:00"),
                                      {59.4, "0:59"},
                                      {59.6, "1:00"},
                                      {61.0, "1:01"},
                                      {3599.4, "59:59"},
                                      {3599.6, "1:00:00"},
                                      {3661.0, "1:01:01"},
                                      {7325.0, "2:02:05"},
                                      {360000.0, "100:00:00"}})
    BOOST_TEST(cli::duration(seconds) == text);
}

// A table has the same rows in all output formats. This one has columns for text only and for data only, missing
// values, and texts with separators.
BOOST_AUTO_TEST_CASE(a_table_has_the_same_rows_in_every_form) {
  cli::Table table;
  BOOST_TEST(table.empty());
  table.column("layer", "name").text("note").column("time, ms", "ms", cli::fixed(3)).data({"steps"});
  table.data({"share"}, cli::significant(3));
  table.add({"fc1", "first", 0.25, 10, 2.0 / 3});
  table.add({"a \"b\", c", Json(), 12.3456, true});
  BOOST_TEST(!table.empty());
  std::ostringstream text, markdown;
  table.print(text), table.print_markdown(markdown);
  BOOST_TEST(text.str() ==
             "layer      note  time, ms\n"
             "fc1       first     0.250\n"
             "a \"b\", c      -    12.346\n");
  BOOST_TEST(
      markdown.str() ==
      "| layer | note | time, ms |\n| --- | --- | --- |\n| fc1 | first | 0.250 |\n| a \"b\", c | - | 12.346 |\n");
  BOOST_TEST(table.csv() == "name,ms,steps,share\nfc1,0.25,10,0.667\n\"a \"\"b\"\", c\",12.3456,true,\n");
  BOOST_TEST(table.json().dump() ==
             Json::parse("[{\"name\":\"fc1\",\"ms\":0.25,\"steps\":10,\"share\":0.6666666666666666},"
                         "{\"name\":\"a \\\"b\\\", c\",\"ms\":12.3456,\"steps\":true,\"share\":null}]")
                 .dump());
  // In Markdown, a bar must be escaped, since it would end the cell, and so must a backslash before it, since it would
  // escape the bar's backslash.
  cli::Table bars;
  bars.text("a|b"), bars.add({"|p| \\|"});
  std::ostringstream escaped;
  bars.print_markdown(escaped);
  BOOST_TEST(escaped.str() == "| a\\|b |\n| --- |\n| \\|p\\| \\\\\\| |\n");
  BOOST_TEST(cli::csv_text("a\nb") == "\"a\nb\"");
  BOOST_TEST(cli::csv_text("plain text") == "plain text");
}

// Parts that do not fit are left out, the last first; the bar has 20 columns, or fewer, down to 6.
BOOST_AUTO_TEST_CASE(the_progress_line_has_what_fits) {
  TrainPlan plan;
  plan.steps_per_epoch = 80, plan.example = "sequence";
  StepReport step;
  step.epoch = 2, step.batch = 60, step.loss = 0.63124, step.accuracy = 0.782, step.images_per_s = 4321.4;
  const auto bar = [](int full, int empty) {
    std::string text;
    for (int i = 0; i < full; ++i) text += "█";
    for (int i = 0; i < empty; ++i) text += "░";
    return text;
  };
  const std::string epoch = "epoch 2/8 ", batch = " 60/80", loss = "  loss 0.6312", accuracy = "  accuracy 78.20 %",
                    left = "  1:05 left", rate = "  4321 sequences/s";
  const auto line = [&](std::size_t columns) {
    return cli::progress_line(step, plan, 8, 65, static_cast<Index>(columns));
  };
  const std::string whole = batch + loss + accuracy + left + rate;
  BOOST_TEST(line(200) == epoch + bar(15, 5) + whole);
  const std::size_t needed = epoch.size() + 6 + whole.size() + 1;  // the last column stays free
  BOOST_TEST(line(needed) == epoch + bar(4, 2) + whole);
  BOOST_TEST(line(needed + 2) == epoch + bar(6, 2) + whole);
  BOOST_TEST(line(needed - 1) == epoch + bar(15, 5) + batch + loss + accuracy + left);
  BOOST_TEST(line(epoch.size() + 7) == epoch + bar(4, 2));
  BOOST_TEST(line(epoch.size() + 6) == epoch);
  BOOST_TEST(line(5) == "epoc");
  step.images_per_s = 0.4321;
  BOOST_TEST(line(200) == epoch + bar(15, 5) + batch + loss + accuracy + left + "  0.43 sequences/s");
}

// Epochs have 80 steps; the first two had 400 each, before the data changed. The step is in the third of 8 epochs, then
// at the end of the last.
BOOST_AUTO_TEST_CASE(the_steps_left_do_not_depend_on_those_of_earlier_epochs) {
  StepReport step;
  step.epoch = 3, step.batch = 60, step.step = 860;
  BOOST_TEST(cli::steps_left(step, 80, 8, 0) == 5 * 80 + 20);
  BOOST_TEST(cli::steps_left(step, 80, 8, 900) == 40);
  BOOST_TEST(cli::steps_left(step, 80, 8, 5000) == 5 * 80 + 20);
  step.epoch = 8, step.batch = 80;
  BOOST_TEST(cli::steps_left(step, 80, 8, 0) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
