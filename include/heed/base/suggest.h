// What error messages share: quoting what the user wrote, and guessing what was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The candidate nearest to `word`, or "" when none is near: by edit distance (a swap of two neighbours counts
/// once), by initials (learning_rate, lr) or by containment (decay, weight_decay). Ties go to the first.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// How an error about the unknown `word` ends: "; did you mean 'cosine'?", or, when nothing is near,
/// "; expected one of cosine, constant".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// `text` in single quotes, fit for one line: control characters escaped, more than 80 bytes cut short.
std::string in_quotes(std::string_view text);

/// "'a', 'b', 'c', 'd' and 3 more"
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace heed
