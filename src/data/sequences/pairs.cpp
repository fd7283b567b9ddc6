#include "heed/data/sequences/pairs.h"

#include "heed/base/random.h"
#include "heed/io/file.h"

#include <array>

namespace heed {

namespace {

constexpr std::size_t letters = 16;
constexpr Index shortest = 64, longest = 128;

/// Running sums of the letters' probabilities. Squares of normal variates, each Gamma(1/2), divided by their sum are
/// Dirichlet(1/2).
using Topic = std::array<double, letters>;
Topic draw_topic(const RandomStream& random) {
  Topic sums;
  double sum = 0;
  for (std::size_t i = 0; i < letters; ++i) {
    const double z = random.normal(static_cast<Index>(i));
    sums[i] = sum += z * z;
  }
  for (double& s : sums) s /= sum;
  return sums;
}

std::string draw_text(const Topic& topic, const RandomStream& random) {
  std::string text;
  const Index length = shortest + random.below(0, longest - shortest + 1);
  for (Index i = 1; i <= length; ++i) {
    std::size_t letter = 0;
    for (const double u = random.uniform(i); letter + 1 < letters && topic[letter] <= u;) ++letter;
    text += static_cast<char>('a' + letter);
  }
  return text;
}

void write_part(AtomicFile& file, Index count, const RandomStream& random) {
  for (Index i = 0; i < count; ++i) {
    const RandomStream own = random.derive(i);
    const Topic first = draw_topic(own.derive("topic"));
    const bool same = own.below(0, 2) == 1;
    const Topic second = same ? first : draw_topic(own.derive("fresh topic"));
    file.write(fmt::format("{}\t{}\t{}\t{}\t{}\n", same ? "1.0" : "0.0", 2 * i, 2 * i + 1,
                           draw_text(first, own.derive("first")), draw_text(second, own.derive("second"))));
  }
}

}  // namespace

void write_pairs(const PairsSetting& s, const std::string& directory) {
  require(s.train >= 1 && s.valid >= 1 && s.test >= 1, "pairs: {}, {} and {} examples; expected at least 1 of each",
          s.train, s.valid, s.test);
  make_directory(directory);
  const RandomStream random = RandomStream(s.seed).derive("pairs");
  const std::string start = directory + "/new_aan_pairs.";
  AtomicFile train(start + "train.tsv"), valid(start + "eval.tsv"), test(start + "test.tsv");
  write_part(train, s.train, random.derive("train"));
  write_part(valid, s.valid, random.derive("eval"));
  write_part(test, s.test, random.derive("test"));
  for (AtomicFile* const file : {&train, &valid, &test}) file->commit();
}

}  // namespace heed
