// Sequence data sets: generated data match their definition, and loaded data match the files.
#include "heed/data/sequences/sequences.h"

#include "heed/base/warnings.h"
#include "heed/data/sequences/listops.h"
#include "heed/data/sequences/pairs.h"
#include "heed/data/sequences/pixels.h"
#include "heed/data/sequences/text.h"
#include "heed/io/file.h"
#include "support/command.h"
#include "support/statistics.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Parses an expression by its grammar, and evaluates it.
class Evaluator {
 public:
  explicit Evaluator(const std::string& text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words_.push_back(word);
  }
  Index length() const { return static_cast<Index>(words_.size()); }
  Index most_arguments() const { return most_arguments_; }
  Index depth() const { return depth_; }
  bool done() const { return at_ == words_.size(); }

  int node(Index level = 1) {
    BOOST_REQUIRE(at_ < words_.size());
    depth_ = std::max(depth_, level);
    const std::string word = words_[at_++];
    if (word.size() == 1 && std::isdigit(static_cast<unsigned char>(word[0]))) return word[0] - '0';
    std::vector<int> values;
    while (at_ < words_.size() && words_[at_] != "]") values.push_back(node(level + 1));
    BOOST_REQUIRE(at_ < words_.size());
    ++at_;
    BOOST_TEST(values.size() >= 2u);
    most_arguments_ = std::max(most_arguments_, static_cast<Index>(values.size()));
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    int sum = 0;
    for (const int value : values) sum += value;
    if (word == "[MIN") return values.front();
    if (word == "[MAX") return values.back();
    if (word == "[SM") return sum % 10;
    BOOST_REQUIRE(word == "[MED");
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
  }

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  Index most_arguments_ = 0, depth_ = 0;
};

DataConfig data_of(const std::string& name, const std::string& path) {
  DataConfig data;
  data.name = name, data.path = path, data.augment = {}, data.validation = 0;
  return data;
}

std::string refusal_of(const DataConfig& data, Part part = Part::train) {
  try {
    open_sequences(data, 100, part, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<int> read(const SequenceExamples& examples, Index i, Index which = 0) {
  std::vector<int> tokens;
  examples.set->read(examples.examples[static_cast<std::size_t>(i)], which, nullptr, tokens);
  return tokens;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_sequences)

BOOST_AUTO_TEST_CASE(made_expressions_follow_the_grammar) {
  const TemporaryDirectory directory;
  ListOpsSetting setting;
  setting.train = 3000, setting.valid = 200, setting.test = 300, setting.depth = 4, setting.args = 4;
  setting.min = 5, setting.max = 33;
  write_listops(setting, directory / "a");
  std::set<std::string> seen;
  Index deepest = 0, most = 0, shortest = 1000, longest = 0;
  std::vector<int> answers(10), operators(4);
  for (const auto& [file, count] : {std::pair("train", 3000), {"val", 200}, {"test", 300}}) {
    const std::vector<std::string> lines = lines_of((directory / "a/basic_").string() + file + ".tsv");
    BOOST_TEST(lines.size() == static_cast<std::size_t>(count + 1));
    BOOST_TEST(lines[0] == "Source\tTarget");
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::size_t tab = lines[i].find('\t');
      const std::string expression = lines[i].substr(0, tab);
      BOOST_TEST(seen.insert(expression).second, "twice: " << expression);
      Evaluator evaluator(expression);
      const int answer = evaluator.node();
      BOOST_TEST(evaluator.done());
      BOOST_TEST(std::to_string(answer) == lines[i].substr(tab + 1), lines[i]);
      ++answers[static_cast<std::size_t>(answer)];
      deepest = std::max(deepest, evaluator.depth()), most = std::max(most, evaluator.most_arguments());
      shortest = std::min(shortest, evaluator.length()), longest = std::max(longest, evaluator.length());
    }
  }
  BOOST_TEST(deepest == 4);
  BOOST_TEST(most == 4);
  BOOST_TEST(shortest == 6);
  BOOST_TEST(longest == 32);
  for (const int count : answers) BOOST_TEST(count > 100);

  write_listops(setting, directory / "b");
  BOOST_TEST(read_file(directory / "a/basic_train.tsv") == read_file(directory / "b/basic_train.tsv"));
  const SequenceExamples train = open_sequences(data_of("listops", directory / "a"), 100, Part::train, 1);
  BOOST_TEST(train.examples.size() == 3000u);
  BOOST_TEST(train.set->vocabulary() == 15);
  BOOST_TEST(read(train, 0).size() > 5u);
}

BOOST_AUTO_TEST_CASE(expressions_that_do_not_exist_are_not_waited_for) {
  const TemporaryDirectory directory;
  ListOpsSetting setting;
  setting.train = 100'000, setting.depth = 2, setting.args = 2, setting.min = 1, setting.max = 5;
  BOOST_CHECK_THROW(write_listops(setting, directory / "a"), Error);  // only 4 x 10 x 10 expressions exist
  BOOST_TEST(!std::filesystem::exists(directory / "a"));
}

// Thousands of drawn expressions are stored at a time, so those that are too long must hold no memory.
BOOST_AUTO_TEST_CASE(expressions_that_became_too_long_keep_no_memory) {
  ListOpsSetting setting;
  setting.depth = 1000, setting.args = 1000, setting.min = 1, setting.max = 10'000;
  Index too_long = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const ListOps drawn = draw_listops(setting, RandomStream(i));
    if (!drawn.tokens.empty()) continue;
    ++too_long;
    BOOST_TEST(drawn.tokens.capacity() == 0u);
  }
  BOOST_TEST(too_long > 0);
}

BOOST_AUTO_TEST_CASE(files_of_the_long_range_arena_are_read) {
  const TemporaryDirectory directory;
  const std::string train = directory / "basic_train.tsv";
  write_file(train, "Source\tTarget\r\n( ( ( [MAX 4 ) 7 ) ] )\t7\r\n[SM 1 2 [MED 3 5 ] ]\t7\r\n");
  const SequenceExamples examples = open_sequences(data_of("listops", directory.path()), 5, Part::train, 1);
  BOOST_TEST(read(examples, 0) == (std::vector<int>{11, 4, 7, 14}), boost::test_tools::per_element());
  BOOST_TEST(read(examples, 1) == (std::vector<int>{13, 1, 2, 12, 3}), boost::test_tools::per_element());  // truncated
  BOOST_TEST(examples.set->label(0) == 7);

  const auto check = [&](const std::string& content, const std::string& message) {
    write_file(train, content);
    BOOST_TEST(refusal_of(data_of("listops", directory.path())) == train + message);
  };
  check("", ": is empty");
  check("Source\tTarget\n", ": has no expressions");
  check("Source\tTarget\n7\t7\n( )\t5\n", ":3: the expression is empty");
  check("Source\tTarget\n[MAX 1 [TOP 2 ] ]\t2\n",
        ":2: '[TOP' is not a digit or operator; expected 0 to 9, [MIN, [MAX, [MED, [SM or ]");
  check("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1 2 ]\n",
        ":3: has 1 field separated by tabs; expected 2: Source<TAB>Target");
  check("Source\tTarget\n[MAX 1 2 ]\t12\n", ":2: the answer is '12'; expected 0 to 9");
  for (const char* none :
       {"[MAX 1 2", "] ] ]", "[MAX 1 2 ] ]", "[MAX 1 2 ] 3", "1 2", "[MAX ]", "[MAX [MIN ] 2 ]", "]"})
    check(fmt::format("Source\tTarget\n7\t7\n{}\t2\n", none),
          ":3: not an expression; expected a digit, or an operator with arguments and ]");
}

BOOST_AUTO_TEST_CASE(pairs_are_made_and_read) {
  const TemporaryDirectory directory;
  write_pairs({400, 20, 30, 5}, directory.path());
  const SequenceExamples train = open_sequences(data_of("pairs", directory.path()), 128, Part::train, 1);
  BOOST_TEST(train.examples.size() == 400u);
  // Overlap of the letter frequencies of two texts: larger for the same topic.
  double common[2] = {0, 0}, count[2] = {0, 0};
  for (Index i = 0; i < 400; ++i) {
    const std::vector<int> a = read(train, i, 0), b = read(train, i, 1);
    BOOST_TEST((a.size() >= 64u && a.size() <= 128u));
    double sum = 0;
    for (int letter = 'a'; letter < 'a' + 16; ++letter)
      sum += std::min(static_cast<double>(std::count(a.begin(), a.end(), letter)) / static_cast<double>(a.size()),
                      static_cast<double>(std::count(b.begin(), b.end(), letter)) / static_cast<double>(b.size()));
    common[train.set->label(i)] += sum, ++count[train.set->label(i)];
  }
  BOOST_TEST(count[0] > 150);
  BOOST_TEST(count[1] > 150);
  BOOST_TEST(common[1] / count[1] > 0.75);
  BOOST_TEST(common[0] / count[0] < 0.6);
  // Texts of a topic are independent: two lengths from 64 to 128 are equal with probability 1/65, and letters agree at
  // equal positions no more often than at neighbouring ones.
  double same_length = 0, same_place = 0, next_place = 0, letters = 0;
  for (Index i = 0; i < 400; ++i) {
    const std::vector<int> a = read(train, i, 0), b = read(train, i, 1);
    same_length += a.size() == b.size();
    for (std::size_t t = 0; t + 1 < std::min(a.size(), b.size()); ++t, ++letters)
      same_place += a[t] == b[t], next_place += a[t] == b[t + 1];
  }
  check_z(z_of_successes(same_length, 400, 1.0 / 65), "lengths");
  const double share = (same_place + next_place) / (2 * letters);
  check_z((same_place - next_place) / std::sqrt(2 * letters * share * (1 - share)), "letters");

  write_file(directory / "new_aan_pairs.eval.tsv", "1.0\ta\tb\tone\ttwo\n0.5\ta\tb\tone\ttwo\n");
  BOOST_TEST(refusal_of(data_of("pairs", directory.path()), Part::validation) ==
             (directory / "new_aan_pairs.eval.tsv").string() + ":2: the label is '0.5'; expected 0.0 or 1.0");
  write_file(directory / "new_aan_pairs.eval.tsv", "1.0\ta\tb\tone\n");
  BOOST_TEST(refusal_of(data_of("pairs", directory.path()), Part::validation) ==
             (directory / "new_aan_pairs.eval.tsv").string() +
                 ":1: has 4 fields separated by tabs; expected 5: label, id, id, text, text");
}

// The two texts of a pair are cut separately, and each cut text is counted.
BOOST_AUTO_TEST_CASE(texts_of_pairs_are_cut_one_by_one) {
  const TemporaryDirectory directory;
  write_file(directory / "new_aan_pairs.train.tsv",
             "1.0\t0\t1\tabcd\tefghi\n0.0\t2\t3\tjklmno\tp\n0.0\t4\t5\tqrstu\tvwxyz!\n");
  const SequenceExamples pairs = open_sequences(data_of("pairs", directory.path()), 4, Part::train, 1);
  BOOST_TEST(pairs.set->size() == 3);
  BOOST_TEST(pairs.set->cut() == 4);
  const char* const texts[3][2] = {{"abcd", "efgh"}, {"jklm", "p"}, {"qrst", "vwxy"}};
  for (Index i = 0; i < 3; ++i) {
    BOOST_TEST(pairs.set->label(i) == (i == 0));
    for (Index which = 0; which < 2; ++which) {
      const std::vector<int> tokens = read(pairs, i, which);
      BOOST_TEST(std::string(tokens.begin(), tokens.end()) == texts[i][which]);
    }
  }
}

BOOST_AUTO_TEST_CASE(documents_in_folders_and_in_lines) {
  const TemporaryDirectory directory;
  for (const char* name : {"train/neg", "train/pos", "train/unsup", "test/neg", "test/pos"})
    std::filesystem::create_directories(directory / name);
  for (const char* name : {"train/neg/1.txt", "train/pos/0.txt", "train/pos/2.txt", "test/neg/0.txt", "test/pos/0.txt"})
    write_file(directory / name, std::string(name) + " is a text");
  DataConfig data = data_of("documents", directory.path());
  const SequenceExamples train = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(train.set->class_names() == (std::vector<std::string>{"neg", "pos"}), boost::test_tools::per_element());
  BOOST_TEST(train.examples.size() == 3u);
  BOOST_TEST(read(train, 0) == (std::vector<int>{'t', 'r', 'a', 'i', 'n', '/', 'n'}), boost::test_tools::per_element());
  data.validation = 1;
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).examples.size() == 2u);
  BOOST_TEST(open_sequences(data, 7, Part::validation, 1).examples.size() == 1u);
  BOOST_TEST(open_sequences(data, 7, Part::test, 1).examples.size() == 2u);
  std::filesystem::rename(directory / "test/neg/0.txt", directory / "test/neg/0.md");
  BOOST_TEST(refusal_of(data, Part::test) == (directory / "test/neg").string() + ": this class has no texts (.txt)");

  for (const char* name : {"train", "test"}) std::filesystem::remove_all(directory / name);
  write_file(directory / "train.tsv", "good\tyes\nbad\tno\n");
  write_file(directory / "val.tsv", "good\tmaybe\n");
  write_file(directory / "test.tsv", "fair\tmaybe\n");
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).examples.size() == 2u);
  const SequenceExamples validation = open_sequences(data, 7, Part::validation, 1);
  BOOST_TEST(validation.set->label(0) == 1);  // the classes are bad, good
  std::filesystem::rename(directory / "val.tsv", directory / "dev.tsv");
  BOOST_TEST(open_sequences(data, 7, Part::validation, 1).examples.size() == 1u);
  BOOST_TEST(refusal_of(data, Part::test) == (directory / "test.tsv").string() +
                                                 ":1: label 'fair' does not occur in train.tsv; if the line is a "
                                                 "header, set data.header=yes; data.skip_bad=true leaves it out");
  write_file(directory / "train.tsv", "good\tyes\ngood\tyes\nbad\tno\nbad\n");
  write_file(directory / "dev.tsv", "good\tmaybe\nfair\tno\n");
  for (const Part part : {Part::train, Part::validation, Part::test}) {
    const std::string said = refusal_of(data, part);
    BOOST_TEST(said.starts_with("3 lines cannot be read: "), said);
  }
}

// A text file that is not read causes a warning, or an error if it may belong to a part.
BOOST_AUTO_TEST_CASE(texts_of_two_layouts_are_refused) {
  const TemporaryDirectory directory;
  const std::string where = directory.path();
  const DataConfig data = data_of("documents", where);
  for (const char* name : {"train/a/1.txt", "train/b/1.TXT", "test/a/1.txt", "test/b/1.txt"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, "text");
  }
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).examples.size() == 2u);
  for (const char* name : {"dev.tsv", "test.tsv", "train.tsv"}) {
    write_file(directory / name, "a\tx\nb\ty\na\tx\nb\ty\n");
    for (const Part part : {Part::train, Part::validation, Part::test})
      BOOST_TEST(refusal_of(data, part) == where + ": contains '" + name +
                                               "' and 'test', 'train'; expected either .tsv files or directories of "
                                               "texts");
  }
  std::filesystem::remove_all(directory / "test");
  std::filesystem::rename(directory / "train", directory / "more");
  write_file(directory / "more/.hidden", "x");
  write_file(directory / "README", "x");
  take_warnings();
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).examples.size() == 4u);
  BOOST_TEST(
      take_warnings() == (std::vector<std::string>{where + ": 4 files are not read: 4 not a part of the data (README, "
                                                           "more/.hidden, more/a/1.txt, more/b/1.TXT)"}),
      boost::test_tools::per_element());
  write_file(directory / "val.tsv", "a\tx\n");
  BOOST_TEST(refusal_of(data) == where + ": 'val.tsv', 'dev.tsv' name the same split; expected one of them");
  std::filesystem::remove(directory / "dev.tsv");
  std::filesystem::remove(directory / "train.tsv");
  BOOST_TEST(refusal_of(data) ==
             where + ": contains 'test.tsv' but no train.tsv; expected both, or directories of texts alone");
}

BOOST_AUTO_TEST_CASE(lines_that_cr_ends_are_refused) {
  const TemporaryDirectory directory;
  const std::string train = directory / "train.tsv";
  const DataConfig data = data_of("documents", directory.path());
  write_file(train, "a\tx\rb\ty\ra\tz\r");
  BOOST_TEST(refusal_of(data) == train + ": CR ends the lines; expected LF or CRLF; convert it with `tr '\\r' '\\n'`");
  for (const char* text : {"a\tx", "a\tx\r", "a\tx\r\n", "a\tx\ry\n"}) {
    write_file(train, text);
    BOOST_TEST(open_sequences(data, 7, Part::train, 1).examples.size() == 1u);
  }
}

// Documents are found by the reader of images: hidden files are ignored, and a validation directory is accepted.
BOOST_AUTO_TEST_CASE(documents_in_folders_are_found_as_images_are) {
  const TemporaryDirectory directory;
  for (const char* part : {"train", "valid", "test"})
    for (const char* label : {"neg", "pos"})
      for (const char* name : {"0.txt", "._0.txt", "more/1.txt", "notes.md"}) {
        const std::filesystem::path file = directory / part / label / name;
        std::filesystem::create_directories(file.parent_path());
        write_file(file, std::string(part));
      }
  take_warnings();
  DataConfig data = data_of("documents", directory.path());
  for (const Part part : {Part::train, Part::validation, Part::test})
    BOOST_TEST(open_sequences(data, 7, part, 1).examples.size() == 4u);
  BOOST_TEST(read(open_sequences(data, 7, Part::validation, 1), 0).front() == 'v');
  BOOST_TEST(open_sequences(data, 7, Part::validation, 1).set->has_file_per_example());
  const std::vector<std::string> lines = take_warnings();
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(
      lines[0].find("train: 4 files are not read: 2 .md (neg/notes.md, pos/notes.md), 2 hidden (neg/._0.txt, ") !=
          std::string::npos,
      lines[0]);
}

// The classes are those that occur in both training and test data. Validation may lack one of them, and its texts of
// other classes are left out.
BOOST_AUTO_TEST_CASE(validation_texts_may_lack_classes) {
  const TemporaryDirectory directory;
  const std::string where = directory.path();
  for (const char* name : {"train/a/1.txt", "train/a/2.txt", "train/b/1.txt", "train/b/2.txt", "val/b/1.txt",
                           "val/c/1.txt", "test/a/1.txt", "test/b/1.txt"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, "text");
  }
  const DataConfig data = data_of("documents", where);
  take_warnings();
  for (const auto& [part, count] : {std::pair(Part::train, 4u), {Part::validation, 1u}, {Part::test, 2u}}) {
    const SequenceExamples found = open_sequences(data, 7, part, 1);
    BOOST_TEST(found.set->class_names() == (std::vector<std::string>{"a", "b"}), boost::test_tools::per_element());
    BOOST_TEST(found.examples.size() == count);
    BOOST_TEST(found.set->label(found.examples.back()) == 1);
  }
  BOOST_TEST(take_warnings() ==
                 std::vector<std::string>{where + "/val/c: not read: " + where + "/train has no such directory"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_texts_are_listed_together_and_left_out) {
  const TemporaryDirectory directory;
  for (const char* name :
       {"train/neg/1.txt", "train/neg/2.txt", "train/pos/1.txt", "test/neg/1.txt", "test/pos/1.txt"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, "text");
  }
  write_file(directory / "train/neg/1.txt", "");
  write_file(directory / "test/pos/1.txt", std::string("\xff\xfe"
                                                       "a\0",
                                                       4));
  DataConfig data = data_of("documents", directory.path());
  const std::string said = refusal_of(data, Part::train);
  BOOST_TEST(said.starts_with("2 texts cannot be read: " + (directory / "train/neg/1.txt").string() +
                              ": has no text; " + (directory / "test/pos/1.txt").string() + ": the text is UTF-16; "),
             said);
  BOOST_TEST(said.ends_with("; data.skip_bad=true leaves them out"));
  data.skip_bad = true;
  const SequenceExamples train = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(train.examples.size() == 2u);
  BOOST_TEST(train.set->label(0) == 0);
  BOOST_TEST(train.set->label(1) == 1);
  BOOST_TEST(train.set->files().size() == 2u);
}

// Labels in a TSV file, and class directories that would be ignored.
BOOST_AUTO_TEST_CASE(labels_that_differ_in_unicode_form_are_reported) {
  const TemporaryDirectory directory;
  const DataConfig data = data_of("documents", directory.path());
  const std::string composed = "caf\u00e9", decomposed = "cafe\u0301";
  const std::string note = "; one class differs from it in Unicode form only (composed or decomposed accents); ";
  write_file(directory / "train.tsv", "dog\tx\n" + composed + "\tx\ndog\ty\n" + composed + "\ty\n");
  write_file(directory / "test.tsv", "dog\tx\n" + decomposed + "\tx\n");
  BOOST_TEST(refusal_of(data, Part::test)
                 .starts_with((directory / "test.tsv").string() + ":2: label '" + decomposed +
                              "' does not occur in train.tsv" + note));
  for (const char* name : {"train.tsv", "test.tsv"}) std::filesystem::remove(directory / name);
  for (const std::string& name :
       std::vector<std::string>{"train/dog", "test/dog", "train/" + composed, "test/" + decomposed}) {
    std::filesystem::create_directories(directory / name);
    write_file(directory / name / "0.txt", name);
  }
  take_warnings();
  open_sequences(data, 7, Part::train, 1);
  const std::vector<std::string> lines = take_warnings();
  BOOST_REQUIRE(lines.size() == 2u);
  for (const std::string& line : lines)
    BOOST_TEST(line.find("has no such directory" + note) != std::string::npos, line);
}

// Lines without a label are bad; they do not form a class. The name of a header's first column may be empty.
BOOST_AUTO_TEST_CASE(lines_without_a_label_are_bad) {
  const TemporaryDirectory directory;
  const std::string train = directory / "train.tsv";
  write_file(train, "0\tx\n\ty\n1\ty\n\tz\n0\tx\n1\ty\n");
  write_file(directory / "test.tsv", "0\tx\n");
  DataConfig data = data_of("documents", directory.path());
  BOOST_TEST(refusal_of(data, Part::train) ==
             "2 lines cannot be read: " + train + ":2: has no label; expected label<TAB>text; " + train +
                 ":4: has no label; expected label<TAB>text; data.skip_bad=true leaves them out");
  data.skip_bad = true;
  const SequenceExamples examples = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(examples.set->class_names().size() == 2u);
  BOOST_TEST(examples.set->size() == 4);
  data.skip_bad = false, data.header = "yes";
  write_file(train, "\ttext\n0\tx\n1\ty\n0\tx\n1\ty\n");
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->size() == 4);
}

BOOST_AUTO_TEST_CASE(bad_lines_are_listed_together_and_left_out) {
  const TemporaryDirectory directory;
  const std::string train = directory / "train.tsv", test = directory / "test.tsv";
  write_file(train, "0\tx\nno tab\n1\ty\n0\t\n0\tx\n1\ty\n");
  write_file(test, "0\tx\n2\ty\n");
  DataConfig data = data_of("documents", directory.path());
  const std::string said = refusal_of(data, Part::train);
  BOOST_TEST(said == "3 lines cannot be read: " + train + ":2: has no tab; expected label<TAB>text; " + train +
                         ":4: has no text; " + test +
                         ":2: label '2' does not occur in train.tsv; data.skip_bad=true leaves them out");
  data.skip_bad = true;
  take_warnings();
  const SequenceExamples examples = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(examples.set->class_names().size() == 2u);
  BOOST_TEST(examples.set->size() == 4);
  BOOST_TEST(examples.set->label(1) == 1);
  const std::vector<std::string> lines = take_warnings();
  BOOST_REQUIRE(lines.size() == 1u);
  BOOST_TEST(
      lines[0].find("2 of 6 lines cannot be read and are left out: " + train + ":2: has no tab") != std::string::npos,
      lines[0]);
  write_file(train, "no tab\nno tab\n");  // nothing is left if these are left out
  write_file(test, "0\tx\n");
  const std::string all = refusal_of(data, Part::train);
  BOOST_TEST(all.starts_with("3 lines cannot be read: " + train + ":1: has no tab"), all);
  data.skip_bad = false;
  write_file(train, "0\tx\n" + std::string(100, '\n'));
  const std::string many = refusal_of(data, Part::train);
  BOOST_TEST(many.starts_with("100 lines cannot be read: " + train + ":2: has no tab"), many);
  BOOST_TEST(many.ends_with("; and 80 more; data.skip_bad=true leaves them out"), many);
  // The first 20 bad lines of each file are listed, and all are counted, whichever part is opened: 3 + 25 + 30.
  for (const auto& [name, bad] : {std::pair("train.tsv", 3u), {"dev.tsv", 25u}, {"test.tsv", 30u}})
    write_file(directory / name, "0\tx\n" + std::string(bad, '\n'));
  for (const Part part : {Part::train, Part::validation, Part::test}) {
    const std::string all_files = refusal_of(data, part);
    BOOST_TEST(all_files.starts_with("58 lines cannot be read: "), all_files);
    BOOST_TEST(all_files.ends_with("; and 15 more; data.skip_bad=true leaves them out"), all_files);
  }
}

// Byte order marks are not part of the text, and UTF-16 is an error.
BOOST_AUTO_TEST_CASE(byte_order_marks_are_no_text) {
  const TemporaryDirectory directory;
  const std::string mark = "\xef\xbb\xbf";
  write_file(directory / "train.tsv", mark + "0\tx\n0\ty\n1\tz\n1\tz\n");
  write_file(directory / "test.tsv", mark + "1\tx\n");
  DataConfig data = data_of("documents", directory.path());
  const SequenceExamples train = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(train.set->class_names().size() == 2u);
  BOOST_TEST(train.set->label(0) == 0);
  BOOST_TEST(open_sequences(data, 7, Part::test, 1).set->label(0) == 1);
  // Marks of joined files, and of a first line whose columns were exchanged.
  write_file(directory / "train.tsv", mark + "0\tx\n0\ty\n" + mark + "1\tz\n1\t" + mark + "z\n");
  const SequenceExamples joined = open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(joined.set->class_names() == (std::vector<std::string>{"0", "1"}), boost::test_tools::per_element());
  std::vector<int> tokens;
  joined.set->read(3, 0, nullptr, tokens);
  BOOST_TEST(tokens == std::vector<int>{'z'}, boost::test_tools::per_element());
  write_file(directory / "train.tsv", std::string("\xff\xfe") + "0\t");
  BOOST_TEST(refusal_of(data, Part::train).find("the text is UTF-16; expected UTF-8; convert it with `iconv") !=
             std::string::npos);
  data = data_of("text", directory / "text.txt");
  write_file(directory / "text.txt", mark + "abc");
  BOOST_TEST(read_text(data).size() == 3u);
}

// A header is reported with the key that skips it, and is not a class.
BOOST_AUTO_TEST_CASE(headers_of_lines_are_no_class) {
  const TemporaryDirectory directory;
  const std::string lines = "0\tx\n1\ty\n0\tx\n1\ty\n";
  DataConfig data = data_of("documents", directory.path());
  for (const bool in_test : {true, false}) {
    write_file(directory / "train.tsv", "label\ttext\n" + lines);
    write_file(directory / "test.tsv", (in_test ? "label\ttext\n" : "") + lines);
    data.header = "auto";
    BOOST_TEST(refusal_of(data, Part::train) == (directory / "train.tsv").string() +
                                                    ":1: label 'label' occurs in no other line; set data.header=yes if "
                                                    "the line is a header, data.header=no if not");
    data.header = "yes";
    for (const Part part : {Part::train, Part::test}) {
      const SequenceExamples examples = open_sequences(data, 7, part, 1);
      BOOST_TEST(examples.set->class_names() == (std::vector<std::string>{"0", "1"}), boost::test_tools::per_element());
      BOOST_TEST(examples.examples.size() == 4u);
    }
    data.header = "no";
    BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->class_names().size() == 3u);
  }
  // Only a first line can be a header.
  write_file(directory / "test.tsv", "0\tx\n1\ty\n2\tz\n");
  data.header = "yes";
  BOOST_TEST(refusal_of(data, Part::test) ==
             (directory / "test.tsv").string() +
                 ":3: label '2' does not occur in train.tsv; data.skip_bad=true leaves it out");
  // A rare label of the first line is a class if another file has it.
  write_file(directory / "test.tsv", lines + "label\tz\n");
  data.header = "auto";
  BOOST_TEST(open_sequences(data, 7, Part::test, 1).set->class_names().size() == 3u);
  write_file(directory / "test.tsv", lines);
  write_file(directory / "val.tsv", lines + "label\tz\n");
  BOOST_TEST(open_sequences(data, 7, Part::test, 1).set->class_names().size() == 3u);
}

/// Moves `train` to `old` and runs the command from OLD to NEW that the error or warning `said` suggests.
static void follow(const std::string& said, const std::string& train, const std::string& old) {
  std::filesystem::rename(train, old);
  std::string command = said.substr(said.find('`') + 1);
  command = command.substr(0, command.find('`'));
  command.replace(command.find("OLD"), 3, old).replace(command.find("NEW"), 3, train);
  BOOST_TEST(run_command(command).status == 0);
}

// If lines are text<TAB>label, each text would become a class. The suggested command exchanges the columns.
BOOST_AUTO_TEST_CASE(exchanged_columns_of_lines_are_refused) {
  const TemporaryDirectory directory;
  const std::string train = directory / "train.tsv", old = directory / "old.tsv";
  std::string lines = "sentence\tlabel\r\n";
  for (int i = 0; i < 40; ++i) lines += fmt::format("it's text {}\t{}\r\n", i, i % 2);
  DataConfig data = data_of("documents", directory.path());
  for (const char* const header : {"auto", "yes", "no"}) {
    write_file(train, lines);
    data.header = header;
    const std::string said = refusal_of(data);
    BOOST_TEST(said.starts_with(train + ": 41 of 41 lines differ in the first column, and the second has 3 values, so "
                                        "the columns seem exchanged; expected label<TAB>text; `awk "),
               said);
    follow(said, train, old);
    BOOST_TEST(read_file(train).starts_with("label\tsentence\n0\tit's text 0\n"));
  }
  data.header = "yes";
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->class_names().size() == 2u);
  // Classes of one text each are valid if the texts differ.
  lines.clear();
  for (int i = 0; i < 40; ++i) lines += fmt::format("{}\ttext {}\n", i, i);
  write_file(train, lines);
  data.header = "no";
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->class_names().size() == 40u);
}

// With a column of numbers before the label, as in files of GLUE and pandas, each line would become a class. The
// suggested command takes the columns of label and text.
BOOST_AUTO_TEST_CASE(numbered_lines_are_refused_and_further_columns_said) {
  const TemporaryDirectory directory, elsewhere;
  const std::string train = directory / "train.tsv", old = elsewhere / "old.tsv";
  std::string numbered = "\tfrom\ttext\tlabel\r\n", named = "label\ttitle\ttext\n";
  for (int i = 0; i < 40; ++i) {
    numbered += fmt::format("{}\ta\tit's text {}\t{}\r\n", i, i, i % 2);
    named += fmt::format("{}\ttitle {}\ta longer text\n", i % 2, i);
  }
  DataConfig data = data_of("documents", directory.path());
  for (const char* const header : {"auto", "yes", "no"}) {
    write_file(train, numbered);
    data.header = header;
    const std::string said = refusal_of(data);
    BOOST_TEST(said.starts_with(train + ": 41 of 41 lines differ in the first column, so it has no labels; expected "
                                        "label<TAB>text; `awk "),
               said);
    follow(said, train, old);
    BOOST_TEST(read_file(train).starts_with("label\ttext\n0\tit's text 0\n"));
  }
  data.header = "yes";
  take_warnings();
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->class_names().size() == 2u);
  BOOST_TEST(take_warnings().empty());
  write_file(train, named);
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->class_names().size() == 2u);
  const std::vector<std::string> said = take_warnings();
  BOOST_REQUIRE(said.size() == 1u);
  BOOST_TEST(
      said[0].starts_with(train + ": the lines have 3 columns; the first is the label, the others are the text;"),
      said[0]);
  follow(said[0], train, old);
  BOOST_TEST(read_file(train).starts_with("label\ttext\n0\ta longer text\n"));
  // Tabs in some of the texts are no columns.
  data.header = "auto";
  write_file(train, "0\tx\n1\ty\tz\n0\tx\n1\ty\n");
  open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(take_warnings().empty());
}

BOOST_AUTO_TEST_CASE(zero_bytes_are_not_text) {
  const TemporaryDirectory directory;
  const std::string zero("a\0b", 3);
  write_file(directory / "train.tsv", "0\tx\n1\ty\n0\t" + zero + "\n1\tz\n");
  const std::string root = directory.path();
  DataConfig data = data_of("documents", root);
  data.skip_bad = true;
  take_warnings();
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->size() == 3);
  BOOST_TEST(take_warnings()[0] == "1 of 4 lines cannot be read and are left out: " + root +
                                       "/train.tsv:3: has a zero byte, so it is not UTF-8 text");
  std::filesystem::remove(directory / "train.tsv");
  for (const char* const part : {"train", "test"})
    for (const char* const name : {"a/1", "a/2", "b/1", "b/2"}) {
      const std::string file = fmt::format("{}/{}/{}.txt", root, part, name);
      make_directory(std::filesystem::path(file).parent_path());
      write_file(file, std::string(part) + name);
    }
  write_file(directory / "train/b/2.txt", zero);
  write_file(directory / "test/a/1.txt", std::string("\xff\xfe\0\0a\0\0\0", 8));
  BOOST_TEST(open_sequences(data, 7, Part::train, 1).set->size() == 3);
  BOOST_TEST(take_warnings()[0] == "1 of 4 texts cannot be read and are left out: " + root +
                                       "/train/b/2.txt: has a zero byte, so it is not UTF-8 text");
  open_sequences(data, 7, Part::test, 1);
  BOOST_TEST(take_warnings()[0] ==
             "1 of 4 texts cannot be read and are left out: " + root +
                 "/test/a/1.txt: the text is UTF-32; expected UTF-8; convert it with `iconv -f UTF-32 -t UTF-8`");
}

BOOST_AUTO_TEST_CASE(headers_that_do_not_exist_are_said) {
  const TemporaryDirectory directory;
  const std::string lines = "0\tx\n1\ty\n0\tx\n1\ty\n", where = directory.path();
  DataConfig data = data_of("documents", where);
  const auto said = [&](const std::string& header, const std::string& train, const std::string& test) {
    data.header = header;
    write_file(directory / "train.tsv", train + lines);
    write_file(directory / "test.tsv", test + lines);
    take_warnings();
    open_sequences(data, 7, Part::train, 1);
    return take_warnings();
  };
  for (const char* header : {"auto", "no"}) BOOST_TEST(said(header, "", "").empty());
  BOOST_TEST(said("yes", "label\ttext\n", "").empty());
  BOOST_TEST(said("yes", "", "label\ttext\n").empty());
  write_file(directory / "val.tsv", "label\ttext\n" + lines);
  BOOST_TEST(said("yes", "", "").empty());
  std::filesystem::remove(directory / "val.tsv");
  BOOST_TEST(
      said("yes", "", "1\ttext\n") ==
          std::vector<std::string>{where + ": data.header=yes has no effect: the labels of the first lines occur in "
                                           "other lines of train.tsv"},
      boost::test_tools::per_element());
  for (const char* name : {"train.tsv", "test.tsv"}) std::filesystem::remove(directory / name);
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directory(directory / name);
    for (const char* text : {"1.txt", "2.txt"}) write_file(directory / name / text, "text");
  }
  open_sequences(data, 7, Part::train, 1);
  BOOST_TEST(take_warnings() ==
                 std::vector<std::string>{where + ": data.header=yes has no effect: the texts are files, not lines"},
             boost::test_tools::per_element());
}

// Each byte is predicted once, but the first byte only with `start`. In windows after the first, at least 8 - stride
// bytes of the window precede each predicted byte.
BOOST_AUTO_TEST_CASE(windows_of_an_evaluation) {
  for (const bool start : {false, true})
    for (const Index n : {2, 7, 8, 9, 50})
      for (const Index stride : {1, 3, 8}) {
        std::vector<int> predicted(static_cast<std::size_t>(n));
        Index number = 0;
        for (const TextWindow& window : evaluation_windows(n, 8, stride, start)) {
          BOOST_TEST(window.first == number++ * stride);
          BOOST_TEST((window.length >= 1 && window.length <= 8));
          for (Index t = window.fresh; t < window.length; ++t) {
            ++predicted[static_cast<std::size_t>(window.first + t + !start)];
            if (window.first > 0) BOOST_TEST(t >= 8 - stride);
          }
        }
        for (Index i = 0; i < n; ++i) BOOST_TEST(predicted[static_cast<std::size_t>(i)] == (i > 0 || start));
      }
}

BOOST_AUTO_TEST_CASE(parts_of_a_text) {
  std::vector<std::uint8_t> text(1003);
  BOOST_TEST(part_of(text, Part::train).size() == 902u);
  BOOST_TEST(part_of(text, Part::validation).size() == 952u - 902u);
  BOOST_TEST(part_of(text, Part::test).size() == 1003u - 952u);
}

BOOST_AUTO_TEST_CASE(bytes_of_128_and_above_are_no_characters) {
  for (const auto& [last, all] : {std::pair(0x00, true), {0x7f, true}, {0x80, false}, {0xff, false}})
    BOOST_TEST(bytes_are_characters(std::vector<std::uint8_t>{'a', static_cast<std::uint8_t>(last)}) == all, last);
}

BOOST_AUTO_TEST_CASE(pixels_by_hand) {
  const Image colour{{3, 2, 2}, {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 255}};
  DataConfig data;
  BOOST_TEST(pixel_tokens(colour, data) == (std::vector<int>{10, 50, 90, 20, 60, 100, 30, 70, 110, 40, 80, 255}),
             boost::test_tools::per_element());
  data.levels = 16;
  BOOST_TEST(pixel_tokens(colour, data, -10) == (std::vector<int>{0, 2, 5, 0, 3, 5, 1, 3, 6, 1, 4, 15}),
             boost::test_tools::per_element());
  data.levels = 256, data.side = 1;
  BOOST_TEST(pixel_tokens(colour, data) == (std::vector<int>{25, 65, 139}), boost::test_tools::per_element());
  data.side = 0, data.grey = true;  // 0.2989 10 + 0.587 50 + 0.114 90 = 42.599, times 255.5 / 255: 42.68
  // The other three pixels give 52.70, 62.72 and (87.986 times 255.5 / 255) 88.16.
  BOOST_TEST(pixel_tokens(colour, data) == (std::vector<int>{42, 52, 62, 88}), boost::test_tools::per_element());
  const Image white{{3, 1, 1}, {255, 255, 255}};
  BOOST_TEST(pixel_tokens(white, data)[0] == 255);
  data.side = 3;
  BOOST_CHECK_THROW(pixel_tokens(colour, data), Error);
}

// A colour image of 4 x 4 at half its size: each value is the mean of a cell of its channel, rounded half up, row by
// row.
BOOST_AUTO_TEST_CASE(cells_of_pixels_are_averaged_in_their_places) {
  Image image{{3, 4, 4}, {}};
  for (int i = 0; i < 48; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * i % 251));
  DataConfig data;
  data.side = 2;
  std::vector<int> expected;
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 2; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t corner = 16 * c + 8 * y + 2 * x;
        const int sum =
            image.pixels[corner] + image.pixels[corner + 1] + image.pixels[corner + 4] + image.pixels[corner + 5];
        expected.push_back((sum + 2) / 4);
      }
  BOOST_TEST(pixel_tokens(image, data) == expected, boost::test_tools::per_element());
}

// No text or expression occurs twice, in any part or for any seed; ids number the texts of a part.
BOOST_AUTO_TEST_CASE(generated_parts_have_nothing_in_common) {
  const TemporaryDirectory directory;
  ListOpsSetting listops;
  listops.train = 60, listops.valid = 50, listops.test = 40, listops.depth = 4, listops.args = 4;
  listops.min = 20, listops.max = 60;
  std::set<std::string> texts, expressions;
  std::size_t text_count = 0, expression_count = 0;
  for (const Index seed : {1, 2}) {
    write_pairs({60, 50, 40, seed}, directory.path());
    listops.seed = seed;
    write_listops(listops, directory.path());
    for (const auto& [pairs, expression, count] :
         {std::tuple("train", "train", 60u), {"eval", "val", 50u}, {"test", "test", 40u}}) {
      const std::vector<std::string> lines = lines_of(directory / ("new_aan_pairs." + std::string(pairs) + ".tsv"));
      BOOST_TEST(lines.size() == count);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        std::istringstream line(lines[i]);
        std::string label, first, second, a, b;
        line >> label >> first >> second >> a >> b;
        BOOST_TEST(first == std::to_string(2 * i));
        BOOST_TEST(second == std::to_string(2 * i + 1));
        texts.insert(a), texts.insert(b);
        text_count += 2;
      }
      const std::vector<std::string> more = lines_of(directory / ("basic_" + std::string(expression) + ".tsv"));
      BOOST_TEST(more.size() == count + 1);
      expressions.insert(more.begin() + 1, more.end());
      expression_count += count;
    }
  }
  BOOST_TEST(texts.size() == text_count);
  BOOST_TEST(expressions.size() == expression_count);
}

// Topics are Dirichlet(1/2) of K = 16 letters: two letters of a text are equal with probability E sum p^2 =
// (1/2 + 1) / (K/2 + 1) = 1/6. Lengths are uniform from 64 to 128.
BOOST_AUTO_TEST_CASE(texts_of_pairs_have_the_topics_and_lengths_said) {
  const TemporaryDirectory directory;
  write_pairs({1000, 1, 1, 7}, directory.path());
  std::vector<double> equal, lengths(65), letters(16);
  double same = 0, mean = 0, squares = 0;
  for (const std::string& line : lines_of(directory / "new_aan_pairs.train.tsv")) {
    std::istringstream fields(line);
    std::string label, id, first;
    fields >> label >> id >> id >> first;
    same += label == "1.0";
    ++lengths.at(first.size() - 64);
    double pairs = 0;
    for (char letter = 'a'; letter < 'a' + 16; ++letter) {
      const auto n = static_cast<double>(std::count(first.begin(), first.end(), letter));
      pairs += n * (n - 1);
      letters[static_cast<std::size_t>(letter - 'a')] += n / static_cast<double>(first.size());
    }
    equal.push_back(pairs / static_cast<double>(first.size() * (first.size() - 1)));
  }
  check_z(z_of_successes(same, 1000, 0.5), "labels");
  check_z(z_of_equal_cells(lengths), "lengths");
  for (const double x : equal) mean += x / 1000;
  for (const double x : equal) squares += (x - mean) * (x - mean);
  check_z((mean - 1.0 / 6) / std::sqrt(squares / 999 / 1000), "equal letters");
  // A letter's share in topics has mean 1/16 and variance (1/16) (15/16) / (K/2 + 1); its variance in texts is slightly
  // larger.
  for (const double sum : letters)
    BOOST_TEST(std::abs(sum / 1000 - 1.0 / 16) < 5 * std::sqrt(15.0 / 256 / 9 / 1000) * 1.1);
}

// Each part of listops, pairs and documents is read from its own file, with its labels; data.limit applies only to
// training examples.
BOOST_AUTO_TEST_CASE(parts_of_sequences_are_those_of_their_files) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& file, const std::string& content) {
    write_file(directory / file, content);
  };
  write("basic_train.tsv", "Source\tTarget\n[MAX 1 2 ]\t2\n[MIN 3 4 ]\t3\n5\t5\n");
  write("basic_val.tsv", "Source\tTarget\n6\t6\n7\t7\n");
  write("basic_test.tsv", "Source\tTarget\n8\t8\n9\t9\n0\t0\n");
  write("new_aan_pairs.train.tsv", "1.0\t0\t1\tabcdef\tgh\n0.0\t2\t3\ti\tjklmno\n1.0\t4\t5\tp\tq\n");
  write("new_aan_pairs.eval.tsv", "0.0\t0\t1\tv\tw\n1.0\t0\t1\tx\ty\n");
  write("new_aan_pairs.test.tsv", "1.0\t0\t1\tt\tu\n0.0\t0\t1\tr\ts\n1.0\t0\t1\tz\tz\n");
  write("train.tsv", "no\ta\nyes\tb\nno\tc\n");
  write("val.tsv", "yes\td\nno\te\n");
  write("test.tsv", "no\tf\nyes\tg\nno\th\n");
  struct Expected {
    std::vector<int> labels;
    std::string first_tokens;  // first token of each example, as a character
  };
  const std::map<std::string, std::array<Expected, 3>> all{
      {"listops", {{{{2, 3}, "\x0b\x0a"}, {{6, 7}, "\x06\x07"}, {{8, 9, 0}, std::string("\x08\x09\0", 3)}}}},
      {"pairs", {{{{1, 0}, "ai"}, {{0, 1}, "vx"}, {{1, 0, 1}, "trz"}}}},
      {"documents", {{{{0, 1}, "ab"}, {{1, 0}, "de"}, {{0, 1, 0}, "fgh"}}}}};
  for (const auto& [name, parts] : all) {
    DataConfig data = data_of(name, directory.path());
    data.limit = 2, data.validation = 1;  // validation: no effect, since there are validation files
    for (const Part part : {Part::train, Part::validation, Part::test}) {
      const SequenceExamples found = open_sequences(data, 4, part, 1);
      const Expected& expected = parts[static_cast<std::size_t>(part)];
      BOOST_REQUIRE(found.examples.size() == expected.labels.size());
      for (std::size_t i = 0; i < expected.labels.size(); ++i) {
        BOOST_TEST(found.set->label(found.examples[i]) == expected.labels[i], name << " " << i);
        BOOST_TEST(read(found, static_cast<Index>(i))[0] == expected.first_tokens[i], name << " " << i);
      }
    }
  }
  // Both texts of a pair are read, each cut at the context.
  const SequenceExamples pairs = open_sequences(data_of("pairs", directory.path()), 4, Part::train, 1);
  BOOST_TEST(pairs.set->pairs());
  BOOST_TEST(read(pairs, 0, 0) == (std::vector<int>{'a', 'b', 'c', 'd'}), boost::test_tools::per_element());
  BOOST_TEST(read(pairs, 0, 1) == (std::vector<int>{'g', 'h'}), boost::test_tools::per_element());
  BOOST_TEST(read(pairs, 1, 1) == (std::vector<int>{'j', 'k', 'l', 'm'}), boost::test_tools::per_element());
}

// Labels and validation files are found by the names that a run recorded, as for images.
BOOST_AUTO_TEST_CASE(documents_have_the_classes_and_validation_files_of_a_run) {
  const TemporaryDirectory directory;
  for (const char* name : {"train/ant/0.txt", "train/ant/1.txt", "train/dog/0.txt", "train/dog/1.txt", "test/ant/0.txt",
                           "test/dog/0.txt"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, std::string(name));
  }
  const auto labels = [](const SequenceExamples& found) {
    std::vector<int> all;
    for (const Index i : found.examples) all.push_back(found.set->label(i));
    return all;
  };
  DataConfig data = data_of("documents", directory.path());
  data.recorded.classes = {"dog", "cow", "ant"};
  data.recorded.validation = {"train/ant/1.txt", "train/dog/0.txt"};
  data.validation = 2;
  const SequenceExamples validation = open_sequences(data, 99, Part::validation, 1);
  BOOST_TEST(validation.set->class_names() == data.recorded.classes, boost::test_tools::per_element());
  BOOST_TEST(labels(validation) == (std::vector<int>{0, 2}), boost::test_tools::per_element());  // in order of labels
  const std::vector<int> second = read(validation, 1);
  BOOST_TEST(std::string(second.begin(), second.end()) == "train/ant/1.txt");
  BOOST_TEST(labels(open_sequences(data, 99, Part::train, 1)) == (std::vector<int>{0, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(labels(open_sequences(data, 99, Part::test, 1)) == (std::vector<int>{0, 2}),
             boost::test_tools::per_element());
  for (const char* name : {"train", "test"}) std::filesystem::remove_all(directory / name);
  write_file(directory / "train.tsv", "ant\tx\ndog\ty\nant\tx\ndog\ty\n");
  write_file(directory / "test.tsv", "dog\tx\nant\tx\n");
  data.validation = 0;
  BOOST_TEST(labels(open_sequences(data, 99, Part::train, 1)) == (std::vector<int>{2, 0, 2, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(labels(open_sequences(data, 99, Part::test, 1)) == (std::vector<int>{0, 2}),
             boost::test_tools::per_element());
  data.recorded.classes = {"dog", "cow"};
  BOOST_TEST(refusal_of(data).find("the model has no class 'ant'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_text_is_limited_and_divided_without_gaps) {
  const TemporaryDirectory directory;
  std::string content;
  for (int i = 0; i < 200; ++i) content += static_cast<char>(i);
  write_file(directory / "text", content);
  DataConfig data = data_of("text", directory / "text");
  for (const Index limit : {0, 100, 500}) {
    data.limit = limit;
    const std::vector<std::uint8_t> text = read_text(data);
    BOOST_REQUIRE(text.size() == (limit == 100 ? 100u : 200u));
    std::size_t at = 0;
    for (const Part part : {Part::train, Part::validation, Part::test})
      for (const std::uint8_t byte : part_of(text, part)) BOOST_TEST(byte == at++);
    BOOST_TEST(at == text.size());
  }
}

// Images of 4 x 4 with a level for each column. In training, an image is mirrored or not, and independently all its
// levels are shifted by the same number from -10 to 10.
BOOST_AUTO_TEST_CASE(pixels_are_mirrored_and_shifted_in_training_only) {
  const TemporaryDirectory directory;
  const std::vector<std::uint8_t> columns{40, 80, 120, 200};
  for (const std::string split : {"train", "t10k"}) {
    const std::uint8_t count = split == "train" ? 6 : 2;
    std::string images{'\0', '\0', '\x08', '\x03', '\0', '\0', '\0', static_cast<char>(count),
                       '\0', '\0', '\0',   '\x04', '\0', '\0', '\0', '\x04'};
    std::string labels{'\0', '\0', '\x08', '\x01', '\0', '\0', '\0', static_cast<char>(count)};
    for (int i = 0; i < count; ++i) {
      for (std::size_t pixel = 0; pixel < 16; ++pixel) images += static_cast<char>(columns[pixel % 4] + i);
      labels += static_cast<char>(split == "train" ? i : 9 - i);
    }
    write_file(directory / (split + "-images-idx3-ubyte"), images);
    write_file(directory / (split + "-labels-idx1-ubyte"), labels);
  }
  DataConfig data = data_of("pixels", directory.path());
  data.validation = 2;
  const SequenceExamples train = open_sequences(data, 16, Part::train, 1),
                         validation = open_sequences(data, 16, Part::validation, 1),
                         test = open_sequences(data, 16, Part::test, 1);
  std::set<int> seen;
  for (const SequenceExamples* part : {&train, &validation})
    for (std::size_t i = 0; i < part->examples.size(); ++i) {
      const int number = read(*part, static_cast<Index>(i))[0] - 40;
      BOOST_TEST(part->set->label(part->examples[i]) == number);
      seen.insert(number);
    }
  BOOST_TEST(train.examples.size() == 4u);
  BOOST_TEST(seen.size() == 6u);
  BOOST_TEST(test.examples.size() == 2u);
  BOOST_TEST(test.set->label(1) == 8);
  BOOST_TEST(train.set->fixed_length() == 16);
  BOOST_TEST(train.set->vocabulary() == 256);
  const auto misfit = [&](Index context, Index vocabulary) {
    return error_of([&] { require_fit(train, context, vocabulary); });
  };
  BOOST_TEST(misfit(16, 256) == "no error");
  for (const Index context : {15, 17})
    BOOST_TEST(misfit(context, 256) ==
               fmt::format("[model] context = {}; the sequences have 16 tokens; they must match", context));
  BOOST_TEST(misfit(16, 255) == "[model] vocab = 255; the data has tokens 0 to 255: expected 256");
  data.levels = 16;
  BOOST_TEST(open_sequences(data, 16, Part::train, 1).set->vocabulary() == 16);
  data.levels = 256;
  // Labels are matched by name if the source differs from that of the run.
  DataConfig other = data;
  other.recorded.classes = train.set->class_names();
  BOOST_TEST(open_sequences(other, 16, Part::test, 1).set->class_names().size() == 10u);
  other.source = "fashion-mnist";
  BOOST_TEST(refusal_of(other, Part::test).find(": the model has no class 'T-shirt/top'; the data has classes ") !=
             std::string::npos);

  for (const std::vector<std::string>& changes :
       std::vector<std::vector<std::string>>{{"flip"}, {"shift"}, {"flip", "shift"}, {}}) {
    data.augment = changes;
    const auto set = open_sequences(data, 16, Part::train, 1).set;
    const bool flips = std::count(changes.begin(), changes.end(), "flip") > 0,
               shifts = std::count(changes.begin(), changes.end(), "shift") > 0;
    std::vector<double> shifted(21), mirrored(2);
    double both = 0;
    for (std::uint64_t i = 0; i < 2100; ++i) {
      const RandomStream chance = RandomStream(3).derive(i);
      std::vector<int> tokens, plain;
      set->read(2, 0, &chance, tokens);
      set->read(2, 0, nullptr, plain);
      BOOST_REQUIRE(plain[0] == 42);
      const bool is_mirrored = tokens[0] > tokens[3];
      const int shift = tokens[0] - plain[is_mirrored ? 3 : 0];
      BOOST_REQUIRE(std::abs(shift) <= (shifts ? 10 : 0));
      for (std::size_t k = 0; k < 16; ++k)
        BOOST_REQUIRE(tokens[k] == plain[is_mirrored ? k / 4 * 4 + 3 - k % 4 : k] + shift);
      ++shifted[static_cast<std::size_t>(shift + 10)], ++mirrored[is_mirrored];
      both += is_mirrored && shift > 0;
    }
    if (shifts) check_z(z_of_equal_cells(shifted), "shifts");
    if (flips) check_z(z_of_equal_cells(mirrored), "sides");
    if (flips && shifts) check_z(z_of_successes(both, 2100, 10.0 / 42), "mirrored and brightened");
    BOOST_TEST((mirrored[1] > 0) == flips);
  }
}

// image_of_tokens() writes the middle of a level's range of bytes, from which pixel_tokens() computes the same level.
BOOST_AUTO_TEST_CASE(tokens_become_images_and_tokens_again) {
  for (const Index levels : {2, 7, 16, 256})
    for (const Index channels : {1, 3}) {
      DataConfig data;
      data.levels = levels;
      std::vector<int> tokens;
      for (Index i = 0; i < 16 * channels; ++i) tokens.push_back(static_cast<int>(i * 5 % levels));
      const Image image = image_of_tokens(tokens, {channels, 4, 4}, levels);
      BOOST_TEST(pixel_tokens(image, data) == tokens, boost::test_tools::per_element());
    }
  BOOST_TEST(image_of_tokens({0, 1, 2, 3}, {1, 2, 2}, 4).pixels == (std::vector<std::uint8_t>{32, 96, 160, 224}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(models_must_fit_the_sequences) {
  const TemporaryDirectory directory;
  write_file(directory / "new_aan_pairs.train.tsv", "1.0\t0\t1\ta\tb\n");
  const SequenceExamples pairs = open_sequences(data_of("pairs", directory.path()), 4, Part::train, 1);
  const auto refusal = [&](Index context, Index vocabulary) {
    return error_of([&] { require_fit(pairs, context, vocabulary); });
  };
  BOOST_TEST(refusal(4, 256) == "no error");
  BOOST_TEST(refusal(9, 300) == "no error");
  BOOST_TEST(refusal(4, 255) == "[model] vocab = 255; the data has tokens 0 to 255: expected 256");
}

// At depth 2, where all expressions are shorter than `max`, the root is an operator with probability 1/4, and its 2 to
// 5 arguments are digits.
BOOST_AUTO_TEST_CASE(operators_arguments_and_digits_are_drawn_evenly) {
  ListOpsSetting setting;
  setting.depth = 2, setting.args = 5, setting.min = 1, setting.max = 100;
  std::vector<double> operators(4), arguments(4), digits(10);
  double roots = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::vector<int> tokens = draw_listops(setting, RandomStream(6).derive(i)).tokens;
    for (const int token : tokens)
      if (token < 10) ++digits[static_cast<std::size_t>(token)];
    if (tokens.size() == 1) continue;
    ++roots, ++operators.at(static_cast<std::size_t>(tokens[0] - 10)), ++arguments.at(tokens.size() - 4);
  }
  check_z(z_of_successes(roots, 20'000, 0.25), "operators at the root");
  check_z(z_of_equal_cells(operators), "operators");
  check_z(z_of_equal_cells(arguments), "numbers of arguments");
  check_z(z_of_equal_cells(digits), "digits");
}

BOOST_AUTO_TEST_CASE(settings_of_generated_data_are_checked) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const auto refusal = [&](void (*change)(ListOpsSetting&)) {
    ListOpsSetting setting;
    change(setting);
    return error_of([&] { write_listops(setting, out); }, "listops: ");
  };
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.depth = 0; }) == "depth is 0; expected 1 to 1000");
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.depth = 1001; }) == "depth is 1001; expected 1 to 1000");
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.args = 1; }) == "args is 1; expected 2 to 1000");
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.args = 1001; }) == "args is 1001; expected 2 to 1000");
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.min = 0; }) ==
             "min is 0; expected 1 or more, so that expressions have an operator");
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.max = 501; }) == "max is 501; expected more than min + 1 = 501");
  const std::string expected = " expressions; expected at least 1 of each";
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.train = 0; }) == "0, 2000 and 2000" + expected);
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.valid = 0; }) == "96000, 0 and 2000" + expected);
  BOOST_TEST(refusal([](ListOpsSetting& s) { s.test = 0; }) == "96000, 2000 and 0" + expected);
  for (const PairsSetting& setting : {PairsSetting{0, 6, 7}, PairsSetting{5, 0, 7}, PairsSetting{5, 6, 0}})
    BOOST_TEST(error_of([&] { write_pairs(setting, out); }) ==
               fmt::format("pairs: {}, {} and {} examples; expected at least 1 of each", setting.train, setting.valid,
                           setting.test));
  BOOST_TEST(!std::filesystem::exists(out));
}

BOOST_AUTO_TEST_CASE(sequences_that_are_not_there) {
  const TemporaryDirectory directory;
  const std::string where = directory.path(), empty = directory / "empty.txt";
  write_file(empty, "");
  BOOST_TEST(error_of([] { read_text(data_of("text", "")); }) ==
             "data.name=text requires data.path, a file of any bytes");
  BOOST_TEST(error_of([&] { read_text(data_of("text", empty)); }) == empty + ": is empty; expected a text");
  BOOST_TEST(refusal_of(data_of("mnist", where)) == "data.name=mnist has no labelled sequences");
  for (const char* name : {"train/a/1.txt", "test/b/1.txt"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, "text");
  }
  BOOST_TEST(refusal_of(data_of("documents", where)) == where + ": train/ and test/ have no class directory in common");
  take_warnings();
}

// Lines are written in blocks of a megabyte.
BOOST_AUTO_TEST_CASE(large_files_of_expressions_have_each_line_once) {
  const TemporaryDirectory directory;
  ListOpsSetting setting;
  setting.train = 20'000, setting.valid = setting.test = 1, setting.depth = 4, setting.args = 10;
  setting.min = 1, setting.max = 1000;
  write_listops(setting, directory.path());
  const std::string file = directory / "basic_train.tsv";
  BOOST_REQUIRE(std::filesystem::file_size(file) > 1'100'000);
  const std::vector<std::string> lines = lines_of(file);
  BOOST_TEST(lines.size() == 20'001u);
  BOOST_TEST(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size());
}

BOOST_AUTO_TEST_SUITE_END()
