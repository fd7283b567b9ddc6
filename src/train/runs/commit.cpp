// Compiled apart from other files, since its flags contain the commit and the ARCH: only this file is recompiled when
// the commit changes, and other cold files can be shared by the ARCHs of a package.
#include "heed/train/runs/commit.h"

namespace heed {

const char* source_commit() { return HEED_COMMIT; }
const char* built_for() { return HEED_ARCH; }

}  // namespace heed
