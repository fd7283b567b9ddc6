// Compiled with separate flags and recompiled when they change. Other files are the same for several ARCHs.
#include "heed/train/runs/commit.h"

namespace heed {

const char* source_commit() { return HEED_COMMIT; }
const char* built_for() { return HEED_ARCH; }

}  // namespace heed
