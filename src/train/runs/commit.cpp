// Its flags name the commit: it alone is compiled again when that changes.
#include "commit.h"

namespace heed {

const char* source_commit() { return HEED_COMMIT; }

}  // namespace heed
