// The commit that heed was built from.
#pragma once

namespace heed {

/// "1a2b3c4d5e6f", with "-dirty" where files were changed after it; empty if it was not built in a checkout.
const char* source_commit();

}  // namespace heed
