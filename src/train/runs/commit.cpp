// Compiled separately, since its flags contain the commit and the ARCH: only this file is recompiled when the commit
// changes, and the ARCHs of a package can share the other cold files.
#include "heed/train/runs/commit.h"

namespace heed {

const char* source_commit() { return HEED_COMMIT; }
const char* built_for() { return HEED_ARCH; }

}  // namespace heed
