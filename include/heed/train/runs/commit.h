// The commit and the architecture of this build.
#pragma once

namespace heed {

/// Returns "1a2b3c4d5e6f", with "-dirty" for uncommitted changes; empty if not built in a checkout.
const char* source_commit();

/// Returns the ARCH of the loaded library, such as "native" or, in a package, "x86-64-v3".
const char* built_for();

}  // namespace heed
