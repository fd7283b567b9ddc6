// Marking of Python functions: the lab's own judge checks their results for hidden arguments.
#pragma once

#include "heed/config/lab.h"
#include "src/apps/grading/sandbox/confined.h"
#include "mark.h"

namespace heed {

/// A Python lab with the arguments of one grading run.
class PythonTask {
 public:
  /// Reads judge.py and, if present, calls.py of the lab, and draws arguments with judge.py. Throws Error if a file
  /// cannot be read or judge.py fails.
  PythonTask(const Lab& lab, std::uint64_t seed);

  /// Returns the marks of a submission's text, one for each point. Each point's function runs in a separate process;
  /// `refused` receives forbidden system calls and accesses.
  std::vector<Mark> marks(const std::string& source, std::set<std::string>& refused) const;

 private:
  Mark mark(const std::string& point, const std::string& arguments, const std::string& source,
            std::set<std::string>& refused) const;

  const Lab& lab_;
  std::string judge_, calls_;
  std::vector<std::string> arguments_;  ///< for each point: a JSON list of the arguments of its calls
};

}  // namespace heed
