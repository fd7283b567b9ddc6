// A file that anybody may have written, until it is a plugin.
#pragma once

#include "src/apps/grading/sandbox/confined.h"

#include <string>
#include <vector>

namespace heed::cli {

/// The file's bytes. Throws Error unless it is a regular file, no symbolic link, of at most `most` bytes.
std::string read_bytes(const std::string& file, Index most);

inline constexpr Index largest_answer = 1 << 20, largest_notebook = 8 << 20;

/// The file's text, as plain_text() returns it, of at most `most` bytes.
std::string read_submission(const std::string& file, Index most = largest_answer);

/// Throws Error unless the compiler and heed's headers are there.
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

/// Compiles a submission's header, called `shown`, in its directory, where nothing but that can happen. It may include
/// those of heed's headers that `stub`, the text of the file handed out, includes, and what these include; with an
/// empty one, all. `shared` may be null. Throws Error with the compiler's first error.
void compile_submission(const std::string& header, const std::string& shown, const std::string& stub,
                        const PrivateDirectory& place, const std::string& object, const SharedHeaders* shared);

/// Throws Error if a compiled submission uses what would answer for the student, or count for the counter, or a
/// function of heed that no header in `stub` declares.
void require_own_work(const std::string& object, const std::string& stub);

/// The system functions that a compiled submission calls although no computation needs them, such as fork and socket.
std::vector<std::string> system_calls_in(const std::string& object);

/// Throws Error if the text has one of these words, or can put one together.
void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden);

}  // namespace heed::cli
