// Signs of copying and of trickery in submissions, for the instructor to judge: no marks depend on them.
#pragma once

#include "heed/config/lab.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Two submissions for a lab that are alike.
struct SimilarPair {
  std::size_t first, second;
  double alike;  ///< shared share of their statements, without names, numbers and order; 1: all
};

/// The pairs among submissions for a lab, the most alike first. Left out are statements of `stub`, the file handed
/// out, and in a class of six or more those of more than half of it.
std::vector<SimilarPair> similar_pairs(const std::vector<std::string>& texts, const std::string& stub, LabKind kind);

/// The words of a submission by which code differs between number types, or reaches out of its process, if `stub` does
/// not have them; separated by commas.
std::string suspicious_words(const std::string& text, const std::string& stub, LabKind kind);

/// A section of a page: both texts side by side.
std::string pair_section(const std::string& title, const std::string& first, const std::string& second);

}  // namespace heed::cli
