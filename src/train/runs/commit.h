// The commit that heed was built from.
#pragma once

namespace heed {

/// Returns "1a2b3c4d5e6f", with "-dirty" if files were changed since; empty if not built in a checkout.
const char* source_commit();

}  // namespace heed
