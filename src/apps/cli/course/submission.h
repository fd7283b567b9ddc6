// A file that anybody may have written, until it is a plugin.
#pragma once

#include "src/apps/grading/sandbox/confined.h"

#include <string>
#include <vector>

namespace heed::cli {

/// The file's text. Throws Error unless it is a regular file, no symbolic link, of at most 1 MB.
std::string read_submission(const std::string& file);

/// Throws Error unless the compiler and heed's headers are there.
void require_compiler();

/// heed's headers, precompiled once for all submissions of a run.
class SharedHeaders {
 public:
  SharedHeaders();
  const std::string& directory() const { return place_.path(); }
  std::string header() const { return place_ / "heed.h"; }

 private:
  PrivateDirectory place_;
};

/// Compiles a submission's header, called `shown`, in its directory, where nothing but that can happen. `shared` may be
/// null. Throws Error with the compiler's first error.
void compile_submission(const std::string& header, const std::string& shown, const PrivateDirectory& place,
                        const std::string& object, const SharedHeaders* shared);

/// Throws Error if a compiled submission uses what would answer for the student, or count for the counter.
void require_own_work(const std::string& object);

/// Throws Error if the text has one of these words.
void require_no_forbidden_word(const std::string& source, const std::vector<std::string>& forbidden);

}  // namespace heed::cli
