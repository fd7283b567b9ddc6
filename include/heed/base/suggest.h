// Parts of messages: counts, quoted and truncated input, suggestions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Returns the candidate nearest to `word`, or "" if none is near. Candidates are near by edit distance (a swap of two
/// adjacent letters is one edit), by initials (learning_rate, lr) or by containment (decay, weight_decay). The first of
/// equally near candidates wins.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Returns the end of an error message about the unknown `word`: "; did you mean 'cosine'?" or, if no candidate is
/// near, "; expected one of cosine, constant".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// Returns the whole UTF-8 characters in the first `longest` bytes of `text`.
std::string_view beginning(std::string_view text, std::size_t longest);

/// Returns `text` in single quotes on one line, truncated to whole UTF-8 characters in the first 80 bytes, and with
/// control characters escaped.
std::string in_quotes(std::string_view text);

/// Returns a count with its noun, whose singular is `one`: "1 step", "2 steps".
std::string counted(std::int64_t count, std::string_view one);

/// Returns the names in quotes: "'a', 'b', 'c', 'd' and 3 more".
std::string quoted_list(const std::vector<std::string>& names);

/// Returns the first `most` names: "a, b" or, if there are more, "a, b, ...".
std::string first_names(const std::vector<std::string>& names, std::size_t most);

}  // namespace heed
