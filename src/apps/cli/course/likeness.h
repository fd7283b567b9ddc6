// Signs of copying and cheating in submissions, for the instructor to judge: no marks depend on them.
#pragma once

#include "heed/config/lab.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Two submissions for a lab that are alike.
struct SimilarPair {
  std::size_t first, second;
  double alike;  ///< fraction of tokens in common statements, ignoring names, numbers and order; 1: all
};

/// Returns the pairs of similar submissions for a lab, the most alike first. Ignores the statements of `stubs`, the
/// files handed out to the students. In a class of six or more, submissions that are not equal are compared without the
/// statements that more than half of the class have.
std::vector<SimilarPair> similar_pairs(const std::vector<std::string>& texts, const std::vector<std::string>& stubs,
                                       LabKind kind);

/// Returns, separated by commas, the words of a submission that serve to distinguish number types or to reach outside
/// the process, except those in `stub`.
std::string suspicious_words(const std::string& text, const std::string& stub, LabKind kind);

/// Returns a section of an HTML page: both texts side by side.
std::string pair_section(const std::string& title, const std::string& first, const std::string& second);

}  // namespace heed::cli
