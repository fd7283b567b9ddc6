#include "output_file.h"

#include "heed/base/error.h"
#include "heed/io/file.h"

#include <filesystem>

namespace heed::cli {

void require_own_file(const CommandFile& output, const std::vector<CommandFile>& others) {
  for (const CommandFile& other : others)
    require(output.path.empty() || other.path.empty() || !same_file(output.path, other.path),
            "{} {}: is also {}; expected another file", output.argument, output.path, other.argument);
}

void require_writable(const CommandFile& output, const std::string& ending) {
  require(ending.empty() || std::filesystem::path(output.path).extension() == ending,
          "{} {}: expected a name that ends in {}", output.argument, output.path, ending);
  const AtomicFile writable(output.path);  // not committed, so the file stays unchanged
}

}  // namespace heed::cli
