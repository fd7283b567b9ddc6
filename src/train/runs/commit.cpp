// The commit is a compiler flag of this file alone, which is recompiled when it changes.
#include "commit.h"

namespace heed {

const char* source_commit() { return HEED_COMMIT; }

}  // namespace heed
