// ListOps: nested lists of digits under four operators. Nangia, Bowman, "ListOps: A Diagnostic Dataset for Latent Tree
// Learning", 2018, arXiv:1804.06028; in the form of the Long Range Arena, arXiv:2011.04006.
//
//   expr := digit | OP expr{2..args} "]"       OP one of [MIN [MAX [MED [SM
//
// SM is the sum modulo 10; the median of an even number of values is the mean of the middle two, rounded down.
#pragma once

#include "heed/base/random.h"

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Number of tokens: the digits are tokens 0 to 9, MIN 10, MAX 11, MED 12, SM 13, ] 14.
inline constexpr int listops_tokens = 15;

/// Returns the tokens of an expression whose parts are separated by blanks; parentheses are dropped. Throws Error, with
/// a message that begins with `where`, if a part is not a token, or if the tokens are not one expression.
std::vector<int> parse_listops(std::string_view text, const std::string& where);

/// Number of expressions in each part, limits of their shape, and the random seed.
struct ListOpsSetting {
  Index train = 96'000, valid = 2'000, test = 2'000;
  Index depth = 10;              ///< a node of level l may be an operator if l < depth; the root has level 1
  Index args = 10;               ///< maximum arguments of an operator
  Index min = 500, max = 2'000;  ///< min < length < max, in digits, operators and ]
  Index seed = 1;
};

/// An expression and its answer.
struct ListOps {
  std::vector<int> tokens;
  int answer = 0;
};

/// Draws an expression: a node that may be an operator is one with probability 1/4, otherwise a digit; numbers of
/// arguments, operators and digits are uniform. Returns no tokens if the expression reaches length `max`.
ListOps draw_listops(const ListOpsSetting& setting, const RandomStream& random);

/// Creates a directory and writes basic_train.tsv, basic_val.tsv and basic_test.tsv: a line Source<TAB>Target, then for
/// each expression its tokens separated by blanks, a tab, and the answer. No expression occurs twice. Throws Error if
/// there are too few different expressions.
void write_listops(const ListOpsSetting& setting, const std::string& directory);

}  // namespace heed
