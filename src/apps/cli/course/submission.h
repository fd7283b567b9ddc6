// Untrusted submissions: reading, compiling and checking them.
#pragma once

#include "src/apps/grading/sandbox/confined.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Returns the file's bytes. Throws Error unless it is a regular file, not a symbolic link, of at most `most` bytes.
std::string read_bytes(const std::string& file, Index most);

inline constexpr Index largest_answer = 1 << 20, largest_notebook = 8 << 20;

/// Returns the file's text, decoded by plain_text(). Throws Error as read_bytes() does.
std::string read_submission(const std::string& file, Index most = largest_answer);

/// Throws Error unless the compiler and heed's headers are installed.
void require_compiler();

/// The headers of heed that every mechanism may include, precompiled once for all submissions of a run.
class SharedHeaders {
 public:
  SharedHeaders();
  const std::string& directory() const { return place_.path(); }
  std::string include() const { return place_ / "include"; }
  std::string header() const { return place_ / "heed.h"; }

 private:
  PrivateDirectory place_;
};

/// Compiles a submission's header, named `shown` in messages, in a process confined to the directory `place`. The
/// header may include the headers of heed that every mechanism needs, and those that `stub`, the text of the file
/// handed out, includes directly or indirectly; all if `stub` is empty. `shared` may be null. Throws Error with the
/// compiler's first error.
void compile_submission(const std::string& header, const std::string& shown, const std::string& stub,
                        const PrivateDirectory& place, const std::string& object, const SharedHeaders* shared);

/// Throws Error if a compiled submission uses heed's mechanisms, the operation tally or the dynamic linker, or, unless
/// `stub` is empty, a function of heed that is declared in none of the headers that compile_submission() allows.
void require_own_work(const std::string& object, const std::string& stub);

/// Returns the system functions that a compiled submission calls although no computation needs them, such as fork and
/// socket.
std::vector<std::string> system_calls_in(const std::string& object);

/// Throws Error if the text contains a forbidden word. If any word is forbidden, also throws Error for a text with both
/// `define` and a token-pasting operator, `##` or `%:%:`: a macro could compose a forbidden word.
void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden);

}  // namespace heed::cli
